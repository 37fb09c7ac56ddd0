/**
 * The contracts of a demo chain: creation code from committed JSON, and the encoding of the demo's calls.
 */
import { createRequire } from 'node:module'
import type { Abi, Address, Hex } from 'viem'
import { encodeDeployData, encodeFunctionData, parseAbi } from 'viem/utils'
import * as calls from '../../src/contracts/payment-calls.ts'
import type { Address as CanonicalAddress } from '../../src/domain/address.ts'

const require = createRequire(import.meta.url)

/** What the compiler made of a contract. */
function contractNamed(name: string) {
  return require(`../contracts/${name}.json`) as { readonly abi: Abi; readonly bytecode: Hex }
}

/** The address of Multicall3 on every chain that has it. */
export const MULTICALL3_ADDRESS: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
export const ZERO_ADDRESS: Address = '0x0000000000000000000000000000000000000000'
export const MAX_UINT256 = 2n ** 256n - 1n
/** Decimals of fiat amounts in conversions. */
export const FIAT_DECIMALS = 8
/** Decimals of the demo's price feeds, the same as Chainlink's USD feeds. */
export const FEED_DECIMALS = 8

const ABI = parseAbi([
  'function mint(address to, uint256 value)',
  'function transfer(address to, uint256 value)',
  'function balanceOf(address owner) view returns (uint256)',
  'function set(int256 answer, uint256 updatedAt)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
  'function addToSanctionsList(address[] added)',
  'function removeFromSanctionsList(address[] removed)',
  'function updateAggregatorsList(address[] inputs, address[] outputs, address[] aggregators)',
])
/** Contracts take addresses in any case. */
const ours = (address: Address) => address as string as CanonicalAddress

/** A transaction to a contract. `value` in wei. */
export interface ContractCall {
  to: Address
  data: Hex
  value?: bigint
}

/** The creation code with the constructor's arguments. */
export function encodeCreation(name: string, args: readonly unknown[] = []): Hex {
  return encodeDeployData({ ...contractNamed(name), args })
}

/** Multicall3's deployed code: what its creation code returns, which is everything after `CODECOPY RETURN INVALID`. */
export function multicall3RuntimeCode(): Hex {
  const creation = contractNamed('Multicall3').bytecode
  const endOfPrelude = creation.indexOf('f3fe')
  return `0x${creation.slice(endOfPrelude + 'f3fe'.length)}`
}

export function encodeMint(token: Address, to: Address, value: bigint): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: ABI, functionName: 'mint', args: [to, value] }) }
}

export function encodeTransfer(token: Address, to: Address, value: bigint): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [to, value] }) }
}

export function encodeApprove(token: Address, spender: Address, value: bigint): ContractCall {
  return { to: token, data: calls.encodeApprove(ours(spender), value) }
}

export function encodeBalanceOf(token: Address, owner: Address): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: ABI, functionName: 'balanceOf', args: [owner] }) }
}

/** Writes a round of a feed. Without `updatedAtSec`, it has the time of its block. */
export function encodeSetFeed(feed: Address, answer: bigint, updatedAtSec?: number): ContractCall {
  const args = [answer, BigInt(updatedAtSec ?? 0)] as const
  return { to: feed, data: encodeFunctionData({ abi: ABI, functionName: 'set', args }) }
}

/** Adds wallets to the list of a screening oracle, or removes them. */
export function encodeListing(oracle: Address, wallets: readonly Address[], isListed: boolean): ContractCall {
  const functionName = isListed ? 'addToSanctionsList' : 'removeFromSanctionsList'
  return { to: oracle, data: encodeFunctionData({ abi: ABI, functionName, args: [wallets] }) }
}

export function encodeLatestRound(feed: Address): ContractCall {
  return { to: feed, data: encodeFunctionData({ abi: ABI, functionName: 'latestRoundData' }) }
}

export function encodeAggregators(
  conversionPath: Address,
  aggregators: readonly { input: Address; output: Address; feed: Address }[],
): ContractCall {
  const inputs = aggregators.map((aggregator) => aggregator.input)
  const outputs = aggregators.map((aggregator) => aggregator.output)
  const feeds = aggregators.map((aggregator) => aggregator.feed)
  const data = encodeFunctionData({ abi: ABI, functionName: 'updateAggregatorsList', args: [inputs, outputs, feeds] })
  return { to: conversionPath, data }
}

/** The terms of every payment. Amounts in base units of the token or coin, of a conversion in fiat with 8 decimals; with a zero `feeAddress` no fee is paid. */
export interface PaymentTerms {
  to: Address
  amount: bigint
  /** 8 bytes. */
  paymentReference: Hex
  feeAmount?: bigint
  feeAddress?: Address
}

/** Amount and fee in the invoice currency: fiat with 8 decimals. */
interface ConversionTerms extends PaymentTerms {
  path: readonly Address[]
  maxRateTimespanSec: bigint
}

function paymentOf({ to, amount, paymentReference, feeAmount = 0n, feeAddress = ZERO_ADDRESS }: PaymentTerms) {
  return { to: ours(to), amount, paymentReference, feeAmount, feeAddress: ours(feeAddress) }
}

function conversionOf({ path, maxRateTimespanSec, ...terms }: ConversionTerms) {
  return { ...paymentOf(terms), path: path.map(ours), maxRateAgeSeconds: Number(maxRateTimespanSec) }
}

export function encodeErc20Payment(proxy: Address, token: Address, terms: PaymentTerms): ContractCall {
  return { to: proxy, data: calls.encodeErc20Payment(ours(token), paymentOf(terms)) }
}

/** With `exact`, the function that takes the amount and returns the rest; else the one that pays out everything except the fee. */
export function encodeNativePayment(proxy: Address, terms: PaymentTerms, exact: boolean): ContractCall {
  const { to, amount, paymentReference, feeAmount = 0n, feeAddress = ZERO_ADDRESS } = terms
  const data = exact
    ? calls.encodeNativePayment(paymentOf(terms))
    : encodeFunctionData({
        abi: calls.NATIVE_FEE_PROXY,
        functionName: 'transferWithReferenceAndFee',
        args: [to, paymentReference, feeAmount, feeAddress],
      })
  return { to: proxy, data, value: amount + feeAmount }
}

export function encodeErc20Conversion(proxy: Address, terms: ConversionTerms, maxToSpend: bigint): ContractCall {
  return { to: proxy, data: calls.encodeErc20Conversion({ ...conversionOf(terms), maxToSpend }) }
}

/** `value` in wei is the limit; the proxy returns the rest. */
export function encodeNativeConversion(proxy: Address, terms: ConversionTerms, value: bigint): ContractCall {
  return { to: proxy, data: calls.encodeNativeConversion(conversionOf(terms)), value }
}

/** Where the account is deployed to which wallets delegate that make batches. */
export const DEMO_ACCOUNT_ADDRESS: Address = '0x7702000000000000000000000000000000007702'

/** The code of an account that delegates (EIP-7702). */
export const DELEGATED_CODE: Hex = `0xef0100${DEMO_ACCOUNT_ADDRESS.slice(2)}`

/** Several calls of a delegated account, made as one. */
export function encodeExecute(
  calls: readonly { readonly target: Address; readonly value: bigint; readonly data: Hex }[],
): Hex {
  return encodeFunctionData({ abi: contractNamed('DemoAccount').abi, functionName: 'run', args: [calls] })
}
