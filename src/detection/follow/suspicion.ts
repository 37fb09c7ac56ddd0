import { RpcError } from '../../nodes/rpc-error.ts'
import { ChainMovedError } from './read-events.ts'

/** When a follower distrusts a node, and when it believes that a final block was replaced: values and rules, without I/O. */

/** What was noticed about the nodes of a chain. */
export interface Suspicion {
  /** Steps in a row whose answers contradicted each other, or what was read before. */
  readonly contradictions: number
  /** Present while nodes say that a final block was replaced. */
  readonly replacement?: Replacement | undefined
}

/** Nodes that say that a final block was replaced. */
interface Replacement {
  /** Since when: milliseconds since 1970. */
  readonly sinceMs: number
  /** By their place among the URLs. */
  readonly nodes: ReadonlySet<number>
}

export const NO_SUSPICION: Suspicion = { contradictions: 0 }

/** A URL may stand for several machines, which differ by some blocks for some seconds: a node is distrusted only after this many contradictions in a row. */
const CONTRADICTIONS_OF_A_NODE = 3

/** A node that does not answer cannot say whether a final block was replaced. It is waited for this long. */
const SILENT_NODE_MS = 60_000

/** Counts a contradiction. */
export function noteContradiction(suspicion: Suspicion): Suspicion {
  return { ...suspicion, contradictions: suspicion.contradictions + 1 }
}

/** Whether the contradictions so far are reason to ask another node. */
export function isContradictionOfNode({ contradictions }: Suspicion): boolean {
  return contradictions > 0 && contradictions % CONTRADICTIONS_OF_A_NODE === 0
}

/** What to do after a look at the chain failed. */
interface FailureDecision {
  /** Whether to ask other nodes first for a while. */
  readonly doubtsNode: boolean
  /** Whether to simply try again; otherwise the error goes to the caller. */
  readonly retries: boolean
  readonly suspicion: Suspicion
}

/** Decides what an error means for the node that answered last. */
export function decideFailure(error: unknown, suspicion: Suspicion): FailureDecision {
  if (error instanceof ChainMovedError) {
    const noted = noteContradiction(suspicion)
    return { doubtsNode: isContradictionOfNode(noted), retries: true, suspicion: noted }
  }
  // Another node may have what this one lacks. What is too large is so for every node.
  const doubtsNode = error instanceof RpcError && error.kind !== 'TOO_LARGE'
  return { doubtsNode, retries: false, suspicion }
}

/** Notes that nodes say that a final block was replaced. @param node - which of them said so now; undefined where that is unknown */
export function noteReplacement(suspicion: Suspicion, nowMs: number, node?: number): Suspicion {
  const { sinceMs, nodes } = suspicion.replacement ?? { sinceMs: nowMs, nodes: new Set<number>() }
  return { ...suspicion, replacement: { sinceMs, nodes: node === undefined ? nodes : new Set([...nodes, node]) } }
}

/**
 * Whether the replacement of a final block is certain. Only an operator ends an alarm, so all nodes that answer must agree, and nodes that are
 * silent are waited for.
 */
export function isReplacementCertain(
  { replacement }: Suspicion,
  { nodes, nowMs }: { readonly nodes: number; readonly nowMs: number },
): boolean {
  if (replacement === undefined) return false
  return replacement.nodes.size >= nodes || nowMs - replacement.sinceMs >= SILENT_NODE_MS
}
