import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { type AcceptedAs, invoiceUnitOf, type MatchableRequest, matchEvent, unmatchedReasons } from './match-event.ts'
import type { SeenEvent } from './read-transaction.ts'

const address = (digit: string) => `0x${digit.repeat(40)}` as Address
const topic = (digit: string): Hex => `0x${digit.repeat(64)}`

const USDC = address('c')
const DAI = address('d')
const USD = '0x775eb53d00dd0acd3ec1696472105d579b9b386b' as Address
const EUR = '0x17b4158805772ced11225e77339f90beb5aae968' as Address

const config = (name: string, chainId: number): ChainConfig => ({
  name,
  chainId,
  rpcUrls: ['http://127.0.0.1'],
  multicall: address('1'),
  native: { symbol: 'ETH', decimals: 18 },
  tokens: [
    { symbol: 'USDC', address: USDC, decimals: 6 },
    { symbol: 'DAI', address: DAI, decimals: 18 },
  ],
  contracts: [],
  finality: { useFinalizedTag: false, depth: 3 },
  blockTimeSeconds: 2,
})
const tokens = createTokenDirectory([config('BASE', 1), config('POLYGON', 2)])

function request(given: Partial<MatchableRequest> = {}): MatchableRequest {
  return {
    requestId: '01'.padEnd(66, '0'),
    salt: '0'.repeat(16),
    paymentReference: '0x0011223344556677',
    payee: address('a'),
    amount: { units: 100n, places: 0 },
    invoiceCurrency: 'USDC-BASE',
    paymentCurrency: 'USDC-BASE',
    network: 'BASE',
    createdAt: new Date(0),
    topic: topic('1'),
    ...given,
  }
}

function event(given: Partial<SeenEvent> = {}): SeenEvent {
  return {
    emitter: address('e'),
    topic: topic('1'),
    token: USDC,
    to: address('a'),
    amount: 100n,
    feeAmount: 0n,
    feeAddress: address('0'),
    eventIndex: 0,
    logIndex: 0,
    received: 100n,
    feeReceived: 0n,
    swapFeeReceived: 0n,
    payer: address('b'),
    isCarried: false,
    ...given,
  }
}

/** A context in which nothing is known beside the event, unless given. */
interface Known {
  readonly payers?: readonly Address[]
  readonly hasUnknownPayer?: boolean
  readonly wallets?: readonly Address[]
  readonly intermediaries?: readonly Address[]
  readonly accepted?: AcceptedAs | undefined
}

const context = (chain = 'BASE', known: Known = {}) => ({
  chain,
  tokens,
  hasPaid: (_: MatchableRequest, who: Address) => known.payers?.includes(who) ?? false,
  hasUnknownPayer: () => known.hasUnknownPayer ?? false,
  isWallet: (who: Address) => known.wallets?.includes(who) ?? false,
  isIntermediary: (who: Address) => known.intermediaries?.includes(who) ?? false,
  accepted: known.accepted,
})
const conversion = { amount: 500n, currency: USD, feeAmount: 0n }

it('names fiat currencies, coins and tokens as conversion events do', () => {
  expect(invoiceUnitOf('USD', tokens)).toEqual({ address: USD, decimals: 8 })
  expect(invoiceUnitOf('EUR', tokens)).toEqual({ address: EUR, decimals: 8 })
  expect(invoiceUnitOf('DAI-BASE', tokens)).toEqual({ address: DAI, decimals: 18 })
  expect(invoiceUnitOf('ETH-BASE', tokens)?.decimals).toBe(18)
  expect(invoiceUnitOf('NOPE-BASE', tokens)).toBeUndefined()
})

describe('payments', () => {
  it('counts what the payee received, not the amount of the event', () => {
    const match = matchEvent(event({ received: 99n }), [request()], context())
    expect(match).toMatchObject({ kind: 'PAYMENT', amount: 99n, invoiceAmount: 99n, invoiceDecimals: 6 })
  })

  it('counts the amount of the conversion event for a conversion', () => {
    const match = matchEvent(event({ conversion }), [request({ invoiceCurrency: 'USD' })], context())
    expect(match).toMatchObject({ kind: 'PAYMENT', amount: 100n, invoiceAmount: 500n, invoiceDecimals: 8 })
  })

  it.each([
    [99n, 495n],
    [33n, 165n],
    [1n, 5n],
    // More than the amount of the event came from elsewhere.
    [101n, 500n],
  ])('counts of a conversion what part of it arrived: %d of 100', (received, invoiceAmount) => {
    const match = matchEvent(event({ conversion, received }), [request({ invoiceCurrency: 'USD' })], context())
    expect(match).toMatchObject({ kind: 'PAYMENT', amount: received, invoiceAmount })
  })

  it('rounds a conversion down, and counts nothing where it rounds to 0', () => {
    const small = event({ received: 33n, conversion: { ...conversion, amount: 7n } })
    const wanted = request({ invoiceCurrency: 'USD' })
    expect(matchEvent(small, [wanted], context())).toMatchObject({ kind: 'PAYMENT', invoiceAmount: 2n })
    const tiny = event({ received: 33n, conversion: { ...conversion, amount: 3n } })
    expect(matchEvent(tiny, [wanted], context())).toEqual({ kind: 'UNMATCHED', reason: 'NOTHING_RECEIVED' })
  })

  it.each([
    ['SELF_PAYMENT', event({ paidFrom: address('a') }), request(), 'BASE'],
    ['SELF_PAYMENT', event({ payer: address('a'), paidFrom: address('6') }), request(), 'BASE'],
    ['NOTHING_RECEIVED', event({ received: 0n, paidFrom: address('a') }), request(), 'BASE'],
    ['WRONG_CHAIN', event(), request(), 'POLYGON'],
    ['WRONG_PAYEE', event({ to: address('9') }), request(), 'BASE'],
    ['WRONG_TOKEN', event({ token: DAI }), request(), 'BASE'],
    ['WRONG_TOKEN', event({ token: undefined } as never), request(), 'BASE'],
    ['NOT_A_CONVERSION', event(), request({ invoiceCurrency: 'USD' }), 'BASE'],
    ['WRONG_TOKEN', event({ conversion }), request({ invoiceCurrency: 'EUR' }), 'BASE'],
    ['WRONG_TOKEN', event({ conversion }), request(), 'BASE'],
    ['NOTHING_RECEIVED', event({ received: 0n }), request(), 'BASE'],
  ] as const)('%s', (reason, seen, wanted, chain) => {
    expect(matchEvent(seen, [wanted], context(chain))).toEqual({ kind: 'UNMATCHED', reason })
  })

  it('names the reason of the request that came closest', () => {
    const requests = [
      request({ network: 'POLYGON', paymentCurrency: 'USDC-POLYGON' }),
      request({ invoiceCurrency: 'USD' }),
    ]
    expect(matchEvent(event(), requests, context())).toEqual({ kind: 'UNMATCHED', reason: 'NOT_A_CONVERSION' })
  })

  it('takes the request with the event’s payee where two share a topic', () => {
    const other = request({ payee: address('8'), requestId: '02' })
    expect(matchEvent(event(), [other, request()], context())).toMatchObject({ kind: 'PAYMENT', request: request() })
  })
})

describe('refunds', () => {
  const [payee, payer, refundAddress, hotWallet, other] = ['a', 'b', '7', '5', '6'].map(address) as [
    Address,
    Address,
    Address,
    Address,
    Address,
  ]
  const refundable = request({ refundAddress, refundTopic: topic('2') })
  const toRefundAddress = event({ topic: topic('2'), to: refundAddress, paidFrom: payee })
  const toPayer = event({ to: payer, paidFrom: payee })
  const paidBy = (...payers: Address[]) => ({ payers })

  it('go to the refund address under its own reference', () => {
    expect(matchEvent(toRefundAddress, [refundable], context())).toMatchObject({ kind: 'REFUND', amount: 100n })
  })

  it('go to an earlier payer under the request’s reference', () => {
    expect(matchEvent(toPayer, [request()], context('BASE', paidBy(payer)))).toMatchObject({ kind: 'REFUND' })
  })

  it('may come from a registered wallet', () => {
    const known = { ...paidBy(payer), wallets: [hotWallet] }
    const events = [
      { ...toRefundAddress, paidFrom: hotWallet },
      { ...toPayer, paidFrom: hotWallet },
    ]
    for (const seen of events) {
      expect(matchEvent(seen, [refundable], context('BASE', known)).kind).toBe('REFUND')
      expect(matchEvent(seen, [refundable], context('BASE', paidBy(payer))).kind).toBe('UNMATCHED')
    }
  })

  it('go to anybody but the payee and its wallets where a payer is unknown', () => {
    const known = { hasUnknownPayer: true, wallets: [hotWallet] }
    const kindTo = (to: Address) => matchEvent({ ...toPayer, to }, [request()], context('BASE', known)).kind
    expect([other, payee, hotWallet].map(kindTo)).toEqual(['REFUND', 'UNMATCHED', 'UNMATCHED'])
    const unpaid = { ...toPayer, to: payee, paidFrom: hotWallet, received: 0n }
    expect(matchEvent(unpaid, [request()], context('BASE', known))).toMatchObject({ reason: 'NOTHING_RECEIVED' })
  })

  it.each([
    ['WRONG_PAYEE', { ...toRefundAddress, to: other }, {}],
    ['WRONG_TOKEN', { ...toRefundAddress, token: DAI }, {}],
    ['NOTHING_RECEIVED', { ...toRefundAddress, received: 0n }, {}],
    ['SELF_PAYMENT', { ...toRefundAddress, paidFrom: refundAddress }, { wallets: [refundAddress] }],
    ['NOT_FROM_PAYEE', { ...toRefundAddress, paidFrom: payer, payer: payee }, {}],
    ['NOT_FROM_PAYEE', { ...toRefundAddress, paidFrom: undefined, payer: payee }, {}],
    ['NOT_FROM_PAYEE', toRefundAddress, { intermediaries: [payee] }],
    ['WRONG_PAYEE', toPayer, paidBy(other)],
    ['WRONG_PAYEE', { ...toPayer, paidFrom: other, payer: payee }, paidBy(payer)],
    ['WRONG_PAYEE', { ...toPayer, paidFrom: undefined, payer: payee }, paidBy(payer)],
    [
      'WRONG_PAYEE',
      { ...toPayer, paidFrom: hotWallet },
      { ...paidBy(payer), wallets: [hotWallet], intermediaries: [hotWallet] },
    ],
  ] as const)('do not count otherwise: %s', (reason, seen, known) => {
    expect(matchEvent(seen, [refundable], context('BASE', known))).toEqual({ kind: 'UNMATCHED', reason })
  })

  it('do not count on another chain', () => {
    const match = matchEvent(toRefundAddress, [refundable], context('POLYGON'))
    expect(match).toEqual({ kind: 'UNMATCHED', reason: 'WRONG_CHAIN' })
  })

  it.each([
    ['NOT_FROM_PAYEE', { ...toRefundAddress, paidFrom: other }],
    ['WRONG_PAYEE', { ...toPayer, to: other, paidFrom: hotWallet }],
  ] as const)('that failed by %s count once they are accepted', (reason, seen) => {
    expect(matchEvent(seen, [refundable], context())).toEqual({ kind: 'UNMATCHED', reason })
    expect(matchEvent(seen, [refundable], context('BASE', { accepted: 'REFUND' })).kind).toBe('REFUND')
    expect(matchEvent(seen, [refundable], context('BASE', { accepted: 'PAYMENT' })).kind).toBe('UNMATCHED')
  })

  it.each([
    ['WRONG_PAYEE', { ...toRefundAddress, to: other }],
    ['WRONG_TOKEN', { ...toRefundAddress, token: DAI }],
    ['NOTHING_RECEIVED', { ...toRefundAddress, received: 0n }],
    ['SELF_PAYMENT', { ...toRefundAddress, paidFrom: refundAddress }],
  ] as const)('do not count even when accepted: %s', (reason, seen) => {
    const match = matchEvent(seen, [refundable], context('BASE', { accepted: 'REFUND' }))
    expect(match).toEqual({ kind: 'UNMATCHED', reason })
  })

  it('are not payments to a payee whose address is the refund address', () => {
    const own = request({ invoiceCurrency: 'USD', refundAddress: payee, refundTopic: topic('1') })
    expect(matchEvent(event(), [own], context())).toEqual({ kind: 'UNMATCHED', reason: 'NOT_A_CONVERSION' })
    expect(matchEvent(event({ conversion }), [own], context()).kind).toBe('PAYMENT')
    const elsewhere = event({ to: address('9') })
    expect(matchEvent(elsewhere, [own], context())).toEqual({ kind: 'UNMATCHED', reason: 'WRONG_PAYEE' })
  })
})

/** The rules written a second time, as a list of conditions that is tried for every request. */
function matchSlowly(seen: SeenEvent, requests: readonly MatchableRequest[], chain: string, known: Known) {
  const { payers = [], wallets = [], intermediaries = [] } = known
  const isFiat = (wanted: MatchableRequest) => !wanted.invoiceCurrency.includes('-')
  const hash: Record<string, Address> = { USD, EUR }
  const moves = (wanted: MatchableRequest) =>
    wanted.network === chain && wanted.paymentCurrency === `${seen.token === USDC ? 'USDC' : 'DAI'}-${chain}`
  const invoiceFits = (wanted: MatchableRequest) =>
    isFiat(wanted) ? seen.conversion?.currency === hash[wanted.invoiceCurrency] : seen.conversion === undefined
  const pays = (wanted: MatchableRequest) =>
    wanted.topic === seen.topic &&
    wanted.payee === seen.to &&
    moves(wanted) &&
    invoiceFits(wanted) &&
    seen.received > 0n &&
    seen.payer !== wanted.payee &&
    seen.paidFrom !== wanted.payee
  const isOwnMoney = ({ payee }: MatchableRequest) =>
    known.accepted === 'REFUND' ||
    [payee, ...wallets].some((own) => own === seen.paidFrom && !intermediaries.includes(own))
  const mayGetBack = ({ payee }: MatchableRequest) =>
    seen.to !== payee &&
    (known.accepted === 'REFUND' ||
      payers.includes(seen.to) ||
      (known.hasUnknownPayer === true && !wallets.includes(seen.to)))
  const isRightPlace = (wanted: MatchableRequest) =>
    wanted.topic === seen.topic
      ? mayGetBack(wanted)
      : wanted.refundTopic === seen.topic && wanted.refundAddress === seen.to
  const returns = (wanted: MatchableRequest) =>
    moves(wanted) && seen.received > 0n && seen.paidFrom !== seen.to && isRightPlace(wanted) && isOwnMoney(wanted)
  const paid = requests.find(pays)
  if (paid !== undefined) return { kind: 'PAYMENT', requestId: paid.requestId }
  const returned = requests.find(returns)
  return returned === undefined ? { kind: 'UNMATCHED' } : { kind: 'REFUND', requestId: returned.requestId }
}

const anyAddress = fc.constantFrom(...['a', 'b', '7'].map(address))
const anyTopic = fc.constantFrom(...['1', '2'].map(topic))
const anyRequest = fc
  .record({
    network: fc.constantFrom('BASE', 'POLYGON'),
    symbol: fc.constantFrom('USDC', 'DAI'),
    invoice: fc.constantFrom('USD', 'EUR', undefined),
    payee: anyAddress,
    topic: anyTopic,
    refundTopic: anyTopic,
    refundAddress: anyAddress,
  })
  .map(({ symbol, invoice, network, ...rest }) => {
    const paymentCurrency = `${symbol}-${network}`
    return request({ ...rest, network, paymentCurrency, invoiceCurrency: invoice ?? paymentCurrency })
  })
const anyKnown: fc.Arbitrary<Known> = fc.record({
  payers: fc.subarray(['a', 'b', '7'].map(address)),
  hasUnknownPayer: fc.boolean(),
  wallets: fc.subarray(['b', '7'].map(address)),
  intermediaries: fc.subarray(['a', '7'].map(address), { maxLength: 1 }),
  accepted: fc.constantFrom('PAYMENT', 'REFUND', undefined),
})
const anyEvent = fc.record({
  topic: anyTopic,
  to: anyAddress,
  payer: anyAddress,
  paidFrom: fc.option(anyAddress, { nil: undefined }),
  token: fc.constantFrom(USDC, DAI),
  received: fc.constantFrom(0n, 5n),
  currency: fc.constantFrom(USD, EUR, undefined),
})

describe('compared with the list of conditions', () => {
  it('matchEvent decides the same for any event and requests', () => {
    fc.assert(
      fc.property(
        anyEvent,
        fc.array(anyRequest, { maxLength: 4 }),
        fc.constantFrom('BASE', 'POLYGON'),
        anyKnown,
        ({ currency, ...given }, drafts, chain, known) => {
          const requests = drafts.map((draft, index) => ({ ...draft, requestId: String(index) }))
          const seen = event({ ...given, ...(currency && { conversion: { amount: 300n, currency, feeAmount: 0n } }) })
          const match = matchEvent(seen, requests, context(chain, known))
          const found =
            match.kind === 'UNMATCHED' ? { kind: match.kind } : { kind: match.kind, requestId: match.request.requestId }
          expect(found).toEqual(matchSlowly(seen, requests, chain, known))
          if (match.kind === 'UNMATCHED') expect(unmatchedReasons).toContain(match.reason)
        },
      ),
      { numRuns: 3_000 },
    )
  })
})
