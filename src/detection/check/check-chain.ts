import type { ChainConfig, ConversionPath, LifiConfig } from '../../chains/chains-file.ts'
import { addressesOfPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readPathRate } from '../../contracts/contract-reads.ts'
import { addressOfWord, FACET_QUESTIONS, RECEIVER_QUESTIONS } from '../../contracts/lifi-calldata.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { roundIn } from '../read/block-prices.ts'
import { pathRateIn } from '../read/path-rates.ts'
import { checkContracts, checkDecimals, checkSymbol } from './check-contracts.ts'
import { checkNode } from './check-node.ts'
import {
  type CheckedFact,
  type CheckedNode,
  isWord,
  judgeOf,
  type NodeOptions,
  openNode,
  readContract,
} from './checked-node.ts'

/** The checks of a chain on one of its RPC URLs. */
interface CheckedUrl {
  /** The host, numbered where several URLs have it. The rest of a URL is often a key and is not shown. */
  readonly node: string
  readonly facts: readonly CheckedFact[]
}

type CheckChainOptions = Pick<NodeOptions, 'clock' | 'timeoutMs' | 'maxWaitMs' | 'signal'>

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

/** @throws RpcError when the node does not answer */
async function* checkAll(node: CheckedNode, config: ChainConfig, clock: () => Date): AsyncGenerator<CheckedFact, void> {
  const { native, tokens, conversion, lifi } = config
  const head = yield* checkNode(node, config, clock)
  if (head === undefined) return
  yield* checkContracts(node, config, head)
  for (const token of tokens) {
    yield await checkDecimals(node, token)
    yield await checkSymbol(node, token)
  }
  for (const { symbol, usdFeed, heartbeatSeconds } of [native, ...tokens]) {
    if (usdFeed !== undefined) yield await checkFeed(node, { symbol, usdFeed, heartbeatSeconds }, clock())
  }
  for (const path of conversion?.paths ?? []) {
    const into = [native, ...tokens].find(({ symbol }) => symbol === path.token)
    if (conversion === undefined || into === undefined) continue
    yield await checkPath(node, path, readPathRate(conversion.path, addressesOfPath(path, into)), clock())
  }
  if (lifi !== undefined) yield* checkLifi(node, lifi)
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

/**
 * Checks that LI.FI's diamond has the functions that wallets call, and that its receiver works with the contracts that the file names.
 *
 * @throws RpcError when the node does not answer
 */
async function* checkLifi(node: CheckedNode, lifi: LifiConfig): AsyncGenerator<CheckedFact, void> {
  for (const { name, data } of FACET_QUESTIONS) {
    const judge = judgeOf('lifi', name)
    const facet = await readAddress(node, lifi.diamond, data)
    if (facet === undefined) yield judge('unknown', 'facetAddress() answers no address')
    else if (isZeroAddress(facet)) yield judge('note', 'the diamond does not have it: quotes that call it fail')
    else yield judge('ok', `in ${facet}`)
  }
  for (const [name, data] of Object.entries(RECEIVER_QUESTIONS)) {
    const inFile = lifi[name as keyof typeof RECEIVER_QUESTIONS]
    if (inFile === undefined) continue
    const judge = judgeOf('lifi', `receiver ${name}`)
    const onChain = await readAddress(node, lifi.receiverAcrossV4, data)
    if (onChain === undefined) yield judge('wrong', `the receiver has no ${name}: another contract?`)
    else if (onChain === inFile) yield judge('ok', onChain)
    else yield judge('wrong', `${onChain}, and ${inFile} in the file`)
  }
}

async function readAddress(node: CheckedNode, to: Address, data: Hex): Promise<Address | undefined> {
  const answer = await readContract(node, { to, data })
  return answer instanceof RpcError || !isWord(answer) ? undefined : addressOfWord(answer.toLowerCase() as Hex)
}

/** Checks that a feed answers a price that is not stale. */
async function checkFeed(
  node: CheckedNode,
  priced: { readonly symbol: string; readonly usdFeed: Address; readonly heartbeatSeconds: number | undefined },
  now: Date,
): Promise<CheckedFact> {
  const { symbol, usdFeed, heartbeatSeconds = 0 } = priced
  const judge = judgeOf('feed', symbol)
  const answer = await readContract(node, readLatestRound(usdFeed))
  const decimals = await readContract(node, readDecimals(usdFeed))
  const round = answer instanceof RpcError ? undefined : roundIn({ ok: true, result: answer })
  if (round === undefined || round.answer <= 0n) return judge('wrong', 'latestRoundData() answers no price')
  if (decimals instanceof RpcError || !isWord(decimals)) return judge('wrong', 'decimals() answers no number')
  const ageSec = Math.round(now.getTime() / 1_000 - round.updatedAtSec)
  const age = `its answer is ${ageSec} s old`
  if (ageSec <= heartbeatSeconds) return judge('ok', age)
  return judge('wrong', `${age}, older than ${heartbeatSeconds} s: it is not used`)
}

/** Checks that a conversion path has a rate that is not stale. Without one nobody can pay by this path, and payments by other paths do not count. */
async function checkPath(
  node: CheckedNode,
  path: ConversionPath,
  rateRead: ContractRead,
  now: Date,
): Promise<CheckedFact> {
  const judge = judgeOf('conversion', `${path.from} to ${path.token}`)
  const answer = await readContract(node, rateRead)
  if (answer instanceof RpcError) return judge('wrong', `getRate() fails: ${answer.message}`)
  const rate = pathRateIn({ ok: true, result: answer })
  if (rate === undefined) return judge('wrong', 'getRate() answers no rate')
  const ageSec = Math.round(now.getTime() / 1_000) - Number(rate.oldestSec)
  const limitSec = maxRateAgeSeconds(path)
  const age = `its oldest feed is ${ageSec} s old`
  if (ageSec <= limitSec) return judge('ok', age)
  return judge('wrong', `${age}, older than ${limitSec} s: nothing can be converted`)
}
