import type {
  ChainConfig,
  ConversionPath,
  LifiConfig,
  PaymentContractConfig,
  TokenConfig,
} from '../../chains/chains-file.ts'
import { addressesOfPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import { readPathRate } from '../../contracts/contract-reads.ts'
import { addressOfWord, FACET_QUESTIONS, RECEIVER_QUESTIONS } from '../../contracts/lifi-calldata.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import { decodeText, readSymbol } from '../../contracts/token-names.ts'
import { toQuantity } from '../../contracts/words.ts'
import { type Address, isZeroAddress } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { roundIn } from '../read/feed-rounds.ts'
import { pathRateIn } from '../read/path-rates.ts'
import type { NodeGround } from './check-node.ts'
import { ask, type CheckedFact, type CheckedNode, lastThat } from './checked-fact.ts'

/**
 * Looks at everything that the chains file says stands on the chain: code at each address, the block of each contract's creation,
 * decimals and symbols of tokens, the answers of feeds, the rates of conversion paths, what LI.FI's contracts say of each other.
 *
 * @throws RpcError when the node does not answer
 */
export async function* checkContracts(
  node: CheckedNode,
  config: ChainConfig,
  ground: NodeGround,
  clock: () => Date,
): AsyncGenerator<CheckedFact, void> {
  for (const { subject, address } of addressesOf(config)) yield await checkCode(node, subject, address)
  for (const contract of config.contracts) yield await checkFromBlock(node, contract, ground)
  for (const token of config.tokens) {
    yield await checkDecimals(node, token)
    yield await checkSymbol(node, token)
  }
  for (const priced of [config.native, ...config.tokens]) {
    if (priced.usdFeed !== undefined) yield await checkFeed(node, { ...priced, usdFeed: priced.usdFeed }, clock())
  }
  for (const path of config.conversion?.paths ?? []) {
    const into: PathEnd | undefined = [config.native, ...config.tokens].find(({ symbol }) => symbol === path.token)
    if (into === undefined || config.conversion === undefined) continue
    yield await checkPath(node, { contract: config.conversion.path, path, into }, clock())
  }
  if (config.lifi !== undefined) yield* checkLifi(node, config.lifi)
}

function addressesOf(config: ChainConfig): { subject: string; address: Address }[] {
  const feedOf = ({ symbol, usdFeed }: { symbol: string; usdFeed?: Address }) =>
    usdFeed === undefined ? [] : [{ subject: `feed ${symbol}`, address: usdFeed }]
  return [
    { subject: 'multicall', address: config.multicall },
    ...config.contracts.map((contract) => ({ subject: nameOf(contract), address: contract.address })),
    ...config.tokens.map(({ symbol, address }) => ({ subject: symbol, address })),
    ...[config.native, ...config.tokens].flatMap(feedOf),
    ...(config.intermediaries ?? []).map((address) => ({ subject: 'intermediary', address })),
    ...(config.swapIntermediaries ?? []).map((address) => ({ subject: 'swap intermediary', address })),
    ...(config.executors ?? []).map((address) => ({ subject: 'executor', address })),
    ...addressesOfLifi(config.lifi),
    ...namedAddresses('swapV2', config.swapV2, ['router', 'factory']),
    ...namedAddresses('swapV3', config.swapV3, ['factory', 'quoter', 'router']),
    ...namedAddresses('conversion', config.conversion, ['path']),
  ]
}

function addressesOfLifi(lifi: LifiConfig | undefined): { subject: string; address: Address }[] {
  if (lifi === undefined) return []
  const { feeContracts = [], spokePool } = lifi
  return [
    ...namedAddresses('lifi', lifi, ['diamond', 'receiverAcrossV4']),
    ...feeContracts.map((address) => ({ subject: 'lifi feeContract', address })),
    // The executor is among the executors.
    ...(spokePool === undefined ? [] : [{ subject: 'lifi spokePool', address: spokePool }]),
  ]
}

function namedAddresses<K extends string>(
  of: string,
  config: Readonly<Record<K, Address>> | undefined,
  names: readonly K[],
): { subject: string; address: Address }[] {
  return config === undefined ? [] : names.map((name) => ({ subject: `${of} ${name}`, address: config[name] }))
}

const nameOf = ({ kind, version }: PaymentContractConfig) => `${kind} ${version}`

/** Whether there is code; what the node answered instead where it does not have that state. */
async function hasCode(node: CheckedNode, address: Address, block: number | 'latest'): Promise<boolean | RpcError> {
  const tag = block === 'latest' ? block : toQuantity(block)
  const code = await ask(node, { method: 'eth_getCode', params: [address, tag] })
  return code instanceof RpcError ? code : code !== '0x' && code !== null
}

async function checkCode(node: CheckedNode, subject: string, address: Address): Promise<CheckedFact> {
  const found = await hasCode(node, address, 'latest')
  if (found instanceof RpcError) return { check: 'code', subject, verdict: 'unknown', detail: found.message }
  const detail = found ? address : `there is no contract at ${address}`
  return { check: 'code', subject, verdict: found ? 'ok' : 'wrong', detail }
}

type Judge = (verdict: CheckedFact['verdict'], detail: string) => CheckedFact

async function checkFromBlock(
  node: CheckedNode,
  contract: PaymentContractConfig,
  { head, oldestState }: NodeGround,
): Promise<CheckedFact> {
  const { address, fromBlock } = contract
  const judge: Judge = (verdict, detail) => ({ check: 'fromBlock', subject: nameOf(contract), verdict, detail })
  if (fromBlock > head.number) return judge('wrong', `block ${fromBlock} is above the head, ${head.number}`)
  if (oldestState === undefined) return judge('unknown', 'the node has no state')
  try {
    const created = await findCreation(node, address, { from: oldestState, to: head.number })
    if (created === undefined) return judge('unknown', 'there is no contract')
    return created > oldestState ? judgeCreation(judge, fromBlock, created) : judgeOldest(judge, fromBlock, oldestState)
  } catch (error) {
    if (!(error instanceof MissingState)) throw error
    return judge('unknown', error.message)
  }
}

/** The node said that it had a state, and now refuses it. */
class MissingState extends Error {}

/**
 * The block of a contract's creation, by halves: it has code from there on.
 *
 * @returns `from` also for one that is older; undefined where there is no contract
 * @throws MissingState
 */
async function findCreation(
  node: CheckedNode,
  address: Address,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number | undefined> {
  const isBare = async (block: number) => {
    const found = await hasCode(node, address, block)
    if (found instanceof RpcError) throw new MissingState(found.message)
    return !found
  }
  if (await isBare(to)) return undefined
  return (await isBare(from)) ? (await lastThat(from, to - 1, isBare)) + 1 : from
}

function judgeCreation(judge: Judge, fromBlock: number, created: number): CheckedFact {
  if (created === fromBlock) return judge('ok', `created at block ${created}`)
  if (created < fromBlock) {
    return judge('wrong', `created at block ${created}: what was paid before block ${fromBlock} is not found`)
  }
  return judge('note', `created at block ${created}: ${created - fromBlock} blocks are read in vain`)
}

/** Of a contract that is older than all state that the node has. */
function judgeOldest(judge: Judge, fromBlock: number, oldestState: number): CheckedFact {
  if (fromBlock > oldestState) {
    const lost = `what was paid before block ${fromBlock} is not found`
    return judge('wrong', `it was there at block ${oldestState} already: ${lost}`)
  }
  if (oldestState === 0) return judge('ok', 'it is there since block 0')
  return judge('unknown', `created at block ${oldestState} or before, of which the node has no state`)
}

async function read(node: CheckedNode, { to, data }: ContractRead): Promise<string | RpcError> {
  const answer = await ask(node, { method: 'eth_call', params: [{ to, data }, 'latest'] })
  return answer instanceof RpcError ? answer : String(answer)
}

async function checkDecimals(node: CheckedNode, { symbol, address, decimals }: TokenConfig): Promise<CheckedFact> {
  const answer = await read(node, readDecimals(address))
  const judge: Judge = (verdict, detail) => ({
    check: 'decimals',
    subject: symbol,
    verdict,
    detail,
  })
  if (answer instanceof RpcError) return judge('wrong', `decimals() fails: ${answer.message}`)
  if (!isWord(answer)) return judge('wrong', 'decimals() answers no number')
  const told = BigInt(answer)
  return told === BigInt(decimals) ? judge('ok', `${decimals}`) : judge('wrong', `${told}, and ${decimals} in the file`)
}

async function checkSymbol(node: CheckedNode, { symbol, address }: TokenConfig): Promise<CheckedFact> {
  const answer = await read(node, readSymbol(address))
  const judge: Judge = (verdict, detail) => ({
    check: 'symbol',
    subject: symbol,
    verdict,
    detail,
  })
  const told = answer instanceof RpcError ? undefined : decodeText(answer)
  if (told === undefined) return judge('unknown', 'symbol() answers no text')
  if (told === symbol) return judge('ok', told)
  const detail = `${JSON.stringify(told)} on the chain`
  return plainSymbol(told) === plainSymbol(symbol) ? judge('note', detail) : judge('wrong', `${detail}: another token?`)
}

/** Issuers write the tenge sign and a 0 in renamed tokens, and bridged ones are told apart by `.e` in files more than on chains. */
function plainSymbol(symbol: string): string {
  return symbol
    .toUpperCase()
    .replace('₮', 'T')
    .replace(/\.E$/, '')
    .replace(/(?<=.)0$/, '')
}

async function checkFeed(
  node: CheckedNode,
  { symbol, usdFeed, heartbeatSeconds = 0 }: { symbol: string; usdFeed: Address; heartbeatSeconds?: number },
  now: Date,
): Promise<CheckedFact> {
  const judge: Judge = (verdict, detail) => ({
    check: 'feed',
    subject: symbol,
    verdict,
    detail,
  })
  const [answer, decimals] = [await read(node, readLatestRound(usdFeed)), await read(node, readDecimals(usdFeed))]
  const round = answer instanceof RpcError ? undefined : roundIn({ ok: true, result: answer })
  if (round === undefined || round.answer <= 0n) return judge('wrong', 'latestRoundData() answers no price')
  if (decimals instanceof RpcError || !isWord(decimals)) return judge('wrong', 'decimals() answers no number')
  const ageSec = Math.round(now.getTime() / 1_000 - round.updatedAtSec)
  const isStale = ageSec > heartbeatSeconds
  const age = `its answer is ${ageSec} s old${isStale ? `, older than ${heartbeatSeconds} s: it counts as none` : ''}`
  return judge(isStale ? 'wrong' : 'ok', age)
}

interface PathEnd {
  readonly symbol: string
  /** Absent for the native coin. */
  readonly address?: Address
}

/** Without a rate nobody can pay by this path, and what is converted by another path is not counted. */
async function checkPath(
  node: CheckedNode,
  { contract, path, into }: { readonly contract: Address; readonly path: ConversionPath; readonly into: PathEnd },
  now: Date,
): Promise<CheckedFact> {
  const judge: Judge = (verdict, detail) => ({
    check: 'conversion',
    subject: `${path.from} to ${path.token}`,
    verdict,
    detail,
  })
  const answer = await read(node, readPathRate(contract, addressesOfPath(path, into)))
  if (answer instanceof RpcError) return judge('wrong', `getRate() fails: ${answer.message}`)
  const rate = pathRateIn({ ok: true, result: answer })
  if (rate === undefined) return judge('wrong', 'getRate() answers no rate')
  const ageSec = Math.round(now.getTime() / 1_000) - Number(rate.oldestSec)
  const limitSec = maxRateAgeSeconds(path)
  const age = `its oldest feed is ${ageSec} s old`
  return ageSec > limitSec ? judge('wrong', `${age}, older than ${limitSec} s: nothing is converted`) : judge('ok', age)
}

/** Whether the diamond serves what wallets would call, and the receiver works with the contracts that the file names. */
async function* checkLifi(node: CheckedNode, lifi: LifiConfig): AsyncGenerator<CheckedFact, void> {
  for (const { name, data } of FACET_QUESTIONS) {
    const told = await readAddress(node, lifi.diamond, data)
    const judge: Judge = (verdict, detail) => ({ check: 'lifi', subject: name, verdict, detail })
    if (told === undefined) yield judge('unknown', 'facetAddress() answers no address')
    else if (isZeroAddress(told)) yield judge('note', 'the diamond does not serve it: quotes that call it fail')
    else yield judge('ok', `served by ${told}`)
  }
  for (const [name, data] of Object.entries(RECEIVER_QUESTIONS)) {
    const wanted = lifi[name as keyof typeof RECEIVER_QUESTIONS]
    if (wanted === undefined) continue
    const told = await readAddress(node, lifi.receiverAcrossV4, data)
    const judge: Judge = (verdict, detail) => ({ check: 'lifi', subject: `receiver ${name}`, verdict, detail })
    if (told === undefined) yield judge('wrong', `the receiver tells no ${name}: another contract?`)
    else if (told === wanted) yield judge('ok', told)
    else yield judge('wrong', `${told}, and ${wanted} in the file`)
  }
}

async function readAddress(node: CheckedNode, to: Address, data: Hex): Promise<Address | undefined> {
  const answer = await read(node, { to, data })
  return answer instanceof RpcError || !isWord(answer) ? undefined : addressOfWord(answer.toLowerCase() as Hex)
}

function isWord(data: string): boolean {
  return /^0x[0-9a-f]{64}$/i.test(data)
}
