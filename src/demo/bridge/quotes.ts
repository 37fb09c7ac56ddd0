import { randomBytes, randomUUID } from 'node:crypto'
import type { ContractCallsQuoteRequestToAmount, CustomStep, FeeCost, LiFiStep, Token } from '@lifi/types'
import { type Address, decodeAbiParameters, getAddress, type Hex, isAddress, isHex, parseAbiParameters } from 'viem'
import { type EvmAddress, encodeReceiverMessage, wordOfAddress } from '../../contracts/lifi-calldata.ts'
import { USUAL_BLOCK_SEC } from '../network/chain-specs.ts'
import { encodeBalanceOf, encodeLatestRound, ZERO_ADDRESS } from '../network/demo-contracts.ts'
import { toQuantity } from '../network/rpc.ts'
import { type BridgeChain, type BridgeToken, tokenAt } from './bridge-chain.ts'
import { type Deposit, encodeDeposit, idOfDeposit, isCoin } from './deposit.ts'
import { type CarryingPrice, priceCarrying } from './price-carrying.ts'

/** The bridge's name in routes and statuses. */
export const TOOL = 'demo-bridge'

/** A fault of a request to the bridge, with LI.FI's code for it. */
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

/** The relayer may deliver for so many seconds after the quote. */
const DELIVER_WITHIN_SEC = 3_600

/** Seconds for the blocks of deposit and delivery, counted like those of other payments, so that routes are comparable. */
const DURATION_SEC = 2 * USUAL_BLOCK_SEC

/** Measured gas: a deposit of a token that the escrow already holds, the surplus for one that it does not hold, and a deposit of coins. */
const DEPOSIT_GAS = 122_000n
const FIRST_OF_TOKEN_GAS = 17_100n
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
 * @param nowSec - seconds since 1970
 * @throws QuestionFault
 */
export async function quote(chains: readonly BridgeChain[], asked: unknown, nowSec: number): Promise<LiFiStep> {
  const question = readQuestion(chains, asked)
  const price = await priceOf(question)
  const { source, from, payer } = question
  const deposit = depositFor(question, price.amount, nowSec)
  const id = idOfDeposit(source.chainId, source.escrow, deposit)
  const signature = await source.client.rpc.call<Hex>('eth_sign', [source.relayer, id])
  const { data, value = 0n } = encodeDeposit(source.escrow, deposit, signature)
  const gasLimit = toQuantity(await gasOfDeposit(source, from))
  const { baseFeePerGas } = await source.client.head()
  const transactionRequest = {
    from: payer,
    to: source.escrow,
    chainId: source.chainId,
    data,
    value: toQuantity(value),
    gasLimit,
    gasPrice: toQuantity(baseFeePerGas + source.tipPerGas),
  }
  return { ...describe(question, price), transactionRequest }
}

function depositFor(question: Question, amount: bigint, nowSec: number): Deposit {
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
      quoteTimestamp: nowSec,
      fillDeadline: nowSec + DELIVER_WITHIN_SEC,
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
  return encodeReceiverMessage({ transactionId: randomId(), swaps, receiver: fallbackTo as EvmAddress })
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
  if (from === undefined || to === undefined) throw new QuestionFault(1003, 'no such token')
  check(!isCoin(to.address), 'toToken is a coin: only tokens are delivered with a call')
  const { toAmount, contractCalls } = question
  check(typeof toAmount === 'string' && /^[1-9]\d{0,37}$/.test(toAmount), 'toAmount is no amount')
  const [call, ...more] = Array.isArray(contractCalls) ? contractCalls : []
  check(call !== undefined && more.length === 0, 'contractCalls is not one call')
  const isProxy = textOf(call.toContractAddress).toLowerCase() === destination.feeProxy.toLowerCase()
  check(isProxy, `only ${destination.feeProxy} is called there`)
  check(
    textOf(call.fromTokenAddress).toLowerCase() === to.address.toLowerCase(),
    'the call takes another token than toToken',
  )
  check(call.fromAmount === toAmount, 'the call takes another amount than toAmount')
  check(isHex(call.toContractCallData), 'toContractCallData is no data')
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

function check(isRight: boolean, fault: string): asserts isRight {
  if (!isRight) throw new QuestionFault(1011, fault)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function addressOf(value: unknown, name: string): Address {
  check(typeof value === 'string' && isAddress(value, { strict: false }), `${name} is no address`)
  return getAddress(value)
}

function chainOf(chains: readonly BridgeChain[], id: unknown): BridgeChain {
  const chain = chains.find(({ chainId }) => String(chainId) === String(id))
  if (chain === undefined) throw new QuestionFault(1003, `no chain ${String(id)}`)
  return chain
}

/** Uses the present prices of the feeds of both chains. */
async function priceOf({ source, destination, from, to, wanted }: Question): Promise<CarryingPrice> {
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
      `the bridge has too little ${to.symbol} on ${destination.name}`,
      'INSUFFICIENT_LIQUIDITY',
    )
  }
  const priced = {
    source: { decimals: from.decimals, usd: fromUsd },
    destination: { decimals: to.decimals, usd: toUsd },
    coin: { decimals: destination.coin.decimals, usd: coinUsd },
  }
  return priceCarrying(priced, { wanted, gasWei: DELIVERY_GAS * (baseFeePerGas + destination.tipPerGas) })
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
  return isFirst ? DEPOSIT_GAS + FIRST_OF_TOKEN_GAS : DEPOSIT_GAS
}

function describe(question: Question, price: CarryingPrice): LiFiStep {
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
      feeCost('Relayer fee', 'What the bridge keeps', fromToken, price.bridgeFee, price.amount),
      feeCost('Destination gas', 'The gas of the delivery', fromToken, price.gasFee, price.amount),
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
  const toolDetails = { key: TOOL, name: "The demo's bridge", logoURI: '' }
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
