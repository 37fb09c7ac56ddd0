import type { RpcCall } from '../../nodes/json-rpc.ts'
import { createRpcClient, type RpcClient } from '../../nodes/rpc-client.ts'
import { isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'

/**
 * What one look at a node, or at something on its chain, came to:
 *
 * - `ok`: as the chains file says
 * - `note`: allowed, and worth to know
 * - `unknown`: this node cannot tell
 * - `wrong`: the file, or the node, is to be changed
 */
export interface CheckedFact {
  /** What was looked at: `chain id`, `code`, `fromBlock`, … */
  readonly check: string
  /** What it was looked at of: a contract's kind and version, a token's symbol; `-` for the node itself. */
  readonly subject: string
  readonly verdict: 'ok' | 'note' | 'unknown' | 'wrong'
  readonly detail: string
}

/** One node of one chain, to be asked about. */
export interface CheckedNode {
  readonly client: RpcClient
  /** How many HTTP exchanges there were so far. */
  exchanges(): number
  readonly signal?: AbortSignal | undefined
}

/** Makes what the checks ask: a client for one URL alone, so that no other node answers in its place. */
export function openNode(options: {
  readonly url: string
  readonly chainId: number
  readonly clock: () => Date
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}): CheckedNode {
  const { url, signal, ...rest } = options
  let exchanges = 0
  const onExchange = () => {
    exchanges++
  }
  const client = createRpcClient({ ...rest, urls: [url], onExchange })
  return { client, exchanges: () => exchanges, ...(signal && { signal }) }
}

/**
 * Makes one call.
 *
 * @returns what the node answered instead where it refused
 * @throws RpcError when it does not answer
 */
export async function ask({ client, signal }: CheckedNode, call: RpcCall): Promise<unknown> {
  try {
    return await client.call(call.method, call.params, signal)
  } catch (error) {
    if (error instanceof RpcError && !isTransportFailure(error)) return error
    throw error
  }
}

/** The last of `low`…`high` for which the question holds, where it holds up to some number and not above; `low` is taken to. */
export async function lastThat(low: number, high: number, holds: (at: number) => Promise<boolean>): Promise<number> {
  let yes = low
  let no = high + 1
  while (no - yes > 1) {
    const middle = Math.floor((yes + no) / 2)
    if (await holds(middle)) yes = middle
    else no = middle
  }
  return yes
}
