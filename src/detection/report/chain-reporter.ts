import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import type { Lease } from '../../store/leases-repository.ts'
import {
  type ChainReport,
  NO_REORGS,
  type ReorgCount,
  readChainReport,
  writeChainReport,
} from '../sql/chain-reports-repository.ts'

/** The part of a report that the follower of the chain gives. */
export type FollowerFacts = Omit<ChainReport, 'process' | 'reorgs'>

export type ChainReporter = ReturnType<typeof createChainReporter>

interface ReporterOptions {
  readonly knex: Knex
  /** The lease on following the chain. */
  readonly lease: Lease
  /** CAIP-2. */
  readonly chainId: string
  /** Host and process id. */
  readonly process: string
  readonly logger: Logger
  readonly clock: () => Date
  /** Called before each report; undefined while another process follows the chain. */
  readonly facts: () => FollowerFacts | undefined
}

/** An unchanged report is stored again after this time, so that its age shows whether the process is alive. */
const REPEAT_AFTER_MS = 15_000

/** Makes what stores the report of the process that follows a chain, for `chains status` and for ListChains of any process. */
export function createChainReporter(options: ReporterOptions) {
  const { knex, lease, chainId, process, logger, clock, facts } = options
  /** Since this process began to follow the chain. */
  let reorgs = NO_REORGS
  /** Those that earlier processes counted; undefined until they are read. */
  let before: ReorgCount | undefined
  let written: string | undefined
  let writtenAtMs = Number.NEGATIVE_INFINITY

  async function writeIfDue(): Promise<void> {
    const known = facts()
    if (known === undefined) {
      // Another process counts reorgs now. Its count is read when this one follows the chain again.
      before = undefined
      reorgs = NO_REORGS
      written = undefined
      return
    }
    before ??= (await readChainReport(knex, chainId))?.reorgs ?? NO_REORGS
    const report: ChainReport = { process, reorgs: sumOf(before, reorgs), ...known }
    const text = JSON.stringify(report)
    const at = clock()
    if (text === written && at.getTime() - writtenAtMs < REPEAT_AFTER_MS) return
    await writeChainReport(knex, lease, { chainId, report, at })
    written = text
    writtenAtMs = at.getTime()
  }

  return {
    /** Counts a reorg. @param blocks - how many blocks it removed */
    reorged(blocks: number): void {
      reorgs = sumOf(reorgs, { count: 1, deepest: blocks, lastAt: clock().toISOString() })
    },
    /** Stores a report that differs from the last one, or after 15 s. Never throws, since a failed report must not stop the chain. */
    write: () =>
      writeIfDue().catch((err: unknown) => logger.debug({ chainId, err }, 'the report of the chain was not written')),
  }
}

function sumOf(before: ReorgCount, since: ReorgCount): ReorgCount {
  return {
    count: before.count + since.count,
    deepest: Math.max(before.deepest, since.deepest),
    lastAt: since.lastAt ?? before.lastAt,
  }
}
