import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import type { Lease } from '../../store/leases-repository.ts'
import { addReorg, type ChainReport, NO_REORGS, type ReorgCount } from '../sql/chain-report.ts'
import { readChainReport, writeChainReport } from '../sql/chain-reports-repository.ts'

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

const WRITE_EVERY_MS = 3_000
/** An unchanged report is stored again after this time, so that its age shows whether the process is alive. */
const REPEAT_AFTER_MS = 15_000

interface Reporter extends ReporterOptions {
  /** Since this process began to follow the chain. */
  reorgs: ReorgCount
  /** Those that earlier processes counted; undefined until they are read. */
  before: ReorgCount | undefined
  written: string | undefined
  writtenAtMs: number
}

/** Makes what stores the report of the process that follows a chain, for `chains status` and for ListChains of any process. */
export function createChainReporter(options: ReporterOptions) {
  const reporter: Reporter = {
    ...options,
    reorgs: NO_REORGS,
    before: undefined,
    written: undefined,
    writtenAtMs: Number.NEGATIVE_INFINITY,
  }
  const write = () => writeQuietly(reporter)
  return {
    /** Counts a reorg. @param blocks - how many blocks it removed */
    reorged(blocks: number): void {
      reporter.reorgs = addReorg(reporter.reorgs, blocks, options.clock())
    },
    /** Stores a report that differs from the last one, or after 15 s. Never throws, since a failed report must not stop the chain. */
    write,
    /** Writes every few seconds. @returns a function that writes a last report and ends it */
    start() {
      let writing: Promise<void> | undefined
      const timer = setInterval(() => {
        writing ??= write().finally(() => {
          writing = undefined
        })
      }, WRITE_EVERY_MS)
      return async () => {
        clearInterval(timer)
        await writing
        await write()
      }
    },
  }
}

async function writeQuietly(reporter: Reporter): Promise<void> {
  try {
    await writeIfDue(reporter)
  } catch (err) {
    reporter.logger.debug({ chainId: reporter.chainId, err }, 'the report of the chain was not written')
  }
}

async function writeIfDue(reporter: Reporter): Promise<void> {
  const { knex, lease, chainId, clock, facts } = reporter
  const known = facts()
  if (known === undefined) {
    // Another process counts reorgs now. Its count is read when this one follows the chain again.
    reporter.before = undefined
    reporter.reorgs = NO_REORGS
    reporter.written = undefined
    return
  }
  reporter.before ??= (await readChainReport(knex, chainId))?.reorgs ?? NO_REORGS
  const reorgs = sumOf(reporter.before, reporter.reorgs)
  const report: ChainReport = { process: reporter.process, reorgs, ...known }
  const text = JSON.stringify(report)
  const at = clock()
  if (text === reporter.written && at.getTime() - reporter.writtenAtMs < REPEAT_AFTER_MS) return
  await writeChainReport(knex, lease, { chainId, report, at })
  reporter.written = text
  reporter.writtenAtMs = at.getTime()
}

function sumOf(before: ReorgCount, since: ReorgCount): ReorgCount {
  return {
    count: before.count + since.count,
    deepest: Math.max(before.deepest, since.deepest),
    lastAt: since.lastAt ?? before.lastAt,
  }
}
