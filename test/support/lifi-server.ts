/**
 * A server that speaks the shape of LI.FI's contract-calls quotes, with latency and faults. What it takes and gives is of LI.FI's own
 * types, so that a change of theirs fails the type check; its calldata is that of LI.FI's facet for Across V4.
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
import {
  type AcrossDeposit,
  type EvmAddress,
  encodeAcrossDeposit,
  encodeForwardedFee,
  encodeReceiverMessage,
  MULTIPLIER_BASE,
  wordOfAddress,
} from '../../src/contracts/lifi-calldata.ts'
import { serveLocally } from '../../src/demo/network/local-server.ts'

/** A token that the server knows, with its price in hundred-millionths of a US dollar. */
export interface LifiToken {
  readonly chainId: number
  /** The zero address is the native coin's. */
  readonly address: string
  readonly symbol: string
  readonly decimals: number
  readonly usd: bigint
}

/** What quotes take. */
export interface LifiTerms {
  /** Millionths of the worth, by the bridge and by LI.FI: both a part of what is taken. LI.FI's is taken by a call before the bridge. */
  readonly bridgeFee?: bigint
  readonly protocolFee?: bigint
  /** Millionths of the worth that are lost on the way. */
  readonly impact?: bigint
  /** Base units that more is expected than warranted. */
  readonly surplus?: bigint
}

/** What a server that errs says. */
export interface LifiError {
  readonly message: string
  readonly code?: `${ErrorCode}` extends `${infer N extends number}` ? N : never
  readonly errors?: readonly Pick<ToolError, 'errorType' | 'code' | 'tool' | 'message'>[]
}

/** How the next answers are given; `quote` is the good one. */
export type LifiBehaviour = (exchange: {
  readonly quote: () => LifiAnswer
  readonly response: ServerResponse
}) => void | Promise<void>

/** A quote with all that this server always gives. */
export type LifiAnswer = LiFiStep & Required<Pick<LiFiStep, 'estimate' | 'transactionRequest'>>

export interface LifiServer {
  readonly url: string
  /** What was asked, in order. */
  readonly asked: readonly ContractCallsQuoteRequestToAmount[]
  readonly headers: readonly IncomingHttpHeaders[]
  charge(terms: LifiTerms): void
  behave(behaviour: LifiBehaviour): void
  stop(): Promise<void>
}

export interface LifiServerOptions {
  readonly tokens: readonly LifiToken[]
  /** By chain id: what wallets call, which pulls the source token, and what takes LI.FI's fee. */
  readonly diamonds: Readonly<Record<number, EvmAddress>>
  readonly feeForwarders: Readonly<Record<number, EvmAddress>>
  /** By chain id: whom Across delivers to. */
  readonly receivers: Readonly<Record<number, EvmAddress>>
}

/** LI.FI's fee goes to it. */
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

/** Starts it on loopback. */
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

/** The answer to a question by fixed prices: what is delivered, and on top of it what everybody takes. */
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
  const worth = (amount: bigint) =>
    ceil(amount * to.usd * 10n ** BigInt(from.decimals), from.usd * 10n ** BigInt(to.decimals))
  const share = (millionths: bigint) => (worth(toAmount) * millionths) / MILLION
  const [ofBridge, ofProtocol] = [share(bridgeFee), share(protocolFee)]
  const fromAmount = worth(toAmount) + ofBridge + ofProtocol + share(impact)
  const feeCosts = [
    feeCost('Relayer fee', from, ofBridge, true),
    feeCost('LIFI Fixed Fee', from, ofProtocol, true),
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
  const deposit = depositOf(question, contracts, { from, to, fromAmount, fee: ofProtocol, toAmount })
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
  /** LI.FI's, a part of that. */
  readonly fee: bigint
  readonly toAmount: bigint
}

/** What LI.FI has a wallet send to its diamond; a fee of LI.FI's makes it a deposit with a call before the bridge. */
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

/** The calls of a question, as the receiver is told to make them. */
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
