import { isLogDue, type Logger } from '../../domain/logger.ts'
import type { Lane } from '../../nodes/node-policy.ts'
import { isTransportFailure } from '../../nodes/rpc-error.ts'
import { classifyDatabaseError } from '../../postgres/database-error.ts'
import type { Condition } from '../sql/chain-reports-repository.ts'

/** The health of a chain. */
export interface HealthStatus {
  /** Why the chain is stopped until an operator restarts it. */
  readonly alarm?: string | undefined
  /** Whether the last step reached a node; true before the first. */
  readonly reachable: boolean
  /** What keeps the chain from moving, an unreachable node included; absent while it moves. */
  readonly failing?: Condition | undefined
}

export type ChainHealth = ReturnType<typeof createChainHealth>

/** A URL may stand for several machines, which differ by some blocks for some seconds. */
const PATIENCE_MS = 10_000

interface Trouble extends Condition {
  /** Whether no node answered. */
  readonly isOutage: boolean
  /** Undefined while it was not logged: then it is not in the status either. */
  readonly loggedAtMs: number | undefined
}

/** Makes what tracks why a chain does not move. It shows that in the status, and logs it when it begins and every minute that it lasts. */
export function createChainHealth(options: {
  /** Fields of each log line. `lane` where the health is that of a part of the work. */
  readonly fields: { readonly chain: string; readonly lane?: Lane }
  readonly logger: Logger
  readonly clock: () => Date
}) {
  const { fields, logger, clock } = options
  let trouble: Trouble | undefined
  let alarm: { readonly text: string; readonly loggedAtMs: number } | undefined

  function moved(): void {
    if (trouble?.loggedAtMs !== undefined) {
      logger.info(fields, trouble.isOutage ? 'the chain answers again' : 'the chain moves again')
    }
    trouble = undefined
  }

  return {
    /** The chain moved, or there was nothing new. */
    moved,
    /** A look at the chain threw an error. */
    failed(error: unknown): void {
      const now = clock()
      const isOutage = isTransportFailure(error)
      trouble = continueTrouble(trouble, reasonOf(error), isOutage, now)
      if (!isLogDue(trouble.loggedAtMs, now.getTime())) return
      trouble = { ...trouble, loggedAtMs: now.getTime() }
      const failure = { ...fields, since: trouble.since, err: error }
      const level = isOutage || isPassing(error) ? levelOf(trouble, now) : 'error'
      if (isOutage) logger[level](failure, 'the chain does not answer; it is tried again')
      else logger[level](failure, 'a look at the chain failed; it is tried again')
    },
    /** A step read nothing and is to be repeated. That is normal while nodes catch up with each other: it counts as trouble once it has lasted 10 seconds. */
    waits(reason: string): void {
      const now = clock()
      if (trouble?.isOutage) moved()
      trouble = continueTrouble(trouble, reason, false, now)
      const { since, loggedAtMs } = trouble
      if (now.getTime() - since.getTime() < PATIENCE_MS || !isLogDue(loggedAtMs, now.getTime())) return
      trouble = { ...trouble, loggedAtMs: now.getTime() }
      const message = 'the chain does not move; it is tried again'
      logger[levelOf(trouble, now)]({ ...fields, since, reason }, message)
    },
    /** The chain is stopped for this reason; undefined: it is not stopped. */
    alarmed(text: string | undefined): void {
      const now = clock()
      if (text === undefined) {
        if (alarm !== undefined) logger.info(fields, 'the chain is followed again')
        alarm = undefined
        return
      }
      if (alarm?.text === text && !isLogDue(alarm.loggedAtMs, now.getTime())) return
      alarm = { text, loggedAtMs: now.getTime() }
      logger.error({ ...fields, alarm: text }, 'the chain is stopped until an operator restarts it')
    },
    status: (): HealthStatus => ({
      alarm: alarm?.text,
      reachable: trouble?.isOutage !== true,
      failing: trouble?.loggedAtMs === undefined ? undefined : { since: trouble.since, reason: trouble.reason },
    }),
  }
}

/** Trouble that lasts so long does not pass by itself: somebody is needed, and the line is an error. */
const LASTING_MS = 600_000

function levelOf({ since }: Trouble, now: Date): 'warn' | 'error' {
  return now.getTime() - since.getTime() >= LASTING_MS ? 'error' : 'warn'
}

/** Whether it is a failure of the database that passes by itself, as a failover does. */
function isPassing(error: unknown): boolean {
  return PASSING.has(classifyDatabaseError(error))
}

const PASSING = new Set(['unavailable', 'timeout', 'serialization'])

/** Before what the database says, the message has the whole statement: that is for the log. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isOfDatabase = 'severity' in error
  return isOfDatabase ? `the database refused: ${error.message.split(' - ').at(-1)}` : error.message
}

/** Trouble of the same kind continues under its newest reason; trouble of another kind starts over. */
function continueTrouble(trouble: Trouble | undefined, reason: string, isOutage: boolean, now: Date): Trouble {
  const before = trouble?.isOutage === isOutage ? trouble : undefined
  return { since: before?.since ?? now, reason, isOutage, loggedAtMs: before?.loggedAtMs }
}
