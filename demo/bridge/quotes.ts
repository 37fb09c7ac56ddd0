import { randomBytes, randomUUID } from 'node:crypto'
import type { ContractCallsQuoteRequestToAmount, CustomStep, FeeCost, LiFiStep, Token } from '@lifi/types'
import type { Address, Hex } from 'viem'
import { decodeAbiParameters, getAddress, isAddress, isHex, parseAbiParameters } from 'viem/utils'
import { type EvmAddress, encodeReceiverMessage, wordOfAddress } from '../../src/contracts/lifi-calldata.ts'
import { USUAL_BLOCK_SEC } from '../network/chain-specs.ts'
import { encodeBalanceOf, encodeLatestRound, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import { toQuantity } from '../network/rpc.ts'
import { type BridgeChain, type BridgeToken, tokenAt } from './bridge-chain.ts'
import { type Deposit, encodeDeposit, idOfDeposit, isCoin } from './deposit.ts'

/** The bridge's name in routes and statuses. */
export const TOOL = 'demo-bridge'

/** Why a request to the bridge is refused, with LI.FI's error code. */
export class QuestionFault extends Error {
  override readonly name = 'QuestionFault'
  readonly code: 1002 | 1003 | 1011
  /** LI.FI's tool code, when it is the bridge that has no quote. */
  readonly toolCode: 'INSUFFICIENT_LIQUIDITY' | undefined

  constructor(code: 1002 | 1003 | 1011, message: string, toolCode?: 'INSUFFICIENT_LIQUIDITY') {
    super(message)
    this.code = code
    this.toolCode = toolCode
  }
}

/** How long after the quote the relayer may deliver. */
const DELIVER_WITHIN_SEC = 3_600

/** Seconds for the blocks of deposit and delivery, counted like those of other payments, so that routes are comparable. */
const DURATION_SEC = 2 * USUAL_BLOCK_SEC

/** Measured gas: a deposit of a token that the escrow already holds, the extra gas when it holds none, and a deposit of the native coin. */
const DEPOSIT_GAS = 122_000n
const FIRST_DEPOSIT_GAS = 17_100n
const COIN_DEPOSIT_GAS = 104_000n
/** A delivery to accounts that never held the token, with a platform fee. */
const DELIVERY_GAS = 147_000n

interface Question {
  source: BridgeChain
  destination: BridgeChain
  from: BridgeToken
  to: BridgeToken
  payer: Address
  fallbackTo: Address
  wanted: bigint
  call: Hex
  gasLimit: string
}

/**
 * Answers LI.FI's contract-calls request with a quote signed by the relayer.
 *
 * @param asked - the body of the request, not checked yet
 * @param nowSec - Unix time
 * @throws QuestionFault
 */
export async function quote(chains: readonly BridgeChain[], asked: unknown, nowSec: number): Promise<LiFiStep> {
  const question = readQuestion(chains, asked)
  const { source, destination, from, payer } = question
  const [price, head, other] = await Promise.all([priceOf(question), source.client.head(), destination.client.head()])
  // The contracts go by the times of blocks, which may be ahead.
  const quotedSec = Math.max(nowSec, head.timestampSec)
  const deliverUntilSec = Math.max(quotedSec, other.timestampSec) + DELIVER_WITHIN_SEC
  const deposit = depositFor(question, price.amount, { quotedSec, deliverUntilSec })
  const id = idOfDeposit(source.chainId, source.escrow, deposit)
  const signature = await source.client.rpc.call<Hex>('eth_sign', [source.relayer, id])
  const { data, value = 0n } = encodeDeposit(source.escrow, deposit, signature)
  const gasLimit = toQuantity(await gasOfDeposit(source, from))
  const transactionRequest = {
    from: payer,
    to: source.escrow,
    chainId: source.chainId,
    data,
    value: toQuantity(value),
    gasLimit,
    gasPrice: toQuantity(head.baseFeePerGas + source.tipPerGas),
  }
  return { ...describe(question, price), transactionRequest }
}

function depositFor(
  question: Question,
  amount: bigint,
  { quotedSec, deliverUntilSec }: { quotedSec: number; deliverUntilSec: number },
): Deposit {
  const { destination, from, to, payer, wanted } = question
  return {
    transactionId: randomId(),
    token: from.address,
    amount,
    toChainId: BigInt(destination.chainId),
    across: {
      receiverAddress: wordOfAddress(destination.executor),
      refundAddress: wordOfAddress(payer),
      sendingAssetId: wordOfAddress(from.address),
      receivingAssetId: wordOfAddress(to.address),
      outputAmount: wanted,
      outputAmountMultiplier: 0n,
      exclusiveRelayer: wordOfAddress(destination.relayer),
      quoteTimestamp: quotedSec,
      fillDeadline: deliverUntilSec,
      exclusivityParameter: 0,
      message: messageFor(question),
    },
  }
}

/** The executor calls the payment contract; the wallet gets what is left over. */
function messageFor({ destination, to, fallbackTo, wanted, call }: Question): Hex {
  const [proxy, token] = [destination.feeProxy as EvmAddress, to.address as EvmAddress]
  const made = { callTo: proxy, approveTo: proxy, sendingAssetId: token, receivingAssetId: token }
  const swaps = [{ ...made, fromAmount: wanted, callData: call, requiresDeposit: false }]
  return encodeReceiverMessage({ transactionId: randomId(), swaps, receiver: fallbackTo })
}

function randomId(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

function readQuestion(chains: readonly BridgeChain[], asked: unknown): Question {
  const question = (
    typeof asked === 'object' && asked !== null ? asked : {}
  ) as Partial<ContractCallsQuoteRequestToAmount>
  const [source, destination] = [chainOf(chains, question.fromChain), chainOf(chains, question.toChain)]
  check(source !== destination, 'fromChain and toChain are the same')
  const from = tokenAt(source, textOf(question.fromToken))
  const to = tokenAt(destination, textOf(question.toToken))
  if (from === undefined || to === undefined)
    throw new QuestionFault(1003, 'fromToken or toToken is not a token of its chain')
  check(!isCoin(to.address), 'toToken is a native coin: the bridge delivers only tokens')
  const { toAmount, contractCalls } = question
  check(
    typeof toAmount === 'string' && /^[1-9]\d{0,37}$/.test(toAmount),
    'toAmount must be a positive whole number of at most 38 digits',
  )
  const [call, ...more] = Array.isArray(contractCalls) ? contractCalls : []
  check(call !== undefined && more.length === 0, 'contractCalls must contain exactly one call')
  const isProxy = textOf(call.toContractAddress).toLowerCase() === destination.feeProxy.toLowerCase()
  check(isProxy, `toContractAddress must be ${destination.feeProxy}`)
  check(
    textOf(call.fromTokenAddress).toLowerCase() === to.address.toLowerCase(),
    'fromTokenAddress of the call must be toToken',
  )
  check(call.fromAmount === toAmount, 'fromAmount of the call must be toAmount')
  check(isHex(call.toContractCallData), 'toContractCallData must be hexadecimal digits after 0x')
  const payer = addressOf(question.fromAddress, 'fromAddress')
  return {
    source,
    destination,
    from,
    to,
    payer,
    fallbackTo:
      question.toFallbackAddress === undefined ? payer : addressOf(question.toFallbackAddress, 'toFallbackAddress'),
    wanted: BigInt(toAmount),
    call: call.toContractCallData,
    gasLimit: textOf(call.toContractGasLimit),
  }
}

function check(isValid: boolean, fault: string): asserts isValid {
  if (!isValid) throw new QuestionFault(1011, fault)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function addressOf(value: unknown, name: string): Address {
  check(typeof value === 'string' && isAddress(value, { strict: false }), `${name} is not an address`)
  return getAddress(value)
}

function chainOf(chains: readonly BridgeChain[], id: unknown): BridgeChain {
  const chain = chains.find(({ chainId }) => String(chainId) === String(id))
  if (chain === undefined) throw new QuestionFault(1003, `the bridge has no chain ${String(id)}`)
  return chain
}

/** Uses the present prices of the feeds of both chains. */
async function priceOf({ source, destination, from, to, wanted }: Question): Promise<DeliveryPrice> {
  const [fromUsd, toUsd, coinUsd, { baseFeePerGas }, held] = await Promise.all([
    readPrice(source, from),
    readPrice(destination, to),
    readPrice(destination, destination.coin),
    destination.client.head(),
    readBalance(destination, to, destination.relayer),
  ])
  if (held < wanted) {
    throw new QuestionFault(
      1002,
      `the bridge holds too little ${to.symbol} on ${destination.name}`,
      'INSUFFICIENT_LIQUIDITY',
    )
  }
  const priced = {
    source: { decimals: from.decimals, usd: fromUsd },
    destination: { decimals: to.decimals, usd: toUsd },
    coin: { decimals: destination.coin.decimals, usd: coinUsd },
  }
  return priceDelivery(priced, { wanted, gasWei: DELIVERY_GAS * (baseFeePerGas + destination.tipPerGas) })
}

const ROUND = parseAbiParameters('uint80, int256, uint256, uint256, uint80')

async function readPrice({ client }: BridgeChain, { feed, symbol }: BridgeToken): Promise<bigint> {
  const [, answer] = decodeAbiParameters(ROUND, await client.read(encodeLatestRound(feed)))
  if (answer <= 0n) throw new QuestionFault(1002, `${symbol} has no price`)
  return answer
}

async function readBalance({ client }: BridgeChain, { address }: BridgeToken, owner: Address): Promise<bigint> {
  return BigInt(await client.read(encodeBalanceOf(address, owner)))
}

async function gasOfDeposit(source: BridgeChain, from: BridgeToken): Promise<bigint> {
  if (isCoin(from.address)) return COIN_DEPOSIT_GAS
  const isFirst = (await readBalance(source, from, source.escrow)) === 0n
  return isFirst ? DEPOSIT_GAS + FIRST_DEPOSIT_GAS : DEPOSIT_GAS
}

function describe(question: Question, price: DeliveryPrice): LiFiStep {
  const { source, destination, from, to, payer, fallbackTo, wanted, call, gasLimit } = question
  const [fromToken, toToken] = [asToken(source, from), asToken(destination, to)]
  const action = {
    fromChainId: source.chainId,
    fromAmount: price.amount.toString(),
    fromToken,
    fromAddress: payer,
    toChainId: destination.chainId,
    toToken,
    toAddress: fallbackTo,
  }
  const estimate = {
    tool: TOOL,
    fromAmount: price.amount.toString(),
    toAmount: wanted.toString(),
    toAmountMin: wanted.toString(),
    approvalAddress: isCoin(from.address) ? ZERO_ADDRESS : source.escrow,
    executionDuration: DURATION_SEC,
    feeCosts: [
      feeCost('Relayer fee', 'Fee of the relayer', fromToken, price.bridgeFee, price.amount),
      feeCost('Destination gas', 'Gas of the delivery', fromToken, price.gasFee, price.amount),
    ],
    gasCosts: [],
  }
  const custom: CustomStep = {
    id: randomUUID(),
    type: 'custom',
    tool: 'custom',
    toolDetails: { key: 'custom', name: 'Contract call', logoURI: '' },
    action: {
      ...action,
      toContractAddress: destination.feeProxy,
      toContractCallData: call,
      toFallbackAddress: fallbackTo,
      callDataGasLimit: gasLimit,
    },
    estimate,
  }
  const toolDetails = { key: TOOL, name: 'Bridge of the demo', logoURI: '' }
  return { id: randomUUID(), type: 'lifi', tool: TOOL, toolDetails, action, estimate, includedSteps: [custom] }
}

/** A token in LI.FI's form. Its price stands beside the quote's amounts, not here. */
export function asToken({ chainId }: BridgeChain, { symbol, address, decimals }: BridgeToken): Token {
  return { chainId, address, symbol, decimals, name: symbol, priceUSD: '' }
}

function feeCost(name: string, description: string, token: Token, amount: bigint, whole: bigint): FeeCost {
  const percentage = (Number((amount * 1_000_000n) / whole) / 1_000_000).toString()
  return { name, description, token, amount: amount.toString(), amountUSD: '', percentage, included: true }
}

/** A token with its price. */
interface Priced {
  readonly decimals: number
  /** Price of one token in US dollars with 8 decimals. */
  readonly usd: bigint
}

/** What the payer deposits for a delivery, in base units of the source token; `amount` is the sum of the other fields. */
interface DeliveryPrice {
  readonly amount: bigint
  /** The value of the delivered amount. */
  readonly worth: bigint
  /** The relayer's fee. */
  readonly bridgeFee: bigint
  /** The gas of the delivery, which the relayer pays. */
  readonly gasFee: bigint
}

/** The relayer's fee in basis points. */
const BRIDGE_FEE_BPS = 5n
const BPS = 10_000n

/**
 * Prices the delivery of an exact amount. All parts are rounded up, so that rounding never costs the relayer.
 *
 * @param wanted - base units to deliver
 * @param gasWei - cost of the delivery in the destination's native coin
 */
function priceDelivery(
  { source, destination, coin }: { source: Priced; destination: Priced; coin: Priced },
  { wanted, gasWei }: { wanted: bigint; gasWei: bigint },
): DeliveryPrice {
  const inSource = (amount: bigint, token: Priced) =>
    ceil(amount * token.usd * 10n ** BigInt(source.decimals), source.usd * 10n ** BigInt(token.decimals))
  const worth = inSource(wanted, destination)
  const bridgeFee = ceil(worth * BRIDGE_FEE_BPS, BPS)
  const gasFee = inSource(gasWei, coin)
  return { amount: worth + bridgeFee + gasFee, worth, bridgeFee, gasFee }
}

function ceil(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
