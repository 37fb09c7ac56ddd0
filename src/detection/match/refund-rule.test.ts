import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { decideStanding, type LedgerPayment, type LedgerRefund, type PaymentStanding } from '../../domain/standing.ts'
import { openAccountBook } from '../find/account-book.ts'
import type { FirstPayment, KnownPayers, WalletTime } from '../sql/account-events-repository.ts'
import { type MatchableRequest, matchEvent } from './match-event.ts'
import type { SeenEvent } from './read-transaction.ts'

/**
 * What counts as a refund, over sequences of events under the references of one request: whoever sends what to whom, only the payee's own money and
 * that of wallets registered at the time does.
 */

const address = (digit: string) => `0x${digit.repeat(40)}` as Address
const topic = (digit: string): Hex => `0x${digit.repeat(64)}`
const txHashOf = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`

const [PAYEE, REFUND_ADDRESS, USDC] = [address('a'), address('7'), address('c')]
const SENDERS = ['a', 'b', 'd', 'e', '7', '5'].map(address)
const OWN = topic('1')
const REFUNDS = topic('2')
/** In seconds: the time of the first event's block. Each further event is ten seconds later. */
const BEGIN_SEC = 1_000_000

const config: ChainConfig = {
  name: 'BASE',
  chainId: 1,
  rpcUrls: ['http://127.0.0.1'],
  multicall: address('1'),
  native: { symbol: 'ETH', decimals: 18 },
  tokens: [{ symbol: 'USDC', address: USDC, decimals: 6 }],
  contracts: [],
  finality: { useFinalizedTag: false, depth: 3 },
  blockTimeSeconds: 2,
}
const tokens = createTokenDirectory([config])
const request: MatchableRequest = {
  requestId: '01'.padEnd(66, '0'),
  salt: '0'.repeat(16),
  paymentReference: '0x0011223344556677',
  payee: PAYEE,
  amount: { units: 100n, places: 0 },
  invoiceCurrency: 'USDC-BASE',
  paymentCurrency: 'USDC-BASE',
  network: 'BASE',
  createdAt: new Date(0),
  topic: OWN,
  refundTopic: REFUNDS,
  refundAddress: REFUND_ADDRESS,
}

/** An event, and whether the next one is matched by a later scan. */
interface Step {
  readonly topic: Hex
  readonly to: Address
  readonly paidFrom: Address | undefined
  readonly payer: Address | undefined
  readonly units: number
  readonly endsStep: boolean
}

interface Registration extends WalletTime {
  readonly wallet: Address
}

interface Placed extends Step {
  readonly place: number
}

const timeOf = ({ place }: Placed) => BEGIN_SEC + place * 10

const anyStep: fc.Arbitrary<Step> = fc.record({
  topic: fc.constantFrom(OWN, OWN, REFUNDS),
  to: fc.constantFrom(PAYEE, PAYEE, ...SENDERS),
  paidFrom: fc.option(fc.constantFrom(...SENDERS), { nil: undefined, freq: 6 }),
  payer: fc.option(fc.constantFrom(...SENDERS), { nil: undefined, freq: 4 }),
  units: fc.constantFrom(0, 40, 60, 100, 130),
  endsStep: fc.boolean(),
})

const anyRegistration: fc.Arbitrary<Registration> = fc
  .record({
    wallet: fc.constantFrom(...SENDERS),
    from: fc.integer({ min: -20, max: 150 }),
    length: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
  })
  .map(({ wallet, from, length }) => ({
    wallet,
    registeredAt: new Date((BEGIN_SEC + from) * 1_000),
    ...(length !== undefined && { removedAt: new Date((BEGIN_SEC + from + length) * 1_000) }),
  }))

function toEvent({ topic: eventTopic, to, paidFrom, payer, units }: Placed): SeenEvent {
  return {
    emitter: address('f'),
    topic: eventTopic,
    token: USDC,
    to,
    amount: BigInt(units) * 1_000_000n,
    feeAmount: 0n,
    feeAddress: address('0'),
    eventIndex: 0,
    logIndex: 0,
    received: BigInt(units) * 1_000_000n,
    feeReceived: 0n,
    swapFeeReceived: 0n,
    ...(payer === undefined ? {} : { payer }),
    paidFrom,
    isCarried: false,
  }
}

type Kind = 'PAYMENT' | 'REFUND' | 'UNMATCHED'

/** Matches as detection does: scan by scan, each with a book of what was stored before. */
async function matchAll(steps: readonly Placed[], registrations: readonly Registration[]): Promise<Kind[]> {
  const kinds: Kind[] = []
  const stored: Placed[] = []
  for (let from = 0; from < steps.length; ) {
    const end = steps.findIndex(({ endsStep }, index) => index >= from && endsStep)
    const scan = steps.slice(from, end === -1 ? steps.length : end + 1)
    from += scan.length
    const book = await openAccountBook(sourcesOf(stored, registrations), {
      accountId: 1,
      chainId: 'eip155:1',
      events: scan.map((step) => ({ event: toEvent(step), txHash: txHashOf(step.place) })),
      areReread: false,
    })
    for (const step of scan) {
      const at = { timestampSec: timeOf(step), blockNumber: step.place }
      const match = matchEvent(toEvent(step), book.requestsOf(step.topic), {
        chain: 'BASE',
        tokens,
        hasPaid: (of, who) => book.hasPaidBefore(at, of, who),
        hasUnknownPayer: (of) => book.hasUnknownPayerBefore(at, of),
        isWallet: (who) => book.isWalletAt(at, who),
        isIntermediary: () => false,
      })
      if (match.kind === 'PAYMENT') book.addPayment(match.request, step.payer)
      kinds.push(match.kind)
    }
    stored.push(...scan.filter((_, index) => kinds[kinds.length - scan.length + index] === 'PAYMENT'))
  }
  return kinds
}

function sourcesOf(stored: readonly Placed[], registrations: readonly Registration[]) {
  const placeOf = (step: Placed): FirstPayment => ({ timestampSec: timeOf(step), blockNumber: step.place })
  const payers = (): KnownPayers => {
    return new Map(stored.toReversed().map((step) => [step.payer, placeOf(step)]))
  }
  return {
    requestsOfTopics: async () => [request],
    payersOf: async () => new Map([[request.requestId, payers()]]),
    detectedPayersOf: async () => new Map(),
    walletsOf: async () => Map.groupBy(registrations, ({ wallet }) => wallet),
    acceptedOf: async () => new Map(),
    reportedPayersOf: async () => new Map(),
  }
}

/** Compares every event with every earlier one. */
function matchSlowly(steps: readonly Placed[], registrations: readonly Registration[]): Kind[] {
  const isPayment = ({ topic: own, to, units, paidFrom, payer }: Placed) =>
    own === OWN && to === PAYEE && units > 0 && paidFrom !== PAYEE && payer !== PAYEE
  const isWallet = (who: Address | undefined, at: Placed) =>
    registrations.some(
      ({ wallet, registeredAt, removedAt }) =>
        wallet === who &&
        registeredAt.getTime() / 1_000 < timeOf(at) &&
        !(removedAt !== undefined && removedAt.getTime() / 1_000 < timeOf(at)),
    )
  return steps.map((step): Kind => {
    if (isPayment(step)) return 'PAYMENT'
    const { to, paidFrom } = step
    const isOwnMoney = paidFrom === PAYEE || isWallet(paidFrom, step)
    if (!isOwnMoney || paidFrom === to || step.units === 0) return 'UNMATCHED'
    if (step.topic === REFUNDS) return to === REFUND_ADDRESS ? 'REFUND' : 'UNMATCHED'
    const earlier = steps.filter((other) => other.place < step.place && isPayment(other))
    const mayGetBack =
      to !== PAYEE &&
      (earlier.some(({ payer }) => payer === to) ||
        (earlier.some(({ payer }) => payer === undefined) && !isWallet(to, step)))
    return mayGetBack ? 'REFUND' : 'UNMATCHED'
  })
}

/** The resulting state of each payment, by its place. */
function settleAll(steps: readonly Placed[], kinds: readonly Kind[]): ReadonlyMap<string, PaymentStanding> {
  const of = (kind: Kind) => steps.filter((_, index) => kinds[index] === kind)
  const common = (step: Placed) => ({
    place: { timestamp: new Date(timeOf(step) * 1_000), blockNumber: BigInt(step.place), logIndex: 0 },
    final: true,
    amount: { units: BigInt(step.units), places: 0 },
    currency: 'USDC-BASE',
  })
  const payments = of('PAYMENT').map(
    (step): LedgerPayment => ({
      ...common(step),
      id: String(step.place),
      counted: { units: BigInt(step.units), places: 0 },
      status: 'PENDING',
      payer: step.payer,
      isToSelf: false,
      importedRefunds: [],
      otherwiseReturned: { units: 0n, places: 0 },
    }),
  )
  const refunds = of('REFUND').map(
    (step): LedgerRefund => ({
      ...common(step),
      txHash: txHashOf(step.place),
      eventIndex: 0,
      network: 'BASE',
      recipient: step.to,
    }),
  )
  return decideStanding({ expected: request.amount, payments, refunds }).payments
}

const anySequence = fc
  .array(anyStep, { minLength: 1, maxLength: 14 })
  .map((steps) => steps.map((step, place): Placed => ({ ...step, place })))
const anyRegistrations = fc.array(anyRegistration, { maxLength: 4 })

it('agrees with a list of conditions, in whichever scans the events are matched', async () => {
  await fc.assert(
    fc.asyncProperty(anySequence, anyRegistrations, async (steps, registrations) => {
      expect(await matchAll(steps, registrations)).toEqual(matchSlowly(steps, registrations))
    }),
    { numRuns: 1_000 },
  )
})

it('only money of the payee and its wallets refunds anything or changes a status', async () => {
  let returned = 0
  await fc.assert(
    fc.asyncProperty(anySequence, anyRegistrations, async (steps, registrations) => {
      const kinds = await matchAll(steps, registrations)
      const isOwn = (step: Placed) =>
        step.paidFrom === PAYEE ||
        registrations.some(
          ({ wallet, registeredAt, removedAt }) =>
            wallet === step.paidFrom &&
            registeredAt.getTime() < timeOf(step) * 1_000 &&
            (removedAt === undefined || removedAt.getTime() >= timeOf(step) * 1_000),
        )
      const kept = steps.filter((step, index) => kinds[index] === 'PAYMENT' || isOwn(step))
      const settled = settleAll(steps, kinds)
      expect(settleAll(kept, await matchAll(kept, registrations))).toEqual(settled)
      const states = [...settled.values()]
      if (states.some(({ status }) => status === 'REFUNDED')) returned++
      if (!steps.some((step) => isOwn(step))) {
        expect(states.every(({ status, refunds }) => status !== 'REFUNDED' && refunds.length === 0)).toBe(true)
      }
    }),
    { numRuns: 1_000 },
  )
  expect(returned).toBeGreaterThan(20)
})
