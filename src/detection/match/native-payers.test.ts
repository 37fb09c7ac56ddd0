import fc from 'fast-check'
import {
  concatHex,
  encodeAbiParameters,
  encodeFunctionData,
  encodePacked,
  type Hex,
  numberToHex,
  padHex,
  parseAbi,
  size,
} from 'viem'
import { describe, expect, it } from 'vitest'
import { cast, receiptWith, testContracts } from '../../../test/support/chains/arbitrary-transactions.ts'
import { eventTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { topicOfReference } from '../../domain/identifiers.ts'
import type { KnownCalls } from '../read/call-frames.ts'
import { type CallFrame, readCallTracer, readParityTrace } from '../read/call-frames.ts'
import { readTransaction } from './read-transaction.ts'

const { alice, bob, shop, vendor, victim, feeTaker, batch } = cast
const address = (digits: string) => `0x${digits.padEnd(40, '0')}` as Address
const proxy = address('e1')
const olderProxy = address('e2')
const conversionProxy = address('e3')
const unlistedProxy = address('e4')
const proxyCode = address('e5')
const multiSend = address('5e4d')
const safe = address('5afe')
const REFERENCE: Hex = '0x0011223344556677'
const TOPIC = topicOfReference(REFERENCE)
const followed = { ...testContracts, contracts: new Set([proxy, olderProxy, conversionProxy]) }

const ABI = parseAbi([
  'function transferExactEthWithReferenceAndFee(address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function transferWithReferenceAndFee(address to, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function batchEthPaymentsWithReference(address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures)',
  'function multiSend(bytes transactions)',
  'struct Execution { address target; uint256 value; bytes data; }',
  'function executeBatch(Execution[] calls)',
  'function execute(bytes32 mode, bytes executionData)',
])
const CONVERSION_ABI = parseAbi([
  'function transferWithReferenceAndFee(address to, uint256 requestAmount, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 maxRateTimespan)',
])

type Log = Pick<RpcLog, 'address' | 'topics' | 'data'>

interface Payment {
  readonly kind: 'PAY'
  readonly proxy: Address
  readonly to: Address
  readonly amount: bigint
  readonly fee: bigint
  readonly feeTo: Address
  /** What the payee does when it receives the coins. */
  readonly inner: readonly Act[]
}

/** What a wallet or contract does within a transaction. */
type Act =
  | Payment
  | { readonly kind: 'CALL'; readonly to: Address; readonly reverts: boolean; readonly inner: readonly Act[] }
  | { readonly kind: 'BATCH'; readonly isShort: boolean; readonly payments: readonly Payment[] }

/** Who called the proxy for an event, and who brought the coins. */
interface Truth {
  readonly emitter: Address
  readonly caller: Address
  readonly payer: Address | undefined
}

interface Outcome {
  readonly logs: Log[]
  readonly truths: Truth[]
}

const words = (...values: (bigint | string)[]): Hex =>
  encodeAbiParameters(
    values.map(() => ({ type: 'uint256' })),
    values.map((value) => BigInt(value)),
  )
const frame = (given: Partial<CallFrame> & Pick<CallFrame, 'from' | 'to'>): CallFrame => ({
  kind: 'CALL',
  value: 0n,
  input: '0x',
  isReverted: false,
  calls: [],
  ...given,
})
const exactCall = ({ to, amount, fee, feeTo }: Payment): Hex =>
  encodeFunctionData({
    abi: ABI,
    functionName: 'transferExactEthWithReferenceAndFee',
    args: [to as Hex, amount, REFERENCE, fee, feeTo as Hex],
  })
const conversionCall = ({ to, amount, fee, feeTo }: Payment): Hex =>
  encodeFunctionData({
    abi: CONVERSION_ABI,
    functionName: 'transferWithReferenceAndFee',
    args: [to as Hex, 10n * amount, [], REFERENCE, 10n * fee, feeTo as Hex, 0n],
  })
const callOf = (payment: Payment) => (payment.proxy === conversionProxy ? conversionCall(payment) : exactCall(payment))
const valueOf = ({ amount, fee }: Payment) => amount + fee
const paidNative = ({ proxy: emitter, to, amount, fee, feeTo }: Payment): Log => ({
  address: emitter,
  topics: [eventTopics.nativePayment, TOPIC],
  data: words(to, amount, fee, feeTo),
})
const converted = ({ proxy: emitter, amount, fee }: Payment): Log => ({
  address: emitter,
  topics: [eventTopics.conversion, TOPIC],
  data: words(10n * amount, address('9'), 10n * fee, 0n),
})

/** Runs a payment as the contracts do: pays the payee, pays the fee, and emits the event last. */
function pay(payment: Payment, caller: Address, payer: Address | undefined, out: Outcome): CallFrame {
  const { proxy: emitter, to, amount, fee, feeTo, inner } = payment
  const sends = [
    frame({ from: emitter, to, value: amount, calls: inner.map((act) => run(act, to, out)) }),
    frame({ from: emitter, to: feeTo, value: fee }),
  ]
  out.logs.push(paidNative(payment))
  out.truths.push({ emitter, caller, payer })
  const call = { from: caller, to: emitter, value: valueOf(payment), input: callOf(payment) }
  if (emitter !== conversionProxy) return frame({ ...call, calls: sends })
  out.logs.push(converted(payment))
  const delegated = { kind: 'DELEGATE', from: emitter, to: proxyCode, input: exactCall(payment), calls: sends } as const
  return frame({ ...call, calls: [frame({ kind: 'STATIC', from: emitter, to: address('1') }), frame(delegated)] })
}

function run(act: Act, self: Address, out: Outcome): CallFrame {
  if (act.kind === 'PAY') return pay(act, self, self, out)
  if (act.kind === 'BATCH') {
    const due = act.payments.reduce((sum, payment) => sum + valueOf(payment), 0n)
    const isShort = act.isShort && due > 0n
    const calls = act.payments.map((payment) => pay(payment, batch, isShort ? undefined : self, out))
    const input = encodeFunctionData({
      abi: ABI,
      functionName: 'batchEthPaymentsWithReference',
      args: [
        act.payments.map(({ to }) => to as Hex),
        act.payments.map(({ amount }) => amount),
        act.payments.map(() => REFERENCE),
        act.payments.map(({ fee }) => fee),
        feeTaker as Hex,
      ],
    })
    return frame({ from: self, to: batch, value: isShort ? due - 1n : due, input, calls })
  }
  const inside: Outcome = act.reverts ? { logs: [], truths: [] } : out
  const calls = act.inner.map((each) => run(each, act.to, inside))
  return frame({ from: self, to: act.to, input: '0x12345678', isReverted: act.reverts, calls })
}

/** What detection finds for each event, and the truth. */
function compare(root: CallFrame, out: Outcome, calls: KnownCalls | undefined) {
  const receipt = receiptWith(out.logs, { from: root.from, to: root.to })
  return readTransaction(receipt, followed, calls).map(({ payer, paidFrom, emitter }, index) => ({
    reported: { emitter, payer, paidFrom },
    truth: out.truths.filter((each) => followed.contracts.has(each.emitter))[index],
  }))
}

const ownCall = ({ value, input }: CallFrame): KnownCalls => ({ kind: 'OWN_CALL', value, input })

const anyone = fc.constantFrom(alice, bob, shop, vendor)
const { act: anyAct } = fc.letrec<{ act: Act; payment: Payment; inner: Act[] }>((tie) => ({
  inner: fc.oneof({ depthSize: 'small' }, fc.constant<Act[]>([]), fc.array(tie('act'), { maxLength: 2 })),
  payment: fc.record({
    kind: fc.constant('PAY' as const),
    proxy: fc.constantFrom(proxy, proxy, olderProxy, conversionProxy, unlistedProxy),
    to: anyone,
    amount: fc.bigInt(0n, 3n),
    fee: fc.bigInt(0n, 2n),
    feeTo: fc.constantFrom(ZERO_ADDRESS, feeTaker),
    inner: tie('inner'),
  }),
  act: fc.oneof(
    { depthSize: 'small' },
    tie('payment'),
    fc.record({ kind: fc.constant('CALL' as const), to: anyone, reverts: fc.boolean(), inner: tie('inner') }),
    fc.record({
      kind: fc.constant('BATCH' as const),
      isShort: fc.boolean(),
      payments: fc.array(
        tie('payment').map((payment) => ({ ...payment, proxy, feeTo: feeTaker })),
        { maxLength: 3 },
      ),
    }),
  ),
}))

describe('the payer of a payment in coins, whatever the calls', () => {
  it('is the direct caller in the trace, or the caller of a batch who brought enough', () => {
    fc.assert(
      fc.property(anyAct, (act) => {
        const out: Outcome = { logs: [], truths: [] }
        const root = run(act, bob, out)
        if (root.isReverted) return
        for (const { reported, truth } of compare(root, out, { kind: 'TRACE', root })) {
          const paidFrom = truth?.caller === batch ? undefined : truth?.caller
          expect(reported).toEqual({ emitter: truth?.emitter, payer: truth?.payer, paidFrom })
        }
      }),
      { numRuns: 500 },
    )
  })

  it('is right or unknown without a trace', () => {
    fc.assert(
      fc.property(anyAct, fc.boolean(), (act, hasCall) => {
        const out: Outcome = { logs: [], truths: [] }
        const root = run(act, bob, out)
        for (const { reported, truth } of compare(root, out, hasCall ? ownCall(root) : undefined)) {
          expect([undefined, truth?.payer]).toContain(reported.payer)
          expect([undefined, truth?.caller]).toContain(reported.paidFrom)
        }
      }),
      { numRuns: 500 },
    )
  })
})

const payment = (given: Partial<Payment> = {}): Payment => ({
  kind: 'PAY',
  proxy,
  to: shop,
  amount: 7n,
  fee: 1n,
  feeTo: feeTaker,
  inner: [],
  ...given,
})
const executionOf = (each: Payment) => ({ target: each.proxy as Hex, value: valueOf(each), data: callOf(each) })
const packed = (each: Payment): Hex => {
  const data = callOf(each)
  return encodePacked(
    ['uint8', 'address', 'uint256', 'uint256', 'bytes'],
    [0, each.proxy as Hex, valueOf(each), BigInt(size(data)), data],
  )
}
const execTransaction = (to: Address, value: bigint, data: Hex, operation = 0): Hex =>
  encodeFunctionData({
    abi: ABI,
    functionName: 'execTransaction',
    args: [to as Hex, value, data, operation, 0n, 0n, 0n, ZERO_ADDRESS as Hex, ZERO_ADDRESS as Hex, '0x'],
  })
const multiSendOf = (payments: readonly Payment[]) =>
  execTransaction(
    multiSend,
    0n,
    encodeFunctionData({ abi: ABI, functionName: 'multiSend', args: [concatHex(payments.map(packed))] }),
    1,
  )
const batchMode = padHex('0x01', { dir: 'right', size: 32 })
const executeList = (payments: readonly Payment[], mode: Hex = batchMode): Hex =>
  encodeFunctionData({
    abi: ABI,
    functionName: 'execute',
    args: [
      mode,
      encodeAbiParameters(
        [{ type: 'tuple[]', components: [{ type: 'address' }, { type: 'uint256' }, { type: 'bytes' }] }],
        [
          payments.map(
            ({ proxy: to, ...rest }) =>
              [to as Hex, valueOf({ proxy: to, ...rest }), callOf({ proxy: to, ...rest })] as const,
          ),
        ],
      ),
    ],
  })

/** The payers that are found in a transaction of which only the sender's own call is known. */
function payersOf(
  paid: readonly Payment[],
  { from, to, input, value = 0n }: { from: Address; to: Address; input: Hex; value?: bigint },
  otherLogs: readonly Log[] = [],
) {
  const logs = paid.flatMap((each) =>
    each.proxy === conversionProxy ? [paidNative(each), converted(each)] : [paidNative(each)],
  )
  const calls: KnownCalls = { kind: 'OWN_CALL', input, value }
  return readTransaction(receiptWith([...logs, ...otherLogs], { from, to }), followed, calls).map(
    ({ payer, paidFrom }) => [payer, paidFrom],
  )
}

const two = [payment(), payment({ proxy: conversionProxy, to: vendor, amount: 3n })]
const bySafe = { from: bob, to: safe }
const byAccount = { from: alice, to: alice }
const safeSuccess = (by: Address): Log => ({
  address: by,
  topics: [`0x${'4'.repeat(64)}`],
  data: '0x',
})

describe('without a trace', () => {
  it.each([
    ['a Safe', [payment()], { ...bySafe, input: execTransaction(proxy, 8n, callOf(payment())) }, safe],
    ['a Safe with MultiSend', two, { ...bySafe, input: multiSendOf(two) }, safe],
    ['an account that executes a list', two, { ...byAccount, input: executeList(two) }, alice],
    [
      'an account that executes one call',
      [payment()],
      {
        ...byAccount,
        input: encodeFunctionData({
          abi: ABI,
          functionName: 'execute',
          args: [
            padHex('0x00', { dir: 'right', size: 32 }),
            encodePacked(['address', 'uint256', 'bytes'], [proxy as Hex, 8n, callOf(payment())]),
          ],
        }),
      },
      alice,
    ],
    [
      'an account that executes a batch',
      two,
      {
        ...byAccount,
        input: encodeFunctionData({ abi: ABI, functionName: 'executeBatch', args: [two.map(executionOf)] }),
      },
      alice,
    ],
  ])('%s is the payer and the caller', (_, paid, transaction, expected) => {
    expect(payersOf(paid, transaction)).toEqual(paid.map(() => [expected, expected]))
  })

  it.each<[string, readonly Payment[], { from: Address; to: Address; input: Hex; value?: bigint }, Log[]]>([
    ['one event too many', [...two, payment()], { ...bySafe, input: multiSendOf(two) }, []],
    ['one event too few', two.slice(0, 1), { ...bySafe, input: multiSendOf(two) }, []],
    ['another order', two.toReversed(), { ...bySafe, input: multiSendOf(two) }, []],
    [
      'another amount',
      [payment({ amount: 8n })],
      { ...bySafe, input: execTransaction(proxy, 9n, callOf(payment())) },
      [],
    ],
    ['less value than was paid', [payment()], { ...bySafe, input: execTransaction(proxy, 7n, callOf(payment())) }, []],
    [
      'an event of another contract beside it',
      [payment(), payment({ proxy: unlistedProxy })],
      { ...bySafe, input: execTransaction(proxy, 8n, callOf(payment())) },
      [],
    ],
    [
      'another wallet contract that logs a call',
      [payment()],
      { ...bySafe, input: execTransaction(proxy, 8n, callOf(payment())) },
      [safeSuccess(victim)],
    ],
    [
      'a list whose calls may fail',
      two,
      { ...byAccount, input: executeList(two, padHex('0x0101', { dir: 'right', size: 32 })) },
      [],
    ],
    ['calldata that is cut off', two, { ...bySafe, input: multiSendOf(two).slice(0, 700) as Hex }, []],
    ['an account that another address called', two, { from: bob, to: alice, input: executeList(two) }, []],
  ])('all are unknown where there is %s', (_, paid, transaction, otherLogs) => {
    for (const reported of payersOf(paid, transaction, otherLogs)) expect(reported).toEqual([undefined, undefined])
  })

  it('events of the Safe and of payees do not count as unrelated', () => {
    const transaction = { ...bySafe, input: execTransaction(proxy, 8n, callOf(payment())) }
    expect(payersOf([payment()], transaction, [safeSuccess(safe), safeSuccess(shop)])).toEqual([[safe, safe]])
  })

  it('who sends coins to a SingleRequestProxy is the payer but not the caller of the proxy', () => {
    const transaction = { from: alice, to: batch, input: '0x', value: 8n } as const
    expect(payersOf([payment()], transaction)).toEqual([[alice, undefined]])
    expect(payersOf([payment()], { ...transaction, value: 7n })).toEqual([[undefined, undefined]])
    expect(payersOf([payment(), payment()], { ...transaction, value: 16n })).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ])
  })
})

describe('a trace', () => {
  const out: Outcome = { logs: [], truths: [] }
  const act: Act = {
    kind: 'CALL',
    to: alice,
    reverts: false,
    inner: [{ kind: 'CALL', to: vendor, reverts: true, inner: [payment({ to: vendor })] }, payment()],
  }
  const root = run(act, bob, out)

  it('means the same in both forms that nodes answer', () => {
    expect(readCallTracer(toCallTracer(root))).toEqual(withoutIdle(root))
    expect(readParityTrace(toParity(root))).toEqual(withoutIdle(root))
    expect(compare(root, out, { kind: 'TRACE', root })).toMatchObject([{ reported: { payer: alice, paidFrom: alice } }])
  })

  it.each([null, undefined, 7, 'text', {}, { structLogs: [] }, { type: 'CALL' }])('is not %j', (json) => {
    expect(readCallTracer(json)).toBeUndefined()
    expect(readParityTrace(json)).toBeUndefined()
    expect(readParityTrace([json])).toBeUndefined()
  })

  it('of another transaction is ignored', () => {
    const other = { ...root, from: victim }
    const [first] = compare(root, out, { kind: 'TRACE', root: other })
    expect(first?.reported.payer).toBeUndefined()
  })

  it('shows the fee that a batch sends beside its payments', () => {
    const paid = { kind: 'BATCH', isShort: false, payments: [payment(), payment()] } as const
    const batched: Outcome = { logs: [], truths: [] }
    const call = run(paid, bob, batched)
    const fee = frame({ from: batch, to: feeTaker, value: 2n })
    const withFee = {
      ...call,
      value: call.value + 3n,
      calls: [...call.calls, fee, frame({ from: batch, to: bob, value: 1n })],
    }
    const receipt = receiptWith(batched.logs, { from: bob, to: batch })
    const events = readTransaction(receipt, followed, { kind: 'TRACE', root: withFee })
    expect(events.map(({ payer, swapFeeReceived }) => [payer, swapFeeReceived])).toEqual([
      [bob, 0n],
      [bob, 2n],
    ])
  })
})

const KIND_NAMES = { CALL: 'CALL', DELEGATE: 'DELEGATECALL', STATIC: 'STATICCALL', CREATE: 'CREATE' } as const

function toCallTracer({ kind, isReverted, value, calls, ...rest }: CallFrame): unknown {
  const error = isReverted ? { error: 'execution reverted' } : {}
  return { ...rest, ...error, type: KIND_NAMES[kind], value: numberToHex(value), calls: calls.map(toCallTracer) }
}

function toParity({ kind, isReverted, value, calls, ...rest }: CallFrame, traceAddress: number[] = []): unknown[] {
  const action = { ...rest, value: numberToHex(value), callType: KIND_NAMES[kind].toLowerCase() }
  const own = { type: 'call', action, traceAddress, ...(isReverted ? { error: 'Reverted' } : {}) }
  return [own, ...calls.flatMap((call, index) => toParity(call, [...traceAddress, index]))]
}

/** All addresses that can have paid. */
function withoutIdle(of: CallFrame): CallFrame {
  const calls = of.calls.filter(({ kind, isReverted }) => kind !== 'STATIC' && !isReverted)
  return { ...of, calls: calls.map(withoutIdle) }
}
