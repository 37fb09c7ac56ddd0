import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  anySoup,
  anySteps,
  cast,
  dai,
  type EventStep,
  feeProxy,
  receiptOf,
  type Step,
  type TransferStep,
  testContracts,
  testTopic,
  usdc,
} from '../../../test/support/chains/arbitrary-transactions.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import type { Address } from '../../domain/address.ts'
import { type MatchableRequest, matchPayment } from './match-event.ts'
import { readTransaction } from './read-transaction.ts'

/** The owner of a unit that is unknown. */
const UNKNOWN = 'unknown'

/** One possible distribution of the units that intermediaries hold: an entry for each unit, with the name of who put it in. */
interface World {
  /** By contract and token: what it received and has not spent. */
  readonly units: Record<string, string[]>
  /** By swap: the units that came in since its last payment, by token, and how many went out afterwards. */
  readonly stretches: Record<string, { in: Record<string, string[]>; out: Record<string, number> }>
}

/**
 * The oracle: follows each unit of money by itself. Which unit a contract spends cannot be seen, so each choice makes a world of its own, and an
 * address is the payer only if all units of the payment are its own in all worlds.
 */
class UnitFollower {
  private worlds: World[] = [{ units: {}, stretches: {} }]

  /** Moves the units of a Transfer. @returns their owners; UNKNOWN is among them where one is not certain */
  move({ token, from, to, value }: TransferStep, isPayment: boolean): Set<string> {
    const owners = new Set<string>()
    const next = new Map<string, World>()
    for (const world of this.worlds) {
      for (const [moved, rest] of this.take(world, { token, from, count: Number(value), isPayment })) {
        for (const unit of moved) owners.add(unit)
        const after = this.give(rest, { token, to, moved })
        next.set(JSON.stringify(after), after)
      }
    }
    this.worlds = [...next.values()]
    return owners
  }

  /** All choices of this many units. */
  private take(
    world: World,
    { token, from, count, isPayment }: { token: Address; from: Address; count: number; isPayment: boolean },
  ): [string[], World][] {
    const name = Object.entries(cast).find(([, address]) => address === from)?.[0] ?? UNKNOWN
    if (testContracts.swaps.has(from)) return [this.takeFromSwap(world, { token, from, count, isPayment })]
    if (!testContracts.intermediaries.has(from)) {
      const owner = from === cast.executor ? UNKNOWN : name
      return [[Array.from({ length: count }, () => owner), world]]
    }
    const key = `${from} ${token}`
    const held = world.units[key] ?? []
    if (held.length < count) {
      // The contract may spend what it held before the transaction.
      const moved = Array.from({ length: count }, (_, i) => held[i] ?? UNKNOWN)
      return [[moved, { ...world, units: { ...world.units, [key]: [] } }]]
    }
    return choices(held, count).map(([moved, rest]) => [moved, { ...world, units: { ...world.units, [key]: rest } }])
  }

  private takeFromSwap(
    world: World,
    { token, from, count, isPayment }: { token: Address; from: Address; count: number; isPayment: boolean },
  ): [string[], World] {
    const stretch = structuredClone(world.stretches[from] ?? { in: {}, out: {} })
    const bought = stretch.in[token]?.length ?? 0
    const soldTokens = [usdc, dai].filter((each) => each !== token && (stretch.out[each] ?? 0) > 0)
    const sellers = new Set(soldTokens.flatMap((each) => stretch.in[each] ?? []))
    const isCovered = soldTokens.every((each) => (stretch.out[each] ?? 0) <= (stretch.in[each]?.length ?? 0))
    const [seller = UNKNOWN] = sellers
    const owner = bought >= count && isCovered && sellers.size === 1 ? seller : UNKNOWN
    if ((stretch.in[token]?.length ?? 0) > 0) stretch.out[token] = (stretch.out[token] ?? 0) + count
    const after = isPayment ? { in: {}, out: {} } : stretch
    return [Array.from({ length: count }, () => owner), { ...world, stretches: { ...world.stretches, [from]: after } }]
  }

  private give(world: World, { token, to, moved }: { token: Address; to: Address; moved: string[] }): World {
    if (testContracts.swaps.has(to)) {
      const stretch = structuredClone(world.stretches[to] ?? { in: {}, out: {} })
      stretch.in[token] = [...(stretch.in[token] ?? []), ...moved].toSorted()
      return { ...world, stretches: { ...world.stretches, [to]: stretch } }
    }
    if (!testContracts.intermediaries.has(to)) return world
    const key = `${to} ${token}`
    return { ...world, units: { ...world.units, [key]: [...(world.units[key] ?? []), ...moved].toSorted() } }
  }
}

/** All ways to take this many units, by owner: those taken and those left, in order. */
function choices(units: readonly string[], count: number): [string[], string[]][] {
  const [first, ...others] = units
  if (first === undefined) return [[[], []]]
  const taking = count > 0 ? choices(others, count - 1).map(([a, b]): [string[], string[]] => [[first, ...a], b]) : []
  const leaving =
    others.length >= count ? choices(others, count).map(([a, b]): [string[], string[]] => [a, [first, ...b]]) : []
  const all = new Map([...taking, ...leaving].map((choice) => [JSON.stringify(choice), choice]))
  return [...all.values()]
}

interface Truth {
  readonly received: bigint
  readonly paidFrom: Address | undefined
  readonly payer: Address | undefined
}

/** The truth: each event with the Transfer that its proxy made for it. */
function followUnits(steps: readonly Step[]): Truth[] {
  const paymentOf = new Map(
    steps.flatMap((step, at) =>
      step.kind === 'EVENT' && step.emitter === feeProxy && step.paidBefore !== undefined
        ? [[at - step.paidBefore, at] as const]
        : [],
    ),
  )
  const follower = new UnitFollower()
  const owners = new Map<number, Set<string>>()
  for (const [at, step] of steps.entries()) {
    if (step.kind !== 'TRANSFER' || step.value === 0n || step.from === step.to) continue
    if (!testContracts.tokens.has(step.token)) continue
    owners.set(at, follower.move(step, paymentOf.has(at)))
  }
  return steps.flatMap((step, at) => {
    if (step.kind !== 'EVENT' || step.emitter !== feeProxy) return []
    return [truthOf(step, at, steps, owners)]
  })
}

function truthOf(event: EventStep, at: number, steps: readonly Step[], owners: Map<number, Set<string>>): Truth {
  const place = at - (event.paidBefore ?? 0)
  const own = steps[place] as TransferStep
  const [owner = UNKNOWN, ...more] = own.from === own.to ? [nameOf(own.from)] : (owners.get(place) ?? [])
  const isKnown = more.length === 0 && owner !== UNKNOWN && own.value > 0n && testContracts.tokens.has(own.token)
  return {
    received: own.value,
    paidFrom: own.from,
    payer: isKnown ? cast[owner as keyof typeof cast] : undefined,
  }
}

const nameOf = (address: Address) => Object.entries(cast).find(([, each]) => each === address)?.[0] ?? UNKNOWN

const read = (steps: readonly Step[]) => readTransaction(receiptOf(steps), testContracts)

describe('the payer, compared with an oracle that follows every unit', () => {
  it('is the same, or unknown to both', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const reported = read(steps).map(({ received, paidFrom, payer }) => ({ received, paidFrom, payer }))
        expect(reported).toEqual(followUnits(steps))
      }),
      { numRuns: 1_000 },
    )
  })

  it('is known in many cases, so that the comparison means something', () => {
    const known = fc.sample(anySteps, { numRuns: 300, seed: 7 }).flatMap(read)
    const through = known.filter(({ paidFrom }) => paidFrom && testContracts.intermediaries.has(paidFrom))
    expect(through.filter(({ payer }) => payer !== undefined).length).toBeGreaterThan(100)
    expect(through.filter(({ payer }) => payer === undefined).length).toBeGreaterThan(100)
  })
})

describe('whatever is logged, in whatever order', () => {
  it('who moved no money is never the payer', () => {
    fc.assert(
      fc.property(anySoup, (steps) => {
        const moved = new Set(steps.flatMap((step) => (step.kind === 'TRANSFER' && step.value > 0n ? step.from : [])))
        for (const { payer } of read(steps)) {
          if (payer === undefined) continue
          expect(moved).toContain(payer)
          expect(payer).not.toBe(cast.victim)
          expect(testContracts.intermediaries).not.toContain(payer)
          expect(testContracts.executors).not.toContain(payer)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('no event counts for more than its amount, and no request for more than others sent to its payee', () => {
    fc.assert(
      fc.property(anySoup, (steps) => {
        const events = read(steps)
        for (const { received, amount } of events) expect(received).toBeLessThanOrEqual(amount)
        for (const payee of new Set(events.map(({ to }) => to))) {
          const counted = events.flatMap((event) => {
            const payment = matchPayment(event, [requestTo(payee)], { chain: 'BASE', tokens })
            return payment === undefined ? [] : [payment.amount]
          })
          const sent = steps.map((step) => {
            const isSent = step.kind === 'TRANSFER' && step.token === usdc && step.to === payee && step.from !== payee
            return isSent ? step.value : 0n
          })
          expect(sumOf(counted)).toBeLessThanOrEqual(sumOf(sent))
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

const sumOf = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)

const tokens = createTokenDirectory([
  {
    name: 'BASE',
    chainId: 1,
    rpcUrls: ['http://127.0.0.1'],
    multicall: cast.pool,
    native: { symbol: 'ETH', decimals: 18 },
    tokens: [{ symbol: 'USDC', address: usdc, decimals: 6 }],
    contracts: [],
    finality: { useFinalizedTag: false, depth: 3 },
    blockTimeSeconds: 2,
  },
])

const requestTo = (payee: Address): MatchableRequest => ({
  requestId: '01'.padEnd(66, '0'),
  salt: '0'.repeat(16),
  paymentReference: '0x0011223344556677',
  payee,
  amount: { units: 100n, places: 0 },
  invoiceCurrency: 'USDC-BASE',
  paymentCurrency: 'USDC-BASE',
  network: 'BASE',
  createdAt: new Date(0),
  topic: testTopic,
})
