/**
 * A server with LI.FI's API for contract-calls quotes, which can also be slow or faulty. Questions and answers have LI.FI's own types, so
 * that a change of theirs fails the type check; the calldata is that of LI.FI's facet for Across V4.
 */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type {
  ContractCallsQuoteRequestToAmount,
  CustomStep,
  ErrorCode,
  FeeCost,
  LiFiStep,
  Token,
  ToolError,
} from '@lifi/types'
import { keccak256, toHex, zeroAddress } from 'viem'
import { serveLocally } from '../../demo/network/local-server.ts'
import {
  type AcrossDeposit,
  type EvmAddress,
  encodeAcrossDeposit,
  encodeForwardedFee,
  encodeReceiverMessage,
  MULTIPLIER_BASE,
  wordOfAddress,
} from '../../src/contracts/lifi-calldata.ts'

/** A token that the server knows. */
export interface LifiToken {
  readonly chainId: number
  /** The zero address is the native coin. */
  readonly address: string
  readonly symbol: string
  readonly decimals: number
  /** Price in US dollars with 8 decimals. */
  readonly usd: bigint
}

/** The costs of the quotes. */
export interface LifiTerms {
  /** Fees of the bridge and of LI.FI in millionths of the delivered value, included in the source amount. A call before the bridge pays LI.FI's. */
  readonly bridgeFee?: bigint
  readonly protocolFee?: bigint
  /** Price impact in millionths of the delivered value. */
  readonly impact?: bigint
  /** Base units by which `toAmount` exceeds `toAmountMin`. */
  readonly surplus?: bigint
}

/** An error in LI.FI's form. */
export interface LifiError {
  readonly message: string
  readonly code?: `${ErrorCode}` extends `${infer N extends number}` ? N : never
  readonly errors?: readonly Pick<ToolError, 'errorType' | 'code' | 'tool' | 'message'>[]
}

/** How the server answers; `quote` makes a valid quote. */
export type LifiBehaviour = (exchange: {
  readonly quote: () => LifiAnswer
  readonly response: ServerResponse
}) => void | Promise<void>

/** A quote with the optional fields that this server always sets. */
export type LifiAnswer = LiFiStep & Required<Pick<LiFiStep, 'estimate' | 'transactionRequest'>>

export interface LifiServer {
  readonly url: string
  /** The questions so far, in order. */
  readonly asked: readonly ContractCallsQuoteRequestToAmount[]
  /** The headers of those questions. */
  readonly headers: readonly IncomingHttpHeaders[]
  charge(terms: LifiTerms): void
  behave(behaviour: LifiBehaviour): void
  stop(): Promise<void>
}

export interface LifiServerOptions {
  readonly tokens: readonly LifiToken[]
  /** By chain id: the contract that wallets call, which pulls the source token, and the one that forwards LI.FI's fee. */
  readonly diamonds: Readonly<Record<number, EvmAddress>>
  readonly feeForwarders: Readonly<Record<number, EvmAddress>>
  /** By chain id: the contract to which Across delivers. */
  readonly receivers: Readonly<Record<number, EvmAddress>>
}

/** Receives LI.FI's fee. */
const FEE_RECIPIENT = `0x${'fee'.repeat(13)}f` as EvmAddress

export const quoteWell: LifiBehaviour = ({ quote, response }) => sendJson(response, 200, quote())

export function sendJson(
  response: ServerResponse,
  status: number,
  body: LifiAnswer | LifiError,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** Starts the server on loopback. */
export async function startLifiServer(options: LifiServerOptions): Promise<LifiServer> {
  const asked: ContractCallsQuoteRequestToAmount[] = []
  const headers: IncomingHttpHeaders[] = []
  let terms: LifiTerms = {}
  let behaviour = quoteWell
  const { url, stop } = await serveLocally((request, response) => {
    const answer = async () => {
      const question = (await json(request)) as ContractCallsQuoteRequestToAmount
      if (request.url !== '/v1/quote/contractCalls') return sendJson(response, 404, { message: 'no such path' })
      asked.push(question)
      headers.push(request.headers)
      await behaviour({ quote: () => quoteOf(question, terms, options), response })
    }
    answer().catch((error: unknown) => response.destroy(error as Error))
  })
  return {
    url,
    asked,
    headers,
    charge: (changed) => {
      terms = changed
    },
    behave: (changed) => {
      behaviour = changed
    },
    stop,
  }
}

const MILLION = 1_000_000n

/** A quote at fixed prices: the source amount is the value of the delivered amount and all costs. */
export function quoteOf(
  question: ContractCallsQuoteRequestToAmount,
  { bridgeFee = 0n, protocolFee = 0n, impact = 0n, surplus = 0n }: LifiTerms,
  { tokens, ...contracts }: LifiServerOptions,
): LifiAnswer {
  const tokenOf = (chain: number | string, address: string) => {
    const found = tokens.find((each) => each.chainId === chain && each.address.toLowerCase() === address.toLowerCase())
    if (found === undefined) throw new Error(`no token ${address} on ${chain}`)
    return found
  }
  const [from, to] = [tokenOf(question.fromChain, question.fromToken), tokenOf(question.toChain, question.toToken)]
  const toAmount = BigInt(question.toAmount) + surplus
  const valueInSource = (amount: bigint) =>
    ceil(amount * to.usd * 10n ** BigInt(from.decimals), from.usd * 10n ** BigInt(to.decimals))
  const share = (millionths: bigint) => (valueInSource(toAmount) * millionths) / MILLION
  const [bridgeAmount, protocolAmount] = [share(bridgeFee), share(protocolFee)]
  const fromAmount = valueInSource(toAmount) + bridgeAmount + protocolAmount + share(impact)
  const feeCosts = [
    feeCost('Relayer fee', from, bridgeAmount, true),
    feeCost('LIFI Fixed Fee', from, protocolAmount, true),
  ].filter(({ amount }) => amount !== '0')
  const isNative = from.address === zeroAddress
  const diamond = contracts.diamonds[from.chainId] ?? zeroAddress
  const action = {
    fromChainId: from.chainId,
    fromAmount: fromAmount.toString(),
    fromToken: asToken(from),
    fromAddress: question.fromAddress,
    toChainId: to.chainId,
    toToken: asToken(to),
  }
  const estimate = {
    tool: 'across',
    fromAmount: fromAmount.toString(),
    toAmount: toAmount.toString(),
    toAmountMin: question.toAmount,
    approvalAddress: isNative ? zeroAddress : diamond,
    feeCosts,
    gasCosts: [],
    executionDuration: 42.5,
  }
  const [call] = question.contractCalls
  const custom: CustomStep = {
    id: 'call',
    type: 'custom',
    tool: 'custom',
    toolDetails: toolDetails('custom'),
    action: {
      ...action,
      toContractAddress: call?.toContractAddress ?? '',
      toContractCallData: call?.toContractCallData ?? '',
      toFallbackAddress: question.toFallbackAddress ?? '',
      callDataGasLimit: call?.toContractGasLimit ?? '',
    },
    estimate,
  }
  const deposit = depositOf(question, contracts, { from, to, fromAmount, fee: protocolAmount, toAmount })
  return {
    id: 'step',
    type: 'lifi',
    tool: 'across',
    toolDetails: toolDetails('across'),
    action,
    estimate,
    includedSteps: [custom],
    transactionRequest: {
      from: question.fromAddress,
      to: diamond,
      chainId: from.chainId,
      data: encodeAcrossDeposit(deposit),
      value: `0x${(isNative ? fromAmount : 0n).toString(16)}`,
      gasLimit: `0x${(300_000).toString(16)}`,
      gasPrice: '0x1',
    },
  }
}

interface Priced {
  readonly from: LifiToken
  readonly to: LifiToken
  readonly fromAmount: bigint
  /** LI.FI's fee, included in `fromAmount`. */
  readonly fee: bigint
  readonly toAmount: bigint
}

/** The deposit that the wallet sends to LI.FI's diamond; with a fee of LI.FI, it has a call before the bridge. */
function depositOf(
  question: ContractCallsQuoteRequestToAmount,
  { feeForwarders, receivers }: Omit<LifiServerOptions, 'tokens'>,
  { from, to, fromAmount, fee, toAmount }: Priced,
): AcrossDeposit {
  const wallet = question.fromAddress as EvmAddress
  const source = from.address as EvmAddress
  const transactionId = keccak256(toHex(JSON.stringify(question)))
  const nowSec = Math.floor(Date.now() / 1_000)
  const bridged = fromAmount - fee
  const bridge = {
    transactionId,
    bridge: 'across',
    integrator: 'lifi-api',
    referrer: zeroAddress as EvmAddress,
    sendingAssetId: source,
    receiver: wallet,
    minAmount: bridged,
    destinationChainId: BigInt(to.chainId),
    hasSourceSwaps: fee > 0n,
    hasDestinationCall: true,
  }
  const across = {
    receiverAddress: wordOfAddress(receivers[to.chainId] ?? zeroAddress),
    refundAddress: wordOfAddress(wallet),
    sendingAssetId: wordOfAddress(source),
    receivingAssetId: wordOfAddress(to.address as EvmAddress),
    outputAmount: toAmount,
    outputAmountMultiplier: ceil(toAmount * MULTIPLIER_BASE, bridged),
    exclusiveRelayer: wordOfAddress(zeroAddress),
    quoteTimestamp: nowSec,
    fillDeadline: nowSec + 7_200,
    exclusivityParameter: 0,
    message: encodeReceiverMessage({ transactionId, swaps: callsOf(question), receiver: wallet }),
  }
  if (fee === 0n) return { bridge, across }
  const forwarder = feeForwarders[from.chainId] ?? (zeroAddress as EvmAddress)
  const swap = {
    callTo: forwarder,
    approveTo: forwarder,
    sendingAssetId: source,
    receivingAssetId: source,
    fromAmount,
    callData: encodeForwardedFee({ token: source, amount: fee }, FEE_RECIPIENT),
    requiresDeposit: true,
  }
  return { bridge, swaps: [swap], across }
}

/** The calls of a question in the form that the receiver makes them. */
function callsOf({ contractCalls, toToken }: ContractCallsQuoteRequestToAmount) {
  return contractCalls.map((call) => ({
    callTo: call.toContractAddress as EvmAddress,
    approveTo: (call.toApprovalAddress ?? call.toContractAddress) as EvmAddress,
    sendingAssetId: toToken as EvmAddress,
    receivingAssetId: toToken as EvmAddress,
    fromAmount: BigInt(call.fromAmount),
    callData: call.toContractCallData as `0x${string}`,
    requiresDeposit: false,
  }))
}

function ceil(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

function asToken({ chainId, address, symbol, decimals, usd }: LifiToken): Token {
  const priceUSD = (Number(usd) / 1e8).toString()
  return { chainId, address, symbol, decimals, name: symbol, priceUSD }
}

function feeCost(name: string, token: LifiToken, amount: bigint, included: boolean): FeeCost {
  const common = { name, description: name, percentage: '0', amountUSD: '0', included }
  return { ...common, token: asToken(token), amount: amount.toString() }
}

function toolDetails(key: string) {
  return { key, name: key, logoURI: '' }
}
