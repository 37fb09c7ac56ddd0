import { create, toJson } from '@bufbuild/protobuf'
import { ChainSchema } from '../../../gen/payments/v1/chain_pb.js'
import { chainToProto } from '../../api/services/operations-handler.ts'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { type ListedChain, listChains } from '../../detection/report/list-chains.ts'
import { type Command, type CommandContext, EXIT_FAILED, EXIT_GOOD } from '../shared/command.ts'
import { chainNamed, chainsOrDemo, readSetup } from '../shared/read-chains.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'
import { drawChains } from './chains-table.ts'
import { redraw, type Terminal } from './redraw.ts'

const REFRESH_MS = 2_000
const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

/** `chains status`: in a terminal a table that is drawn again every 2 s; otherwise one JSON document. */
export const chainsStatus: Command = {
  path: ['chains', 'status'],
  summary:
    'Show how each chain is followed: lag, heights, reorgs, back-fill, nodes, what is wrong. In a terminal a table that refreshes ' +
    'until Ctrl-C, otherwise one JSON document, as GET /v1/chains gives it. Exit code 1 when a chain is stopped by an alarm.',
  takes: {
    '[--chain NAME]': 'only this chain, by a name or id',
    '[--json]': 'one JSON document, also in a terminal',
    '[--once]': 'print the table once, also outside a terminal',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const known = await chainsOrDemo(await readSetup(context))
    const chosen = options.chain === undefined ? known : [chainNamed(createChainDirectory(known), options.chain)]
    const terminal: Terminal = context.stdout
    const isTerminal = terminal.isTTY === true && context.environment['TERM'] !== 'dumb'
    const isOnce = options['once'] !== undefined
    return withStore(context, async (knex) => {
      const read = () => listChains(knex, chosen, { now: new Date() })
      if (options['json'] !== undefined || !(isTerminal || isOnce)) return showJson(await read(), context)
      const style = () => styleOf(terminal, context)
      if (isOnce) return showTable(await read(), style(), context)
      const draw = (shown: readonly ListedChain[]) => drawPage(shown, chosen, style())
      await redraw(terminal, { everyMs: REFRESH_MS, signal: context.signal, read, draw })
      return EXIT_GOOD
    })
  },
}

type Style = Parameters<typeof drawChains>[1]

function styleOf(terminal: Terminal, { environment }: CommandContext): Style {
  const { columns = DEFAULT_COLUMNS, rows = DEFAULT_ROWS } = terminal
  const hasColour = terminal.isTTY === true && (environment['NO_COLOR'] ?? '') === ''
  return { width: columns, height: rows, hasColour, now: new Date() }
}

function drawPage(shown: readonly ListedChain[], chosen: readonly ChainConfig[], style: Style): readonly string[] {
  if (chosen.length === 0) return ['the chains file has no chains']
  const clock = `${style.now.toISOString().slice(11, 19)} UTC · Ctrl-C ends`.slice(0, style.width)
  return [clock, ...drawChains(shown, { ...style, height: Math.max(1, (style.height ?? DEFAULT_ROWS) - 1) })]
}

function showTable(shown: readonly ListedChain[], style: Style, { stdout }: CommandContext): number {
  for (const line of drawChains(shown, { ...style, height: undefined })) stdout.write(`${line}\n`)
  return exitCodeOf(shown)
}

function showJson(shown: readonly ListedChain[], { stdout }: CommandContext): number {
  const now = new Date()
  const chains = shown.map((chain) =>
    toJson(ChainSchema, create(ChainSchema, chainToProto(chain, true, now)), { alwaysEmitImplicit: true }),
  )
  stdout.write(`${JSON.stringify({ chains }, undefined, 2)}\n`)
  return exitCodeOf(shown)
}

function exitCodeOf(shown: readonly ListedChain[]): number {
  return shown.some(({ alarm }) => alarm !== undefined) ? EXIT_FAILED : EXIT_GOOD
}
