import { encodeAbiParameters, type Hex, pad } from 'viem'
import { describe, expect, it } from 'vitest'
import {
  decodeConversionLog,
  decodeFeeProxyLog,
  decodeTransferLog,
  eventTopics,
  type RpcLog,
} from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import { readTransaction } from './read-transaction.ts'

const address = (digit: string) => `0x${digit.repeat(40)}` as Address
const TOPIC: Hex = `0x${'5'.repeat(64)}`
const PROXY = address('e')
const CONVERSION_PROXY = address('f')
const USDC = address('c')
const PAYER = address('1')
const PAYEE = address('2')
const FEE = address('3')
const SWAP = address('4')
const POOL = address('5')
const EXECUTOR = address('7')
const BATCH = address('8')
const DAI = address('d')
const STRANGE = address('b')

type Draft = Pick<RpcLog, 'address' | 'topics' | 'data'>

const words = (...values: (bigint | string)[]): Hex =>
  encodeAbiParameters(
    values.map(() => ({ type: 'uint256' })),
    values.map((value) => BigInt(value)),
  )
const transfer = (from: string, to: string, value: bigint, token: string = USDC): Draft => ({
  address: token,
  topics: [eventTopics.transfer, pad(from as Hex), pad(to as Hex)],
  data: words(value),
})
const paid = (to: string, amount: bigint, given: { fee?: bigint; feeTo?: string; emitter?: string } = {}): Draft => ({
  address: given.emitter ?? PROXY,
  topics: [eventTopics.erc20Payment, TOPIC],
  data: words(USDC, to, amount, given.fee ?? 0n, given.feeTo ?? ZERO_ADDRESS),
})
const paidNative = (to: string, amount: bigint, emitter: string = PROXY): Draft => ({
  address: emitter,
  topics: [eventTopics.nativePayment, TOPIC],
  data: words(to, amount, 0n, ZERO_ADDRESS),
})
const converted = (amount: bigint, emitter: string = CONVERSION_PROXY): Draft => ({
  address: emitter,
  topics: [eventTopics.conversion, TOPIC],
  data: words(amount, address('9'), 0n, 0n),
})

function receipt(drafts: readonly Draft[], given: Partial<TransactionReceipt> = {}): TransactionReceipt {
  const logs = drafts.map((draft, index) => ({
    ...draft,
    blockNumber: '0x1',
    blockHash: '0x',
    transactionHash: '0x',
    logIndex: `0x${index.toString(16)}`,
  }))
  return {
    txHash: `0x${'a'.repeat(64)}`,
    blockHash: `0x${'b'.repeat(64)}`,
    blockNumber: 1,
    from: PAYER,
    to: PROXY,
    gasUsed: 1n,
    effectiveGasPrice: 1n,
    logs,
    ...given,
  }
}

const followed = {
  contracts: new Set([PROXY, CONVERSION_PROXY]),
  intermediaries: new Set([SWAP, BATCH]),
  swaps: new Set([SWAP]),
  executors: new Set([EXECUTOR]),
  tokens: new Set([USDC, DAI]),
  factories: new Set<Address>(),
}
const read = (drafts: readonly Draft[], given: Partial<TransactionReceipt> = {}) =>
  readTransaction(receipt(drafts, given), followed)

describe('decoding', () => {
  it('reads every kind of event, and no other log', () => {
    expect(decodeFeeProxyLog(paid(PAYEE, 7n, { fee: 1n, feeTo: FEE }))).toEqual({
      emitter: PROXY,
      topic: TOPIC,
      token: USDC,
      to: PAYEE,
      amount: 7n,
      feeAmount: 1n,
      feeAddress: FEE,
    })
    expect(decodeFeeProxyLog(paidNative(PAYEE, 7n))).not.toHaveProperty('token')
    expect(decodeConversionLog(converted(5n))).toMatchObject({ amount: 5n, currency: address('9') })
    expect(decodeTransferLog(transfer(PAYER, PAYEE, 3n))).toEqual({ token: USDC, from: PAYER, to: PAYEE, value: 3n })
    expect(decodeFeeProxyLog(transfer(PAYER, PAYEE, 3n))).toBeUndefined()
    expect(decodeTransferLog(paid(PAYEE, 7n))).toBeUndefined()
  })

  it.each([
    ['too short', { ...paid(PAYEE, 7n), data: '0x00' }],
    ['a native payment’s data under the token’s signature', { ...paid(PAYEE, 7n), data: words(1n, 2n, 3n, 4n) }],
    ['no reference', { ...paid(PAYEE, 7n), topics: [eventTopics.erc20Payment] }],
  ])('refuses other forms: %s', (_, log) => {
    expect(decodeFeeProxyLog(log)).toBeUndefined()
  })

  it('does not take the Transfer of a collectible for that of a token', () => {
    const log = transfer(PAYER, PAYEE, 3n)
    expect(decodeTransferLog({ ...log, topics: [...log.topics, pad('0x1')], data: '0x' })).toBeUndefined()
  })
})

describe('events of a transaction', () => {
  it('are numbered among all payment events, whoever emitted them', () => {
    const strange = paid(PAYEE, 1n, { emitter: STRANGE })
    const events = read([strange, transfer(PAYER, PAYEE, 7n), paid(PAYEE, 7n), strange, paidNative(PAYEE, 9n)])
    expect(events.map(({ eventIndex, amount }) => [eventIndex, amount])).toEqual([
      [1, 7n],
      [3, 9n],
    ])
  })

  it('claim the fee’s Transfer first where the payee is the fee address', () => {
    const logs = [transfer(PAYER, PAYEE, 90n), transfer(PAYER, PAYEE, 2n), paid(PAYEE, 90n, { fee: 2n, feeTo: PAYEE })]
    expect(read(logs)).toMatchObject([{ received: 90n, payer: PAYER }])
  })

  it('have the fee that its address received, which may be less than in the event, or nothing', () => {
    const taxed = [transfer(PAYER, PAYEE, 89n), transfer(PAYER, FEE, 4n), paid(PAYEE, 90n, { fee: 5n, feeTo: FEE })]
    expect(read(taxed)).toMatchObject([{ received: 89n, feeAmount: 5n, feeReceived: 4n }])
    const unpaid = [transfer(PAYER, PAYEE, 90n), paid(PAYEE, 90n, { fee: 5n, feeTo: FEE })]
    expect(read(unpaid)).toMatchObject([{ feeReceived: 0n }])
    const toNobody = paid(PAYEE, 90n, { fee: 5n, feeTo: address('0') })
    expect(read([transfer(PAYER, PAYEE, 90n), toNobody])).toMatchObject([{ feeReceived: 0n }])
    expect(read([paidNative(PAYEE, 9n)])).toMatchObject([{ feeReceived: 0n }])
    // Coins that are sent to address 0 are burned, which costs the payer as much.
    const burned = { ...paidNative(PAYEE, 9n), data: words(PAYEE, 9n, 2n, ZERO_ADDRESS) }
    expect(read([burned])).toMatchObject([{ feeReceived: 2n }])
  })

  it('have the fee that a swap contract sends after the payment', () => {
    const paidBySwap = (amount: bigint) => [transfer(SWAP, PAYEE, amount), paid(PAYEE, amount, { feeTo: FEE })]
    const swapFees = (...logs: Draft[]) => read(logs).map(({ swapFeeReceived }) => swapFeeReceived)
    expect(swapFees(...paidBySwap(7n), transfer(SWAP, FEE, 3n))).toEqual([3n])
    expect(swapFees(...paidBySwap(7n), transfer(PAYER, FEE, 3n), transfer(SWAP, PAYER, 3n))).toEqual([0n])
    expect(swapFees(...paidBySwap(7n), transfer(SWAP, FEE, 3n, STRANGE))).toEqual([0n])
    expect(swapFees(transfer(PAYER, PAYEE, 7n), paid(PAYEE, 7n, { feeTo: FEE }), transfer(PAYER, FEE, 3n))).toEqual([
      0n,
    ])
    expect(swapFees(...paidBySwap(7n), transfer(SWAP, FEE, 3n), ...paidBySwap(8n), transfer(SWAP, FEE, 4n))).toEqual([
      3n,
      4n,
    ])
    const nobody = [transfer(SWAP, PAYEE, 7n), paid(PAYEE, 7n), transfer(SWAP, ZERO_ADDRESS, 3n)]
    expect(swapFees(...nobody)).toEqual([0n])
  })

  it('have the fee that a batch sends once, after its last payment', () => {
    const feeTo = { feeTo: FEE }
    const logs = [
      transfer(PAYER, BATCH, 9n),
      transfer(BATCH, PAYEE, 4n),
      paid(PAYEE, 4n, feeTo),
      transfer(BATCH, PAYEE, 5n),
      paid(PAYEE, 5n, feeTo),
      transfer(PAYER, FEE, 1n),
    ]
    expect(read(logs).map(({ swapFeeReceived }) => swapFeeReceived)).toEqual([0n, 1n])
  })

  it('received nothing where there is no Transfer', () => {
    const [event] = read([transfer(PAYER, FEE, 7n), paid(PAYEE, 7n)])
    expect(event).toMatchObject({ received: 0n })
    expect(event).toHaveProperty('payer', undefined)
  })

  it('of 0 do not claim somebody else’s Transfer to the same payee, even where the token logs no Transfer of 0', () => {
    const stranger = address('6')
    const signed = transfer(stranger, PAYEE, 100n)
    for (const own of [[], [transfer(PAYER, PAYEE, 0n)]]) {
      const [event] = read([signed, ...own, paid(PAYEE, 0n)])
      expect(event).toMatchObject({ received: 0n })
      expect(event).toHaveProperty('payer', undefined)
    }
  })

  it('do not claim a Transfer of more than their amount', () => {
    expect(read([transfer(PAYER, PAYEE, 8n), paid(PAYEE, 7n)])).toMatchObject([{ received: 0n }])
    const feeTooLarge = [transfer(PAYER, PAYEE, 7n), transfer(PAYER, FEE, 3n), paid(PAYEE, 7n, { fee: 2n, feeTo: FEE })]
    expect(read(feeTooLarge)).toMatchObject([{ received: 7n, feeReceived: 0n }])
  })

  it('claim amount and fee of one sender, whatever others send in between', () => {
    const logs = [
      transfer(PAYER, PAYEE, 7n),
      transfer(address('6'), PAYEE, 7n),
      transfer(PAYER, FEE, 1n),
      paid(PAYEE, 7n, { fee: 1n, feeTo: FEE }),
    ]
    expect(read(logs)).toMatchObject([{ received: 7n, feeReceived: 1n, payer: PAYER, paidFrom: PAYER }])
  })

  it('of a look-alike contract claim no Transfer', () => {
    const strange = paid(PAYEE, 7n, { emitter: STRANGE })
    expect(read([transfer(PAYER, PAYEE, 7n), strange, paid(PAYEE, 7n)])).toMatchObject([{ received: 7n }])
  })

  it('get the conversion that follows them with the same emitter and topic', () => {
    const events = read([
      transfer(PAYER, PAYEE, 7n),
      paid(PAYEE, 7n, { emitter: CONVERSION_PROXY }),
      converted(70n),
      transfer(PAYER, PAYEE, 8n),
      paid(PAYEE, 8n),
      transfer(PAYER, PAYEE, 9n),
      paid(PAYEE, 9n, { emitter: CONVERSION_PROXY }),
      converted(90n),
    ])
    expect(events.map(({ received, conversion }) => [received, conversion?.amount])).toEqual([
      [7n, 70n],
      [8n, undefined],
      [9n, 90n],
    ])
  })
})

describe('the payer', () => {
  it('of a swap is who gave it the token that it sold', () => {
    const logs = [
      transfer(PAYER, SWAP, 50n, DAI),
      transfer(SWAP, POOL, 50n, DAI),
      transfer(POOL, SWAP, 7n),
      transfer(SWAP, PAYEE, 7n),
      paid(PAYEE, 7n),
    ]
    expect(read(logs)).toMatchObject([{ payer: PAYER }])
  })

  it('is the same for all payments of a batch that took the money at once', () => {
    const other = address('6')
    const logs = [
      transfer(PAYER, BATCH, 10n),
      transfer(BATCH, PAYEE, 4n),
      paid(PAYEE, 4n),
      transfer(BATCH, PAYEE, 6n),
      paid(PAYEE, 6n),
      transfer(other, BATCH, 5n),
      transfer(BATCH, PAYEE, 5n),
      paid(PAYEE, 5n),
    ]
    expect(read(logs).map(({ payer }) => payer)).toEqual([PAYER, PAYER, other])
  })

  it('is not the sender of a Transfer of 0, nor of a Transfer of a token that is not listed', () => {
    const victim = address('6')
    const forged = [
      transfer(victim, BATCH, 0n),
      transfer(PAYER, BATCH, 7n),
      transfer(BATCH, PAYEE, 7n),
      paid(PAYEE, 7n),
    ]
    expect(read(forged)).toMatchObject([{ payer: PAYER }])
    const swapped = [transfer(victim, SWAP, 9n, STRANGE), transfer(SWAP, POOL, 9n, STRANGE), transfer(POOL, SWAP, 7n)]
    const [event] = read([...swapped, transfer(SWAP, PAYEE, 7n), paid(PAYEE, 7n)])
    expect(event).toMatchObject({ received: 7n })
    expect(event).toHaveProperty('payer', undefined)
  })

  it('is unknown where two senders put money in, in either order, until all of it is spent', () => {
    const other = address('6')
    const logs = [
      transfer(PAYER, BATCH, 5n),
      transfer(other, BATCH, 5n),
      transfer(BATCH, PAYEE, 5n),
      paid(PAYEE, 5n),
      transfer(BATCH, PAYEE, 5n),
      paid(PAYEE, 5n),
      transfer(other, BATCH, 5n),
      transfer(BATCH, PAYEE, 5n),
      paid(PAYEE, 5n),
    ]
    expect(read(logs).map(({ payer }) => payer)).toEqual([undefined, undefined, other])
  })

  it('is unknown where more was paid than the sender put in', () => {
    const [event] = read([transfer(PAYER, BATCH, 6n), transfer(BATCH, PAYEE, 7n), paid(PAYEE, 7n)])
    expect(event).toHaveProperty('payer', undefined)
  })

  it('is unknown where a bridge called the proxy: the money on this chain is the bridge’s', () => {
    const [carried, other] = read([
      transfer(POOL, EXECUTOR, 7n),
      transfer(EXECUTOR, PAYEE, 7n),
      paid(PAYEE, 7n),
      transfer(PAYER, PAYEE, 7n),
      paid(PAYEE, 7n),
    ])
    expect(carried).toMatchObject({ received: 7n, isCarried: true })
    expect(carried).toHaveProperty('payer', undefined)
    expect(other).toMatchObject({ payer: PAYER, isCarried: false })
  })

  it('is unknown where the intermediary got its money in another transaction', () => {
    for (const intermediary of [SWAP, BATCH]) {
      expect(read([transfer(intermediary, PAYEE, 7n), paid(PAYEE, 7n)])[0]).toHaveProperty('payer', undefined)
    }
  })
})
