import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toJson } from '@bufbuild/protobuf'
import { ChainSchema } from '../../../gen/payments/v1/chain_pb.js'
import { chainToProto } from '../../api/services/operations-handler.ts'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { checkChain } from '../../detection/check/check-chain.ts'
import type { CheckedFact } from '../../detection/check/checked-node.ts'
import { findTakenBack } from '../../detection/repair/find-taken-back.ts'
import { type ChainState, type ListedChain, listChains } from '../../detection/report/list-chains.ts'
import { ChainFollowedError } from '../../detection/run/followed-chain.ts'
import { countAbove, type FoundAbove, type FoundTransaction } from '../../detection/sql/account-rows-repository.ts'
import { findChain, type StoredChain } from '../../detection/sql/chain-state-repository.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { createDatabaseClock } from '../../postgres/database-clock.ts'
import { CHAIN_LEASE_MS } from '../../store/leases-repository.ts'
import {
  type Command,
  type CommandContext,
  counted,
  EXIT_FAILED,
  EXIT_FAILING,
  EXIT_GOOD,
  EXIT_NOT_FOLLOWED,
  EXIT_UNDECIDED,
  parseBlock,
} from '../shared/command.ts'
import { chainNamed, chainsOrDemo, findChains, readSetup, requireChains } from '../shared/read-chains.ts'
import { withDetection } from '../shared/with-detection.ts'
import { STORE_VARIABLES, withStore } from '../shared/with-store.ts'
import { drawChains } from './chains-table.ts'

/** `chains check`: one line a fact, columns separated by tabs. */
const chainsCheck: Command = {
  path: ['chains', 'check'],
  summary:
    'Compare the chains file with what its nodes answer, one line a fact: chain, node, check, subject, verdict (ok, note, unknown, wrong), ' +
    'details. Exit code 1 when something is wrong.',
  takes: { '[--chain NAME]': 'only this chain, by a name or id' },
  environment: ['CHAINS_FILE'],
  async run({ options }, context) {
    const chains = await findChains(await readSetup(context), context)
    const chosen = options.chain === undefined ? chains.configured : [chainNamed(chains, options.chain)]
    const terms = { clock: () => new Date(), signal: context.signal }
    const checked = await Promise.all(chosen.map(async (config) => ({ config, urls: await checkChain(config, terms) })))
    let isWrong = false
    for (const { config, urls } of checked) {
      for (const { node, facts } of urls) {
        for (const { check, subject, verdict, detail } of facts) {
          context.stdout.write(`${[config.name, node, check, subject, verdict, oneLine(detail)].join('\t')}\n`)
        }
        context.stderr.write(`${config.name} at ${node}: ${tally(facts)}\n`)
        isWrong ||= facts.some(({ verdict }) => verdict === 'wrong')
      }
    }
    return isWrong ? EXIT_FAILED : EXIT_GOOD
  },
}

/** Details contain text from nodes, which may hold line breaks and control characters. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, ' ').slice(0, 300)
}

function tally(facts: readonly CheckedFact[]): string {
  return (['ok', 'note', 'unknown', 'wrong'] as const)
    .map((verdict) => `${facts.filter((fact) => fact.verdict === verdict).length} ${verdict}`)
    .join(', ')
}

/** `chains restart NAME --from BLOCK`: reports on standard error. */
const chainsRestart: Command = {
  path: ['chains', 'restart'],
  summary:
    'Delete the payments and refunds that were found on a chain above a block, final or not, and read the chain again from there. ' +
    'Repairs a chain that stopped because a reorg removed a final block. Stop the service first.',
  takes: {
    NAME: 'the chain, by a name or id',
    '--from BLOCK': 'the last block to keep, one that both branches share; a lower one is safe but takes longer',
  },
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ positionals: [word = ''], options }, context) {
    const block = parseBlock('from', options.from)
    const setup = await readSetup(context)
    const { config } = setup
    const chains = requireChains(setup)
    const chain = chainNamed(chains, word)
    const { name, chainId } = chain
    const logger = createLogger({ level: config.logLevel, stream: context.stderr })
    const say = (text: string) => void context.stderr.write(`${text}\n`)
    await withStore(context, async (knex) => {
      const stored = await findChain(knex, caip2Of(chainId))
      if (stored === undefined)
        return say(`nothing of ${name} is stored yet; the service reads it from its first block`)
      const clock = () => new Date()
      let found: FoundAbove = { payments: 0, refunds: 0 }
      // Counted while this process holds the chain's lease, and reported after the deletion.
      const count = async () => {
        found = await countAbove(knex, stored.chainId, block)
      }
      await withDetection({ knex, chains, logger }, async (detection, limits) => {
        refuseTakenBack(name, await findTakenBack({ knex, config: chain, limits, clock }, block))
        await detection.restartFrom(name, block, count).catch(explainFollowed)
      })
      say(explainRestart(stored, block, found))
      say(`done: the service reads ${name} from block ${block + 1} when it starts`)
    })
    return EXIT_GOOD
  },
}

/** Kept blocks are never read again, so a payment in one that the chain has removed would stay for ever. */
function refuseTakenBack(name: string, found: FoundTransaction | undefined): void {
  if (found === undefined) return
  throw new Error(
    `${name} no longer has the transaction ${found.txHash} in block ${found.blockNumber}, where a payment or refund was found; ` +
      'nothing was changed. Choose a lower block, one that both branches share',
  )
}

function explainRestart({ network, scannedBlock, finalBlock, alarm }: StoredChain, block: number, found: FoundAbove) {
  const stopped = alarm === undefined ? '' : ` It was stopped: ${alarm}.`
  return (
    `${network} was read up to block ${scannedBlock}, of which final up to ${finalBlock}.${stopped}\n` +
    `Deleted what was found above block ${block}: ${counted(found.payments, 'payment')} and ` +
    `${counted(found.refunds, 'refund')}. Those that the chain still has return with the same ids when it is read again. ` +
    'Requests and imported payments stay.'
  )
}

function explainFollowed(error: unknown): never {
  if (!(error instanceof ChainFollowedError)) throw error
  throw new Error(
    `${error.message}; nothing was changed. Stop every process of the service on this database first; one that was killed ` +
      `keeps its chains for ${CHAIN_LEASE_MS / 1_000} seconds`,
  )
}

const REFRESH_MS = 2_000
const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

/** `chains status`: in a terminal a table that is drawn again every 2 s; otherwise one JSON document. */
const chainsStatus: Command = {
  path: ['chains', 'status'],
  summary:
    'Show how each chain is followed: lag, heights, reorgs, back-fill, nodes, what is wrong. In a terminal a table that refreshes ' +
    'until Ctrl-C, otherwise one JSON document, as GET /v1/chains gives it. Exit code 1 when a chain is stopped by an alarm, else 4 when ' +
    'no process follows one, else 5 when one is failing; 3 when the database cannot be read.',
  exitWhenThrown: EXIT_UNDECIDED,
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
      const clock = createDatabaseClock(knex)
      await clock.measure()
      const read = () => listChains(knex, chosen, { now: clock.now() })
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

/** The states for which somebody has to act, the worst first. */
const exitCodes: readonly (readonly [ChainState, number])[] = [
  ['STOPPED', EXIT_FAILED],
  ['NOT_FOLLOWED', EXIT_NOT_FOLLOWED],
  ['FAILING', EXIT_FAILING],
]

function exitCodeOf(shown: readonly ListedChain[]): number {
  const worst = exitCodes.find(([bad]) => shown.some(({ state }) => state === bad))
  return worst?.[1] ?? EXIT_GOOD
}

export const commands: readonly Command[] = [chainsStatus, chainsCheck, chainsRestart]

/** What a terminal has beside a stream; absent where the output is a file or a pipe. */
export interface Terminal extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR = '\x1b[2J'
const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

interface Redrawing<T> {
  readonly everyMs: number
  readonly signal: AbortSignal
  /** Reads what is shown. */
  readonly read: () => Promise<T>
  /** Makes the lines of it; called again for a new size. */
  readonly draw: (shown: T) => readonly string[]
}

/**
 * Draws a page in place, again and again, until the signal fires; also at once when the terminal changes its size.
 *
 * @throws what `read` throws, with the cursor shown again
 */
export async function redraw<T>(terminal: Terminal, { everyMs, signal, read, draw }: Redrawing<T>): Promise<void> {
  let shown: T | undefined
  const write = () => {
    if (shown === undefined) return
    // The last line has no line break: at the bottom of the window it would scroll.
    const lines = draw(shown).map((line) => `${line}${CLEAR_LINE}`)
    terminal.write(`${HOME}${lines.join('\r\n')}${CLEAR_BELOW}`)
  }
  const onResize = () => {
    terminal.write(CLEAR)
    write()
  }
  terminal.on('resize', onResize)
  terminal.write(`${HIDE_CURSOR}${CLEAR}`)
  try {
    while (!signal.aborted) {
      shown = await read()
      write()
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  } finally {
    terminal.off('resize', onResize)
    terminal.write(`\r\n${SHOW_CURSOR}`)
  }
}
