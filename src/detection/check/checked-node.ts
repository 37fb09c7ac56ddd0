import type { ContractRead } from '../../contracts/multicall.ts'
import type { RpcCall } from '../../nodes/json-rpc.ts'
import { createNodeLimits, type LimitedChain, type NodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient, type RpcClient } from '../../nodes/rpc-client.ts'
import { isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'

/** One node of one chain. */
export interface CheckedNode {
  readonly client: RpcClient
  readonly signal?: AbortSignal | undefined
}

/** How to reach one node. */
export interface NodeOptions {
  readonly url: string
  readonly chainId: number
  readonly clock: () => Date
  /** What the chains file states of the URL's limits. */
  readonly chains?: readonly LimitedChain[]
  /** What the process knows of its nodes' limits; by default what the chains file states alone. */
  readonly limits?: NodeLimits | undefined
  /** For one exchange with a node; default 10,000. */
  readonly timeoutMs?: number
  /** The longest pause that is waited for when a node asks for one. */
  readonly maxWaitMs?: number
  readonly signal?: AbortSignal | undefined
}

/** Makes a client for one URL alone, so that no other node answers in its place. */
export function openNode(options: NodeOptions): CheckedNode {
  const { url, signal, chains = [], limits = createNodeLimits(chains), ...rest } = options
  return { client: createRpcClient({ ...rest, urls: [url], limits }), signal }
}

/**
 * Makes one call.
 *
 * @returns the answer, or the node's error
 * @throws RpcError when the node does not answer
 */
export async function ask({ client, signal }: CheckedNode, call: RpcCall): Promise<unknown> {
  try {
    return await client.call(call.method, call.params, signal)
  } catch (error) {
    if (error instanceof RpcError && (!isTransportFailure(error) || error.kind === 'BEHIND')) return error
    throw error
  }
}

/** Calls a contract at the latest block. @returns the data, or the node's error */
export async function readContract(node: CheckedNode, { to, data }: ContractRead): Promise<string | RpcError> {
  const answer = await ask(node, { method: 'eth_call', params: [{ to, data }, 'latest'] })
  return answer instanceof RpcError ? answer : String(answer)
}

/** Whether data is one word of 32 bytes. */
export function isWord(data: string): boolean {
  return /^0x[0-9a-f]{64}$/i.test(data)
}

/**
 * The result of one check of a node, or of something on its chain:
 *
 * - `ok`: it is as the chains file says
 * - `note`: it is allowed, but the operator should know it
 * - `unknown`: this node cannot answer it
 * - `wrong`: the file, or the node, has to be changed
 */
export type Verdict = 'ok' | 'note' | 'unknown' | 'wrong'

export interface CheckedFact {
  /** What was checked: `chain id`, `code`, `fromBlock`, … */
  readonly check: string
  /** Of what: a contract's kind and version, a token's symbol; `-` for the node itself. */
  readonly subject: string
  readonly verdict: Verdict
  readonly detail: string
}

/** Makes the result of a check. */
type Judge = (verdict: Verdict, detail: string) => CheckedFact

export function judgeOf(check: string, subject: string): Judge {
  return (verdict, detail) => ({ check, subject, verdict, detail })
}
