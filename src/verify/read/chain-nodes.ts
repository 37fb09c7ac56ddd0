import { setTimeout as wait } from 'node:timers/promises'
import type { ChainConfig } from '../../chains/chains-file.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'

/** The nodes of a chain, asked one by one, since a proof depends on which node gave an answer. */
export interface ChainNodes {
  /** How many there are. A node is named by its place among the URLs, from 0. */
  readonly count: number
  /** The host of a node: the rest of a URL may be a key. */
  hostOf(node: number): string
  /** @throws RpcError when the node does not answer after some attempts; the signal's reason */
  ask(node: number, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]>
  /** Tries work on the nodes in turn until one succeeds; begins with the one that succeeded last. @throws the first error where all fail */
  onAny<T>(work: (node: number) => Promise<T>): Promise<T>
}

/** Some blocks have receipts of many megabytes. */
const TIMEOUT_MS = 60_000
const ATTEMPTS = 4
const FIRST_PAUSE_MS = 250
/** A node that asks for a longer pause, or whose daily budget is used up, counts as one that does not answer. */
const MAX_PAUSE_MS = 60_000

/** Makes the nodes of a chain. Does nothing until they are asked. */
export function openNodes(
  { rpcUrls, chainId }: Pick<ChainConfig, 'rpcUrls' | 'chainId'>,
  {
    clock,
    limits,
    signal,
  }: {
    readonly clock: () => Date
    readonly limits?: NodeLimits | undefined
    readonly signal?: AbortSignal | undefined
  },
): ChainNodes {
  const client = createRpcClient({ urls: rpcUrls, chainId, clock, limits, timeoutMs: TIMEOUT_MS })
  const hosts = rpcUrls.map((url) => new URL(url).host)
  let preferred = 0

  async function ask(node: number, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        const asked = await client.tryBatch((each) => (each === node ? calls : undefined), signal)
        if (asked !== undefined) return asked.answers
        throw new RpcError('UNREACHABLE', 'the node was not asked', { host: hosts[node] })
      } catch (error) {
        signal?.throwIfAborted()
        const isLongPause = error instanceof RpcError && (error.retryAfterMs ?? 0) > MAX_PAUSE_MS
        if (attempt === ATTEMPTS || isLongPause || !isTransportFailure(error)) throw error
        await wait(error.retryAfterMs ?? FIRST_PAUSE_MS * 4 ** (attempt - 1), undefined, { signal })
      }
    }
  }

  async function onAny<T>(work: (node: number) => Promise<T>): Promise<T> {
    const order = [preferred, ...[...hosts.keys()].filter((node) => node !== preferred)]
    let failure: unknown
    for (const node of order) {
      try {
        const done = await work(node)
        preferred = node
        return done
      } catch (error) {
        signal?.throwIfAborted()
        if (!(error instanceof RpcError)) throw error
        failure ??= error
      }
    }
    throw failure
  }

  return { count: hosts.length, hostOf: (node) => hosts[node] ?? '', ask, onAny }
}

/**
 * Asks the nodes in turn until the answers of one are accepted.
 *
 * @returns undefined where no node gives such answers
 * @throws RpcError when no node answers; the signal's reason
 */
export async function askUntil(
  nodes: ChainNodes,
  calls: readonly RpcCall[],
  isAccepted: (answers: readonly RpcAnswer[]) => boolean,
): Promise<readonly RpcAnswer[] | undefined> {
  try {
    return await nodes.onAny(async (node) => {
      const answers = await nodes.ask(node, calls)
      if (isAccepted(answers)) return answers
      throw new RpcError('REFUSED', 'the node does not have what was asked', { host: nodes.hostOf(node) })
    })
  } catch (error) {
    if (error instanceof RpcError && !isTransportFailure(error)) return undefined
    throw error
  }
}

/** The results of calls that must all succeed. @throws RpcError */
export function resultsOf(answers: readonly RpcAnswer[]): unknown[] {
  return answers.map((answer) => {
    if (!answer.ok) throw answer.error
    return answer.result
  })
}
