import type { ChainConfig } from '../../chains/chains-file.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { checkContracts } from './check-contracts.ts'
import { checkNode } from './check-node.ts'
import { type CheckedFact, type CheckedNode, openNode } from './checked-fact.ts'

/** What is known of a chain from one of its RPC URLs. */
export interface CheckedUrl {
  /** The host, and which of several on it; the rest of a URL often is a key. */
  readonly node: string
  readonly facts: readonly CheckedFact[]
}

export interface CheckChainOptions {
  readonly clock: () => Date
  /** For one exchange with a node; default 10,000. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Holds a chain of the chains file against each of its nodes. Only reads.
 *
 * @returns one entry an RPC URL, in their order; what a node does not answer is `wrong` there, and nothing after it is asked
 * @throws the signal's reason
 */
export async function checkChain(config: ChainConfig, options: CheckChainOptions): Promise<CheckedUrl[]> {
  const names = nameNodes(config.rpcUrls)
  return Promise.all(
    config.rpcUrls.map(async (url, at) => {
      const facts = await checkUrl(config, url, options)
      const hide = hiderOf(url)
      return { node: names[at] ?? '', facts: facts.map((fact) => ({ ...fact, detail: hide(fact.detail) })) }
    }),
  )
}

async function checkUrl(config: ChainConfig, url: string, options: CheckChainOptions): Promise<CheckedFact[]> {
  const { clock, signal } = options
  const node = openNode({ ...options, url, chainId: config.chainId })
  const facts: CheckedFact[] = []
  try {
    for await (const fact of checkAll(node, config, clock)) facts.push(fact)
  } catch (error) {
    signal?.throwIfAborted()
    if (!(error instanceof RpcError)) throw error
    const check = error.kind === 'WRONG_CHAIN' ? 'chain id' : 'answers'
    facts.push({ check, subject: '-', verdict: 'wrong', detail: error.message })
  }
  return facts
}

async function* checkAll(node: CheckedNode, config: ChainConfig, clock: () => Date): AsyncGenerator<CheckedFact, void> {
  const ground = yield* checkNode(node, config, clock)
  if (ground !== undefined) yield* checkContracts(node, config, ground, clock)
}

function nameNodes(urls: readonly string[]): string[] {
  const hosts = urls.map((url) => new URL(url).host)
  return hosts.map((host, at) => {
    const before = hosts.slice(0, at).filter((other) => other === host).length
    return before === 0 ? host : `${host} (${before + 1})`
  })
}

const SHORTEST_SECRET = 6

/** Nodes quote keys in what they answer. */
function hiderOf(url: string): (text: string) => string {
  const { pathname, searchParams, username, password } = new URL(url)
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password]
  const secrets = parts.flatMap((part) => [part, decoded(part)]).filter((part) => part.length >= SHORTEST_SECRET)
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '…'), text)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
