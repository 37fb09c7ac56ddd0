import type { Logger } from '../../domain/logger.ts'
import type { Meter } from '../../domain/meter.ts'

/**
 * How a node answers wrongly:
 * - `STALE`: its head is old, or behind that of another node
 * - `OTHER_CHAIN`: it serves another chain, or another branch of it
 * - `LOGS`: it leaves logs out, or invents or changes some
 * - `CONTRADICTED`: it and another node give different logs of a final block, and neither can prove its own
 */
export type NodeFault = 'STALE' | 'OTHER_CHAIN' | 'LOGS' | 'CONTRADICTED'

/** A node that is suspected, as operators see it. */
export interface SuspectStatus {
  /** Host of its URL. */
  readonly node: string
  readonly reason: string
  readonly since: Date
}

interface Suspect extends SuspectStatus {
  readonly index: number
  readonly fault: NodeFault
  readonly times: number
  readonly triedMs: number
  readonly againMs: number
  /** Whether the node answers rightly now. @throws what asking it throws */
  readonly passes: () => Promise<boolean>
}

/** The nodes of a chain that have answered wrongly. Such a node is asked last, until it passes the check that it failed. */
export interface Suspects {
  /** Notes a node's fault, and leaves the node alone. @param index - its place among the URLs @param passes - whether it answers rightly again */
  add(index: number, fault: NodeFault, reason: string, passes: () => Promise<boolean>): void
  has(index: number): boolean
  /** Whether its answers may be wrong; those of a stale node are only late. */
  isDistrusted(index: number): boolean
  /** Checks those again whose time has come. */
  tryAgain(): Promise<void>
  list(): SuspectStatus[]
}

/** Time from the fault to the next check; doubled each time that the node fails it. */
const FIRST_WAIT_MS = 30_000
const MAX_WAIT_MS = 3_600_000

export interface SuspectsOptions {
  readonly network: string
  readonly hosts: readonly string[]
  readonly logger: Logger
  readonly meter: Meter
  readonly clock: () => Date
  /** Asks a node last until a time, milliseconds since 1970. */
  readonly leave: (index: number, untilMs: number) => void
  /** Default 30,000. */
  readonly firstWaitMs?: number | undefined
}

/** Makes the list of a chain, empty. */
export function createSuspects(options: SuspectsOptions): Suspects {
  const { network, hosts, logger, clock, leave, firstWaitMs = FIRST_WAIT_MS } = options
  const suspects = new Map<number, Suspect>()

  function keep(suspect: Omit<Suspect, 'triedMs' | 'againMs'>): void {
    // While two nodes contradict each other the chain waits, so they are asked again soon.
    const isContradicted = suspect.fault === 'CONTRADICTED'
    const waitMs = isContradicted ? firstWaitMs / 6 : Math.min(MAX_WAIT_MS, firstWaitMs * 2 ** (suspect.times - 1))
    const triedMs = clock().getTime()
    suspects.set(suspect.index, { ...suspect, triedMs, againMs: triedMs + waitMs })
    // It ends when the node passes the check, not by time.
    leave(suspect.index, Number.POSITIVE_INFINITY)
  }

  async function tryOne(suspect: Suspect): Promise<void> {
    const { index, node } = suspect
    const passes = await suspect.passes().catch(() => false)
    if (suspects.get(index) !== suspect) return
    if (!passes) return keep({ ...suspect, times: suspect.times + 1 })
    suspects.delete(index)
    leave(index, 0)
    logger.info({ chain: network, node }, 'the node answers rightly again and is taken back into use')
  }

  return {
    add(index, fault, reason, passes) {
      const node = hosts[index]
      if (node === undefined) return
      const known = suspects.get(index)
      if (known?.fault === fault) return
      options.meter.count('waybill_node_faults_total', { chain: network, node, fault })
      const fields = { chain: network, node, fault, reason }
      if (fault === 'STALE') logger.warn(fields, 'the node is behind and is left alone')
      else logger.error(fields, 'the node answers wrongly and is left alone')
      keep({ index, node, fault, reason, since: known?.since ?? clock(), times: known?.times ?? 1, passes })
    },
    has: (index) => suspects.has(index),
    isDistrusted: (index) => suspects.has(index) && suspects.get(index)?.fault !== 'STALE',
    async tryAgain() {
      const nowMs = clock().getTime()
      // The chain waits where no other node is left, so then none of them waits for long.
      const areAll = suspects.size === hosts.length
      const isDue = ({ triedMs, againMs }: Suspect) => againMs <= nowMs || (areAll && triedMs + firstWaitMs <= nowMs)
      for (const suspect of [...suspects.values()].filter(isDue)) await tryOne(suspect)
    },
    list: () => [...suspects.values()].map(({ node, reason, since }) => ({ node, reason, since })),
  }
}
