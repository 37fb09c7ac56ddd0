import type { ChainConfig } from '../../chains/chains-file.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { checkContracts } from './check-contracts.ts'
import { checkConversions, checkFeeds } from './check-feeds.ts'
import { checkLifi } from './check-lifi.ts'
import { checkNode } from './check-node.ts'
import { checkTokens } from './check-tokens.ts'
import type { CheckedFact } from './checked-fact.ts'
import { type CheckedNode, openNode } from './checked-node.ts'

/** The checks of a chain on one of its RPC URLs. */
interface CheckedUrl {
  /** The host, numbered where several URLs have it. The rest of a URL is often a key and is not shown. */
  readonly node: string
  readonly facts: readonly CheckedFact[]
}

interface CheckChainOptions {
  readonly clock: () => Date
  /** For one exchange with a node; default 10,000. */
  readonly timeoutMs?: number
  /** The longest pause that is waited for when a node asks for one; default 15,000. */
  readonly maxWaitMs?: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Checks a chain of the chains file against each of its nodes. Only reads.
 *
 * @returns one entry for each RPC URL, in their order. If a node stops answering, its last fact is `wrong` and it is not asked further
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
  const node = openNode({ maxWaitMs: 15_000, ...options, chains: [config], url, chainId: config.chainId })
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
  const state = yield* checkNode(node, config, clock)
  if (state === undefined) return
  yield* checkContracts(node, config, state)
  yield* checkTokens(node, config)
  yield* checkFeeds(node, config, clock)
  yield* checkConversions(node, config, clock)
  if (config.lifi !== undefined) yield* checkLifi(node, config.lifi)
}

/** The host of each URL, numbered where several have it: the rest of a URL is often a key. */
export function nameNodes(urls: readonly string[]): string[] {
  const hosts = urls.map((url) => new URL(url).host)
  return hosts.map((host, at) => {
    const before = hosts.slice(0, at).filter((other) => other === host).length
    return before === 0 ? host : `${host} (${before + 1})`
  })
}

const MIN_SECRET_LENGTH = 6

/** Nodes quote the keys of their URL in error messages. */
export function hiderOf(url: string): (text: string) => string {
  const { pathname, searchParams, username, password } = new URL(url)
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password]
  const secrets = parts.flatMap((part) => [part, decoded(part)]).filter((part) => part.length >= MIN_SECRET_LENGTH)
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '…'), text)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
