import { randomBytes } from 'node:crypto'
import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import type { Address, Hex } from 'viem'
import { decodeAbiParameters, getAddress, isAddress, isHex, parseAbiParameters } from 'viem/utils'
import { type EvmAddress, encodeReceiverMessage, wordOfAddress } from '../../src/contracts/lifi-calldata.ts'
import { USUAL_BLOCK_SEC } from '../network/chain-specs.ts'
import { encodeBalanceOf, encodeLatestRound, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import { toQuantity } from '../network/rpc.ts'
import { type BridgeChain, type BridgeToken, tokenAt } from './bridge-chain.ts'
import { type Deposit, encodeDeposit, isCoin } from './deposit.ts'

/** The bridge's name in routes and statuses. */
export const TOOL = 'demo-bridge'

/** Why a request to the bridge is refused, with LI.FI's error code. */
export class QuestionFault extends Error {
  override readonly name = 'QuestionFault'
  readonly code: 1002 | 1003 | 1011

  constructor(code: 1002 | 1003 | 1011, message: string) {
    super(message)
    this.code = code
  }
}

/** How long after the quote the relayer may deliver. */
const DELIVER_WITHIN_SEC = 3_600

/** Seconds for the blocks of deposit and delivery, counted like those of other payments, so that routes are comparable. */
const DURATION_SEC = 2 * USUAL_BLOCK_SEC

/** Measured gas: a deposit of a token that the escrow already holds, the extra gas when it holds none, and a deposit of the native coin. */
const DEPOSIT_GAS = 92_000n
const FIRST_DEPOSIT_GAS = 17_100n
const COIN_DEPOSIT_GAS = 74_000n
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
}

/**
 * Answers LI.FI's contract-calls request with a quote, as far as the service reads it.
 *
 * @param asked - the body of the request, not checked yet
 * @param nowSec - Unix time
 * @throws QuestionFault
 */
export async function quote(chains: readonly BridgeChain[], asked: unknown, nowSec: number): Promise<object> {
  const question = readQuestion(chains, asked)
  const { source, destination, from, payer } = question
  const [price, head, other] = await Promise.all([priceOf(question), source.client.head(), destination.client.head()])
  // The contracts go by the times of blocks, which may be ahead.
  const quotedSec = Math.max(nowSec, head.timestampSec)
  const deliverUntilSec = Math.max(quotedSec, other.timestampSec) + DELIVER_WITHIN_SEC
  const deposit = depositFor(question, price.amount, { quotedSec, deliverUntilSec })
  const { data, value = 0n } = encodeDeposit(source.escrow, deposit)
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
  const question = (asked ?? {}) as Partial<ContractCallsQuoteRequestToAmount>
  const { fromAddress: payer, toFallbackAddress: fallbackTo = payer, toAmount, contractCalls } = question
  const [source, destination] = [question.fromChain, question.toChain].map((id) =>
    chains.find(({ chainId }) => chainId === Number(id)),
  )
  if (source === undefined || destination === undefined || source === destination)
    throw new QuestionFault(1003, 'fromChain and toChain must be two chains of the bridge')
  const [from, to] = [tokenAt(source, String(question.fromToken)), tokenAt(destination, String(question.toToken))]
  if (from === undefined || to === undefined)
    throw new QuestionFault(1003, 'fromToken or toToken is not a token of its chain')
  check(!isCoin(to.address), 'toToken is a native coin: the bridge delivers only tokens')
  check(/^[1-9]\d{0,37}$/.test(String(toAmount)), 'toAmount must be a positive whole number of at most 38 digits')
  const call = Array.isArray(contractCalls) && contractCalls.length === 1 ? contractCalls[0] : undefined
  const { feeProxy } = destination
  const isProxy = String(call?.toContractAddress).toLowerCase() === feeProxy.toLowerCase()
  check(isProxy && isHex(call?.toContractCallData), `contractCalls must have exactly one call, of ${feeProxy}`)
  const areWallets = [payer, fallbackTo].every((each) => isAddress(String(each), { strict: false }))
  check(areWallets, 'fromAddress or toFallbackAddress is not an address')
  return {
    source,
    destination,
    from,
    to,
    payer: getAddress(String(payer)),
    fallbackTo: getAddress(String(fallbackTo)),
    wanted: BigInt(String(toAmount)),
    call: call.toContractCallData,
  }
}

function check(isValid: boolean, fault: string): asserts isValid {
  if (!isValid) throw new QuestionFault(1011, fault)
}

/** What the payer deposits for a delivery, in base units of the source token: its worth, the relayer's fee, and the gas that the relayer pays. */
type DeliveryPrice = Readonly<Record<'amount' | 'bridgeFee' | 'gasFee', bigint>>

/** The relayer's fee in basis points. */
const BRIDGE_FEE_BPS = 5n
const BPS = 10_000n

/** Uses the present prices of the feeds of both chains. All parts are rounded up, so that rounding never costs the relayer. */
async function priceOf({ source, destination, from, to, wanted }: Question): Promise<DeliveryPrice> {
  const [fromUsd, toUsd, coinUsd, { baseFeePerGas }, held] = await Promise.all([
    readPrice(source, from),
    readPrice(destination, to),
    readPrice(destination, destination.coin),
    destination.client.head(),
    readBalance(destination, to, destination.relayer),
  ])
  if (held < wanted) throw new QuestionFault(1002, `the bridge holds too little ${to.symbol} on ${destination.name}`)
  const inSource = (amount: bigint, { decimals }: BridgeToken, usd: bigint) =>
    ceil(amount * usd * 10n ** BigInt(from.decimals), fromUsd * 10n ** BigInt(decimals))
  const worth = inSource(wanted, to, toUsd)
  const bridgeFee = ceil(worth * BRIDGE_FEE_BPS, BPS)
  const gasFee = inSource(DELIVERY_GAS * (baseFeePerGas + destination.tipPerGas), destination.coin, coinUsd)
  return { amount: worth + bridgeFee + gasFee, bridgeFee, gasFee }
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

function describe({ source, destination, from, to, payer, wanted }: Question, price: DeliveryPrice) {
  const fromToken = { ...from, chainId: source.chainId }
  const [fromAmount, toAmount] = [String(price.amount), String(wanted)]
  const feeCost = (name: string, fee: bigint) => ({ name, token: fromToken, amount: String(fee), included: true })
  return {
    tool: TOOL,
    action: {
      fromChainId: source.chainId,
      fromAmount,
      fromToken,
      fromAddress: payer,
      toChainId: destination.chainId,
      toToken: { ...to, chainId: destination.chainId },
    },
    estimate: {
      fromAmount,
      toAmount,
      toAmountMin: toAmount,
      approvalAddress: isCoin(from.address) ? ZERO_ADDRESS : source.escrow,
      executionDuration: DURATION_SEC,
      feeCosts: [feeCost('Relayer fee', price.bridgeFee), feeCost('Destination gas', price.gasFee)],
    },
  }
}

function ceil(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
