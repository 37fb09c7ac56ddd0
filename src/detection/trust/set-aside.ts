import type { Logger } from '../../domain/logger.ts'

/**
 * How a node answers wrongly:
 * - `STALE`: its head is old, or behind that of another node
 * - `OTHER_CHAIN`: it serves another chain, or another branch of it
 * - `LOGS`: it leaves logs out, or invents or changes some
 * - `CONTRADICTED`: it and another node give different answers about a final block, and neither can prove its own
 */
export type NodeFault = 'STALE' | 'OTHER_CHAIN' | 'LOGS' | 'CONTRADICTED'

/** A node that is set aside, as operators see it. */
export interface SuspectStatus {
  /** Host of its URL. */
  readonly node: string
  readonly reason: string
  readonly since: Date
}

interface Aside extends SuspectStatus {
  readonly fault: NodeFault
  /** When it is used again, if all that it gave is proven then. Infinity: when its head is right. */
  readonly againMs: number
}

/** Time until a node is used again; doubled with each fault in a row. */
const FIRST_WAIT_MS = 30_000
const MAX_WAIT_MS = 3_600_000
/** While two nodes contradict each other the chain waits, so they are asked again soon. */
const CONTRADICTED_WAIT_MS = 5_000

/** The nodes of a chain that have answered wrongly, by their places among the URLs: they are asked last, and not believed, for a time. */
export type SetAside = ReturnType<typeof createSetAside>

/** Makes the list of a chain, empty. @param leave - asks a node last until a time, milliseconds since 1970 */
export function createSetAside(options: {
  readonly network: string
  readonly hosts: readonly string[]
  readonly logger: Logger
  readonly clock: () => Date
  readonly leave: (index: number, untilMs: number) => void
}) {
  const { network, hosts, logger, clock, leave } = options
  const aside = new Map<number, Aside>()
  /** Faults in a row, and until when the next one counts as in a row. */
  const earlier = new Map<number, { readonly times: number; readonly untilMs: number }>()

  function againAfter(index: number, fault: NodeFault): number {
    if (fault === 'STALE' || fault === 'OTHER_CHAIN') return Number.POSITIVE_INFINITY
    const nowMs = clock().getTime()
    if (fault === 'CONTRADICTED') return nowMs + CONTRADICTED_WAIT_MS
    const { times, untilMs } = earlier.get(index) ?? { times: 0, untilMs: 0 }
    const inRow = nowMs < untilMs ? times : 0
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** inRow)
    earlier.set(index, { times: inRow + 1, untilMs: nowMs + 4 * waitMs })
    return nowMs + waitMs
  }

  function release(index: number): void {
    const node = aside.get(index)?.node
    aside.delete(index)
    leave(index, 0)
    logger.info({ chain: network, node }, 'the node is used again')
  }

  return {
    add(index: number, fault: NodeFault, reason: string): void {
      const node = hosts[index]
      if (node === undefined || aside.get(index)?.fault === fault) return
      const fields = { chain: network, node, fault, reason }
      if (fault === 'STALE') logger.warn(fields, 'the node is behind and is left alone')
      else logger.error(fields, 'the node answers wrongly and is left alone')
      const since = aside.get(index)?.since ?? clock()
      aside.set(index, { node, fault, reason, since, againMs: againAfter(index, fault) })
      leave(index, Number.POSITIVE_INFINITY)
    },
    has: (index: number) => aside.has(index),
    /** Whether its answers may be wrong; those of a stale node are only late. */
    isDistrusted: (index: number) => aside.has(index) && aside.get(index)?.fault !== 'STALE',
    /** Uses those again whose logs were wrong and whose time is over. Call it when all that such nodes gave is proven. */
    releaseDue(): void {
      const nowMs = clock().getTime()
      // The chain waits where no other node is left, so then none of them waits for long.
      const longestMs = aside.size === hosts.length ? FIRST_WAIT_MS : MAX_WAIT_MS
      for (const [index, { since, againMs }] of aside) {
        if (againMs <= nowMs || (againMs < Number.POSITIVE_INFINITY && since.getTime() + longestMs <= nowMs))
          release(index)
      }
    },
    /** Uses those again whose head was wrong and is right now. @param isRight - by index */
    releaseHeads(isRight: (index: number) => boolean): void {
      for (const [index, { againMs }] of aside) {
        if (againMs === Number.POSITIVE_INFINITY && isRight(index)) release(index)
      }
    },
    list: (): SuspectStatus[] => [...aside.values()].map(({ node, reason, since }) => ({ node, reason, since })),
  }
}
