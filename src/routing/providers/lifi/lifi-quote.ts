import { type Address, isZeroAddress, parseAddress } from '../../../domain/address.ts'
import type { Token } from '../../../domain/currency.ts'
import type { Hex } from '../../../domain/hex.ts'
import { checkDeposit } from './lifi-deposit.ts'
import { ensure, type LifiPins, type LifiQuestion } from './lifi-question.ts'

/** A quote of LI.FI that was checked against its question. Amounts in base units. */
export interface LifiQuote {
  readonly fromAmount: bigint
  /** The output that LI.FI expects on the destination chain, and the output that its calldata guarantees. */
  readonly toAmount: bigint
  readonly guaranteed: bigint
  /** The contract that pulls the source token: the pinned diamond; undefined for a native coin. */
  readonly approvalAddress?: Address | undefined
  readonly approvalReset: boolean
  readonly fees: readonly LifiFee[]
  readonly durationSeconds: number
  /** The bridge: `across`. */
  readonly tool: string
  readonly transaction: { readonly to: Address; readonly data: Hex; readonly value: bigint; readonly gasLimit: bigint }
}

export interface LifiFee {
  readonly name: string
  readonly chainId: number
  /** Absent for a native coin. */
  readonly address?: Address | undefined
  readonly amount: bigint
  /** Whether it is a part of `fromAmount`. */
  readonly included: boolean
}

/** A longer duration is a mistake. */
const MAX_SECONDS = 7 * 24 * 60 * 60
const MIN_GAS = 21_000n
const MAX_GAS = 30_000_000n
/**
 * Digits of calldata with `0x`. An honest deposit has some 2 kB. Offsets that point at one another make the decoder's time grow with the square
 * of the length: 128 kB took 18 s, 6 kB take 10 to 20 ms.
 */
const MAX_DATA_LENGTH = 2 + 2 * 6 * 1_024

/**
 * Reads an answer without trusting it: its tokens, chains, amounts and addresses must be those of the question, and its calldata must do
 * exactly what was asked for (`lifi-deposit.ts`). What the answer says about itself decides only what is displayed.
 *
 * @param nowSec - when the answer came, seconds since 1970
 * @throws RejectedQuoteError
 */
export function readLifiQuote(body: unknown, question: LifiQuestion, nowSec: number): LifiQuote {
  const { request, source, destination } = question
  const step = objectOf(body, 'the answer')
  const action = objectOf(step.action, 'action')
  const estimate = objectOf(step.estimate, 'estimate')

  check(action.fromChainId === request.fromChain, 'it is for another source chain')
  check(action.toChainId === request.toChain, 'it is for another destination chain')
  checkToken(action.fromToken, Number(request.fromChain), source)
  checkToken(action.toToken, Number(request.toChain), destination)
  if (action.fromAddress !== undefined) {
    check(addressOf(action.fromAddress, 'fromAddress') === request.fromAddress, 'it is for another wallet')
  }

  const fromAmount = amountOf(estimate.fromAmount, 'fromAmount')
  const [toAmount, toAmountMin] = [
    amountOf(estimate.toAmount, 'toAmount'),
    amountOf(estimate.toAmountMin, 'toAmountMin'),
  ]
  check(fromAmount > 0n, 'it takes nothing')
  check(amountOf(action.fromAmount, 'action.fromAmount') === fromAmount, 'it gives two different amounts')
  const isEnough = toAmountMin >= BigInt(request.toAmount)
  ensure(isEnough, 'OUTPUT_TOO_LOW', `its toAmountMin is ${toAmountMin}, below ${request.toAmount}`)
  check(toAmount >= toAmountMin, 'its toAmount is below its toAmountMin')

  const fees = listOf(estimate.feeCosts, 'feeCosts').map(readFee)
  const transaction = readTransaction(step, question, fromAmount)
  const spender = source.address === undefined ? undefined : readSpender(estimate.approvalAddress, question.pins)
  return {
    fromAmount,
    toAmount,
    guaranteed: checkDeposit(transaction.data, { question, fromAmount, nowSec }),
    approvalAddress: spender,
    approvalReset: estimate.approvalReset === true,
    fees,
    durationSeconds: secondsOf(estimate.executionDuration),
    tool: typeof step.tool === 'string' ? step.tool : '',
    transaction,
  }
}

function readTransaction(
  step: Fields,
  { request, source, pins }: LifiQuestion,
  fromAmount: bigint,
): LifiQuote['transaction'] {
  const transaction = objectOf(step.transactionRequest, 'transactionRequest')
  check(transaction.chainId === request.fromChain, 'its transaction is for another chain')
  if (transaction.from !== undefined) {
    check(addressOf(transaction.from, 'from') === request.fromAddress, 'its transaction is for another wallet')
  }
  const to = contractOf(transaction.to, 'to')
  ensure(to === pins.diamond, 'FOREIGN_CONTRACT', `its transaction goes to ${to}`)
  const { data } = transaction
  check(typeof data === 'string' && /^0x(?:[0-9a-f]{2}){4,}$/i.test(data), 'no data')
  ensure(data.length <= MAX_DATA_LENGTH, 'UNVERIFIABLE', `its calldata has ${data.length / 2 - 1} bytes`)
  const value = transaction.value === undefined ? 0n : quantityOf(transaction.value, 'value')
  // Across takes no native coins beside those that it carries.
  const due = source.address === undefined ? fromAmount : 0n
  ensure(value === due, 'WRONG_VALUE', `its transaction sends ${value} wei, not ${due}`)
  const gasLimit = gasLimitOf(step, transaction)
  check(gasLimit >= MIN_GAS && gasLimit <= MAX_GAS, `a gas limit of ${gasLimit}`)
  return { to, data: data.toLowerCase() as Hex, value, gasLimit }
}

/** The transaction's gas limit, else the estimate's. */
function gasLimitOf(step: Fields, transaction: Fields): bigint {
  if (transaction.gasLimit !== undefined) return quantityOf(transaction.gasLimit, 'gasLimit')
  const costs = listOf(objectOf(step.estimate, 'estimate').gasCosts, 'gasCosts')
  const sent = costs.map((cost) => objectOf(cost, 'gasCosts')).find(({ type }) => type === 'SEND')
  return quantityOf(sent?.limit, 'gasLimit')
}

function readSpender(value: unknown, { diamond }: LifiPins): Address {
  const spender = contractOf(value, 'approvalAddress')
  ensure(spender === diamond, 'FOREIGN_SPENDER', `it wants ${spender} to be allowed to pull the token`)
  return spender
}

function readFee(value: unknown): LifiFee {
  const fee = objectOf(value, 'feeCosts')
  const token = objectOf(fee.token, 'feeCosts.token')
  const address = tokenAddressOf(token.address, 'feeCosts.token.address')
  check(typeof token.chainId === 'number' && Number.isSafeInteger(token.chainId), 'a fee without a chain id')
  check(typeof fee.included === 'boolean', 'a fee that does not say whether it is included')
  return {
    name: typeof fee.name === 'string' ? fee.name : '',
    chainId: token.chainId,
    address,
    amount: amountOf(fee.amount, 'feeCosts.amount'),
    included: fee.included,
  }
}

function checkToken(value: unknown, chainId: number, wanted: Token): void {
  const token = objectOf(value, 'a token')
  const isSame = token.chainId === chainId && tokenAddressOf(token.address, 'a token’s address') === wanted.address
  check(isSame && token.decimals === wanted.decimals, `it is not for ${wanted.id}`)
}

type Fields = Readonly<Record<string, unknown>>

function check(holds: boolean, message: string): asserts holds {
  ensure(holds, 'INCONSISTENT', message)
}

function objectOf(value: unknown, name: string): Fields {
  check(typeof value === 'object' && value !== null && !Array.isArray(value), `${name} is not an object`)
  return value as Fields
}

/** Absent is empty. */
function listOf(value: unknown, name: string): readonly unknown[] {
  if (value === undefined) return []
  check(Array.isArray(value), `${name} is not a list`)
  return value
}

/** Whole base units as LI.FI writes them: decimal digits. */
function amountOf(value: unknown, name: string): bigint {
  check(typeof value === 'string' && /^\d{1,78}$/.test(value), `${name} is not an amount`)
  return BigInt(value)
}

/** As transactions have them: hexadecimal or decimal digits. */
function quantityOf(value: unknown, name: string): bigint {
  check(typeof value === 'string' && /^(?:0x[0-9a-f]{1,64}|\d{1,78})$/i.test(value), `${name} is not a number`)
  return BigInt(value)
}

function secondsOf(value: unknown): number {
  check(typeof value === 'number' && value >= 0 && value <= MAX_SECONDS, 'executionDuration is not a duration')
  return Math.ceil(value)
}

function addressOf(value: unknown, name: string): Address {
  const parsed = typeof value === 'string' && value.startsWith('0x') ? parseAddress(value) : undefined
  check(parsed?.ok === true, `${name} is not an address`)
  return parsed.address
}

/** The address of a contract that is called or may pull tokens: never zero. */
function contractOf(value: unknown, name: string): Address {
  const address = addressOf(value, name)
  check(!isZeroAddress(address), `${name} is the zero address`)
  return address
}

/** Stands for native coins, as the zero address does. */
const NATIVE = `0x${'e'.repeat(40)}`

function tokenAddressOf(value: unknown, name: string): Address | undefined {
  const address = addressOf(value, name)
  return isZeroAddress(address) || address === NATIVE ? undefined : address
}
