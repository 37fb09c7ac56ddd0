/**
 * The contracts of a demo chain: creation code from committed JSON, and the encoding of the demo's calls.
 */
import type { Abi, Address, Hex } from 'viem'
import { encodeDeployData, encodeFunctionData, parseAbi } from 'viem/utils'
import * as calls from '../../contracts/payment-calls.ts'
import type { Address as CanonicalAddress } from '../../domain/address.ts'
import chainlinkConversionPath from '../contracts/ChainlinkConversionPath.json' with { type: 'json' }
import circleLikeToken from '../contracts/CircleLikeToken.json' with { type: 'json' }
import delegatingProxy from '../contracts/DelegatingProxy.json' with { type: 'json' }
import demoAccount from '../contracts/DemoAccount.json' with { type: 'json' }
import demoEscrow from '../contracts/DemoEscrow.json' with { type: 'json' }
import demoExchange from '../contracts/DemoExchange.json' with { type: 'json' }
import demoExecutor from '../contracts/DemoExecutor.json' with { type: 'json' }
import demoPair from '../contracts/DemoPair.json' with { type: 'json' }
import demoToken from '../contracts/DemoToken.json' with { type: 'json' }
import erc20FeeProxy from '../contracts/ERC20FeeProxy.json' with { type: 'json' }
import erc20SwapToPay from '../contracts/ERC20SwapToPay.json' with { type: 'json' }
import erc20ConversionProxy from '../contracts/Erc20ConversionProxy.json' with { type: 'json' }
import ethConversionProxy from '../contracts/EthConversionProxy.json' with { type: 'json' }
import ethereumFeeProxy from '../contracts/EthereumFeeProxy.json' with { type: 'json' }
import feeForwarderDouble from '../contracts/FeeForwarderDouble.json' with { type: 'json' }
import feeOnTransferToken from '../contracts/FeeOnTransferToken.json' with { type: 'json' }
import lifiDouble from '../contracts/LifiDouble.json' with { type: 'json' }
import lookAlikeProxy from '../contracts/LookAlikeProxy.json' with { type: 'json' }
import multicall3 from '../contracts/Multicall3.json' with { type: 'json' }
import paymentBatch from '../contracts/PaymentBatch.json' with { type: 'json' }
import settableFeed from '../contracts/SettableFeed.json' with { type: 'json' }
import tetherLikeToken from '../contracts/TetherLikeToken.json' with { type: 'json' }

const CONTRACTS = {
  ChainlinkConversionPath: chainlinkConversionPath,
  CircleLikeToken: circleLikeToken,
  DelegatingProxy: delegatingProxy,
  DemoEscrow: demoEscrow,
  DemoExchange: demoExchange,
  DemoAccount: demoAccount,
  DemoExecutor: demoExecutor,
  DemoPair: demoPair,
  DemoToken: demoToken,
  ERC20FeeProxy: erc20FeeProxy,
  ERC20SwapToPay: erc20SwapToPay,
  Erc20ConversionProxy: erc20ConversionProxy,
  EthConversionProxy: ethConversionProxy,
  EthereumFeeProxy: ethereumFeeProxy,
  FeeForwarderDouble: feeForwarderDouble,
  FeeOnTransferToken: feeOnTransferToken,
  LifiDouble: lifiDouble,
  LookAlikeProxy: lookAlikeProxy,
  Multicall3: multicall3,
  PaymentBatch: paymentBatch,
  SettableFeed: settableFeed,
  TetherLikeToken: tetherLikeToken,
} as const

export type ContractName = keyof typeof CONTRACTS

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
  'function balanceOf(address owner) view returns (uint256)',
  'function set(int256 answer, uint256 updatedAt)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
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
export function encodeCreation(name: ContractName, args: readonly unknown[] = []): Hex {
  const { abi, bytecode } = CONTRACTS[name]
  return encodeDeployData({ abi: abi as Abi, bytecode: bytecode as Hex, args: args })
}

/** Multicall3's deployed code: what its creation code returns, which is everything after `CODECOPY RETURN INVALID`. */
export function multicall3RuntimeCode(): Hex {
  const creation = multicall3.bytecode
  const endOfPrelude = creation.indexOf('f3fe')
  return `0x${creation.slice(endOfPrelude + 'f3fe'.length)}`
}

export function encodeMint(token: Address, to: Address, value: bigint): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: ABI, functionName: 'mint', args: [to, value] }) }
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

/** The terms of every payment. Amounts in base units of the token or coin; with a zero `feeAddress` no fee is paid. */
interface PaymentTerms {
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
  return encodeFunctionData({ abi: demoAccount.abi as Abi, functionName: 'execute', args: [calls] })
}
