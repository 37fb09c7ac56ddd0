import type { Logger } from '../../domain/logger.ts'
import { isTransportFailure } from '../../nodes/rpc-error.ts'

/** What keeps a chain from moving. */
export interface Failing {
  readonly since: Date
  readonly reason: string
}

/** How a chain fares. */
export interface HealthStatus {
  /** Why the chain is stopped until an operator repairs it. */
  readonly alarm?: string
  /** Whether the last look reached a node; true before the first. */
  readonly reachable: boolean
  /** What keeps the chain from moving, a node that does not answer included; absent while it moves. */
  readonly failing?: Failing
}

/**
 * Keeps and tells what keeps a chain from moving: nothing may do so in silence. Whatever it is stands in the status, and in the log
 * when it begins and every minute that it lasts.
 */
export interface ChainHealth {
  /** The chain moved, or there was nothing new. */
  moved(): void
  /** A look failed. */
  failed(error: unknown): void
  /** A look came to nothing. That is ordinary while nodes and blocks settle, so it counts once it has lasted. */
  waits(reason: string): void
  /** The chain is stopped, or undefined: is not. */
  alarmed(text: string | undefined): void
  status(): HealthStatus
}

const SAY_AGAIN_MS = 60_000
/** Nodes behind one address differ by some blocks for some seconds. */
const PATIENCE_MS = 10_000

interface Trouble extends Failing {
  readonly isOutage: boolean
  saidAtMs?: number
}

/** Makes the record of one chain. */
export function createChainHealth(options: {
  readonly network: string
  readonly logger: Logger
  readonly clock: () => Date
}): ChainHealth {
  const { network, logger, clock } = options
  let trouble: Trouble | undefined
  let alarm: { readonly text: string; saidAtMs: number } | undefined

  function isDue(saidAtMs: number | undefined, now: Date): boolean {
    return saidAtMs === undefined || now.getTime() - saidAtMs >= SAY_AGAIN_MS
  }

  /** The same kind of trouble goes on under its newest reason; another kind begins anew. */
  function note(reason: string, isOutage: boolean, now: Date): Trouble {
    const before = trouble?.isOutage === isOutage ? trouble : undefined
    trouble = {
      since: before?.since ?? now,
      reason,
      isOutage,
      ...(before?.saidAtMs === undefined ? {} : { saidAtMs: before.saidAtMs }),
    }
    return trouble
  }

  function moved(): void {
    if (trouble?.saidAtMs !== undefined) {
      logger.info({ network }, trouble.isOutage ? 'the chain answers again' : 'the chain moves on again')
    }
    trouble = undefined
  }

  return {
    moved,
    failed(error) {
      const now = clock()
      const isOutage = isTransportFailure(error)
      const noted = note(error instanceof Error ? error.message : String(error), isOutage, now)
      if (!isDue(noted.saidAtMs, now)) return
      noted.saidAtMs = now.getTime()
      const fields = { network, since: noted.since, err: error }
      if (isOutage) logger.warn(fields, 'the chain does not answer; it is tried again')
      else logger.error(fields, 'a look at the chain failed; it is tried again')
    },
    waits(reason) {
      const now = clock()
      if (trouble?.isOutage) moved()
      const noted = note(reason, false, now)
      if (now.getTime() - noted.since.getTime() < PATIENCE_MS || !isDue(noted.saidAtMs, now)) return
      noted.saidAtMs = now.getTime()
      logger.warn({ network, since: noted.since, reason }, 'the chain does not move; it is tried again')
    },
    alarmed(text) {
      const now = clock()
      if (text === undefined) {
        if (alarm !== undefined) logger.info({ network }, 'the chain is followed again')
        alarm = undefined
        return
      }
      if (alarm?.text === text && !isDue(alarm.saidAtMs, now)) return
      alarm = { text, saidAtMs: now.getTime() }
      logger.error({ network, alarm: text }, 'the chain is stopped until it is repaired')
    },
    status() {
      const said = trouble?.saidAtMs === undefined ? undefined : { since: trouble.since, reason: trouble.reason }
      return {
        ...(alarm === undefined ? {} : { alarm: alarm.text }),
        reachable: trouble?.isOutage !== true,
        ...(said === undefined ? {} : { failing: said }),
      }
    },
  }
}
