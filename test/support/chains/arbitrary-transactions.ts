/**
 * Transactions that move tokens and pay through proxies, as fast-check arbitraries. A transaction is a list of steps: Transfers and payment
 * events, each event with the Transfers that its proxy made for it. What detection sees are the logs of the steps (`receiptOf`); what really
 * happened are the steps, which an oracle follows.
 */
import fc from 'fast-check'
import { encodeAbiParameters, type Hex, pad } from 'viem'
import { eventTopics, type RpcLog } from '../../../src/contracts/decode-events.ts'
import type { FollowedContracts } from '../../../src/detection/match/followed-contracts.ts'
import type { TransactionReceipt } from '../../../src/detection/read/chain-reader.ts'
import { type Address, ZERO_ADDRESS } from '../../../src/domain/address.ts'

const address = (digits: string) => `0x${digits.padEnd(40, '0')}` as Address

/** Who takes part. The victim never moves money: others put their name on Transfers of 0. */
export const cast = {
  alice: address('a1'),
  bob: address('b0b'),
  shop: address('5409'),
  vendor: address('7e4d'),
  victim: address('7ac71'),
  feeTaker: address('fee'),
  pool: address('900'),
  executor: address('e8ec'),
  batch: address('ba1'),
  secondBatch: address('ba2'),
  swap: address('54a9'),
} as const

export const usdc = address('c1')
export const dai = address('da1')
/** A token that nobody lists. */
const fakeToken = address('fa4e')
export const feeProxy = address('f4')
const lookAlike = address('f5')

export const testTopic: Hex = `0x${'5'.repeat(64)}`

/** The chains file's view of the cast. */
export const testContracts: FollowedContracts = {
  contracts: new Set([feeProxy]),
  intermediaries: new Set([cast.batch, cast.secondBatch, cast.swap]),
  swaps: new Set([cast.swap]),
  executors: new Set([cast.executor]),
  tokens: new Set([usdc, dai]),
  factories: new Set(),
}

export interface TransferStep {
  readonly kind: 'TRANSFER'
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly value: bigint
}

export interface EventStep {
  readonly kind: 'EVENT'
  readonly emitter: Address
  readonly token: Address
  readonly to: Address
  readonly amount: bigint
  readonly fee: bigint
  readonly feeTo: Address
  /** How many steps before this the proxy moved the amount. Absent for an event that moved nothing. */
  readonly paidBefore?: number
}

export type Step = TransferStep | EventStep

const transfer = (token: Address, from: Address, to: Address, value: bigint): TransferStep => ({
  kind: 'TRANSFER',
  token,
  from,
  to,
  value,
})

interface ProxyCall {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly amount: bigint
  /** What the token keeps of the amount. */
  readonly tax: bigint
  readonly fee: bigint
  readonly feeTo: Address
}

/** What ERC20FeeProxy does: the amount, the fee if it is charged to somebody, the event. */
function callProxy({ token, from, to, amount, tax, fee, feeTo }: ProxyCall): Step[] {
  const hasFee = fee > 0n && feeTo !== ZERO_ADDRESS
  const received = amount > tax ? amount - tax : 0n
  const event = { kind: 'EVENT', emitter: feeProxy, token, to, amount, fee, feeTo } as const
  return [
    transfer(token, from, to, received),
    ...(hasFee ? [transfer(token, from, feeTo, fee)] : []),
    { ...event, paidBefore: hasFee ? 2 : 1 },
  ]
}

const payers = [cast.alice, cast.bob, cast.vendor] as const
const payees = [cast.shop, cast.vendor, cast.alice] as const
const anyAmount = fc.bigInt(0n, 4n)
const anyToken = fc.constantFrom(usdc, dai)
const anyFee = { fee: fc.bigInt(0n, 2n), feeTo: fc.constantFrom(ZERO_ADDRESS, cast.feeTaker, cast.shop) }
const anyProxyCall = {
  token: anyToken,
  to: fc.constantFrom(...payees),
  amount: anyAmount,
  tax: fc.constantFrom(0n, 0n, 0n, 1n),
  ...anyFee,
}

const directPayment = fc
  .record({ ...anyProxyCall, from: fc.constantFrom(...payers, cast.executor) })
  .map((call) => callProxy(call))
const batchPayment = fc
  .record({ ...anyProxyCall, from: fc.constantFrom(cast.batch, cast.secondBatch) })
  .map((call) => callProxy(call))
/** Money given to an intermediary, change given back, or any other Transfer of somebody's own. */
const plainTransfer = fc
  .record({
    token: fc.constantFrom(usdc, usdc, dai, fakeToken),
    from: fc.constantFrom(...payers, cast.pool, cast.executor, cast.batch, cast.secondBatch, cast.swap),
    to: fc.constantFrom(cast.batch, cast.batch, cast.secondBatch, cast.swap, ...payers, cast.shop, cast.pool),
    value: anyAmount,
  })
  .map(({ token, from, to, value }) => [transfer(token, from, to, value)])
/** A Transfer of 0 needs no allowance, so anybody can log it in anybody's name. */
const forgedTransfer = fc
  .record({ token: anyToken, to: fc.constantFrom(...Object.values(cast)) })
  .map(({ token, to }) => [transfer(token, cast.victim, to, 0n)])
/** What ERC20SwapToPay does, with change afterwards. */
const swapPayment = fc
  .record({ ...anyProxyCall, by: fc.constantFrom(...payers, cast.batch), sold: fc.bigInt(1n, 3n), change: anyAmount })
  .map(({ by, sold, change, ...call }) => [
    transfer(dai, by, cast.swap, sold + change),
    transfer(dai, cast.swap, cast.pool, sold),
    transfer(usdc, cast.pool, cast.swap, call.amount + call.fee),
    ...callProxy({ ...call, token: usdc, from: cast.swap }),
    ...(change > 0n ? [transfer(dai, cast.swap, by, change)] : []),
  ])
/** An event of a contract that nobody lists, and a token whose contract logs what it likes. */
const lookAlikePayment = fc.record(anyProxyCall).map((call): Step[] => [{ kind: 'EVENT', emitter: lookAlike, ...call }])
const fakePayment = fc.record(anyProxyCall).map((call) => callProxy({ ...call, token: fakeToken, from: cast.victim }))

/** Any transaction of the real proxies and of tokens that log as ERC-20 requires. */
export const anySteps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: directPayment },
      { weight: 4, arbitrary: batchPayment },
      { weight: 5, arbitrary: plainTransfer },
      { weight: 2, arbitrary: forgedTransfer },
      { weight: 3, arbitrary: swapPayment },
      { weight: 1, arbitrary: lookAlikePayment },
      { weight: 1, arbitrary: fakePayment },
    ),
    { maxLength: 9 },
  )
  .map((parts) => parts.flat())

/** Transfers and events in any order: worse than any token or proxy behaves. */
export const anySoup: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc
      .record({
        kind: fc.constant('TRANSFER' as const),
        token: anyToken,
        from: fc.constantFrom(...Object.values(cast)),
        to: fc.constantFrom(...Object.values(cast)),
        value: anyAmount,
      })
      .map((step) => (step.from === cast.victim ? { ...step, value: 0n } : step)),
    fc.record({
      kind: fc.constant('EVENT' as const),
      emitter: fc.constantFrom(feeProxy, feeProxy, lookAlike),
      token: anyToken,
      to: fc.constantFrom(...payees),
      amount: anyAmount,
      ...anyFee,
    }),
  ),
  { maxLength: 14 },
)

const words = (...values: (bigint | string)[]): Hex =>
  encodeAbiParameters(
    values.map(() => ({ type: 'uint256' })),
    values.map((value) => BigInt(value)),
  )

function logOf(step: Step): Pick<RpcLog, 'address' | 'topics' | 'data'> {
  if (step.kind === 'TRANSFER') {
    const { token, from, to, value } = step
    return { address: token, topics: [eventTopics.transfer, pad(from as Hex), pad(to as Hex)], data: words(value) }
  }
  const { emitter, token, to, amount, fee, feeTo } = step
  return { address: emitter, topics: [eventTopics.erc20Payment, testTopic], data: words(token, to, amount, fee, feeTo) }
}

/** A receipt with these logs in order. */
export function receiptWith(
  logs: readonly Pick<RpcLog, 'address' | 'topics' | 'data'>[],
  given: Partial<TransactionReceipt> = {},
): TransactionReceipt {
  return {
    txHash: `0x${'a'.repeat(64)}`,
    blockHash: `0x${'b'.repeat(64)}`,
    blockNumber: 1,
    from: cast.bob,
    to: cast.batch,
    gasUsed: 1n,
    effectiveGasPrice: 1n,
    logs: logs.map((log, index) => ({
      ...log,
      blockNumber: '0x1',
      blockHash: '0x',
      transactionHash: '0x',
      logIndex: `0x${index.toString(16)}`,
    })),
    ...given,
  }
}

/** A node's receipt of a transaction with these steps. */
export function receiptOf(steps: readonly Step[]): TransactionReceipt {
  return receiptWith(steps.map(logOf))
}
