import { followedContracts } from '../../chains/chains-file.ts'
import { describeDuration } from '../../detection/backfill/backfill-progress.ts'
import { type BackfillPlan, planBackfill } from '../../detection/backfill/plan-backfill.ts'
import { hiderOf } from '../../detection/check/check-chain.ts'
import { createLogger } from '../../observability/create-logger.ts'
import type { Command } from '../command.ts'
import { withNodeLimits } from '../keep-limits.ts'
import { chainNamed, findChains, readSetup } from '../read-chains.ts'
import { EXIT_FAILED, EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withStore } from '../with-store.ts'

/** `chains plan`: a table on standard output, or JSON. */
export const chainsPlan: Command = {
  path: ['chains', 'plan'],
  summary:
    'Estimate what reading the old blocks of chains takes: blocks, calls to nodes, and time by the rate and the daily budget of the nodes. ' +
    'Reads a few ranges of logs for that, and changes no payment. Exit code 1 when a chain does not answer.',
  options: [
    { name: 'chain', value: 'NAME', help: 'only this chain, by a name or id' },
    { name: 'json', help: 'one JSON object a line' },
  ],
  environment: [...STORE_VARIABLES, 'CHAINS_FILE'],
  async run({ options }, context) {
    const setup = await readSetup(context)
    const chains = await findChains(setup, context)
    const chosen = options.chain === undefined ? chains.configured : [chainNamed(chains, options.chain)]
    const followed = chosen.filter((config) => followedContracts(config).length > 0)
    const { signal, stdout, stderr } = context
    const logger = createLogger({ level: setup.config.logLevel, stream: stderr })
    return withStore(setup.config, context, async (knex) => {
      const clock = () => new Date()
      const plans = await withNodeLimits({ knex, chains, logger }, (limits) =>
        Promise.allSettled(followed.map((config) => planBackfill({ knex, config, limits, clock, signal }))),
      )
      signal.throwIfAborted()
      const made = plans.flatMap((plan) => (plan.status === 'fulfilled' ? [plan.value] : []))
      stdout.write(
        options.json === undefined ? tableOf(made) : made.map((plan) => `${JSON.stringify(plan)}\n`).join(''),
      )
      for (const [at, plan] of plans.entries()) {
        const config = followed[at]
        if (plan.status === 'fulfilled' || config === undefined) continue
        const message = config.rpcUrls.reduce((text, url) => hiderOf(url)(text), (plan.reason as Error).message)
        stderr.write(`${config.name}: ${message}\n`)
      }
      return made.length === plans.length ? EXIT_GOOD : EXIT_FAILED
    })
  },
}

const HEADINGS = [
  'CHAIN',
  'FROM',
  'TO',
  'BLOCKS',
  'BLOCKS/CALL',
  'EVENTS',
  'RECEIPTS',
  'CALLS',
  'REQUESTS',
  'REQUESTS/S',
  'TIME',
]

function tableOf(plans: readonly BackfillPlan[]): string {
  const rows = [HEADINGS, ...plans.map(cellsOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  '),
  )
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}

function cellsOf(plan: BackfillPlan): string[] {
  const { blocks, blocksPerCall, events, knownEvents, calls, requests, requestsPerSecond } = plan
  const numbers = [blocks, blocksPerCall, events, knownEvents, calls, requests].map((n) => n.toLocaleString('en'))
  const ends = [plan.from, plan.to].map((block) => block?.toString() ?? '-')
  const rate = blocks === 0 ? '-' : requestsPerSecond.toFixed(1)
  return [plan.network, ...ends, ...numbers, rate, blocks === 0 ? 'nothing to read' : timeOf(plan)]
}

function timeOf({ seconds, boundBy }: BackfillPlan): string {
  if (seconds === undefined) return 'never: following uses the whole daily budget'
  return `${describeDuration(seconds)}${boundBy === 'BUDGET' ? ', bound by the daily budget' : ''}`
}
