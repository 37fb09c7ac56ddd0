import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDecimal } from '../../domain/decimal.ts'
import type { Route } from '../../domain/route.ts'
import { speedOf } from './assemble-route.ts'
import { type RankedTerms, rankRoutes } from './rank.ts'

interface Terms {
  isDirect?: boolean
  unpriced?: boolean
  cost?: string
  seconds?: number
  hasEnoughGas?: boolean | undefined
  warning?: 'SWAP_OFF_MARKET' | 'PRICE_UNCHECKED' | 'GAS_UNPRICED'
}

function aRoute(id: string, terms: Terms = {}): RankedTerms {
  const { isDirect = false, unpriced = false, cost = '0', seconds = 1, warning } = terms
  const { hasEnoughGas } = { hasEnoughGas: true, ...terms }
  const totalCost = parseDecimal(cost)
  if (totalCost === undefined) throw new TypeError(cost)
  const warnings = warning === undefined ? [] : [{ reason: warning, message: '' }]
  const readiness = { hasEnoughGas }
  const route = {
    id,
    speed: speedOf(seconds),
    estimatedDurationSeconds: seconds,
    warnings,
    readiness,
  } as unknown as Route
  return { route, isDirect, unpriced, totalCost }
}

const idsOf = (routes: readonly Route[]) => routes.map((route) => route.id).join(' ')

describe('routes in order', () => {
  it.each<[string, RankedTerms[]]>([
    ['direct swap', [aRoute('swap'), aRoute('direct', { isDirect: true, cost: '9' })]],
    ['direct swap', [aRoute('swap'), aRoute('direct', { isDirect: true, unpriced: true })]],
    ['b a', [aRoute('a', { unpriced: true }), aRoute('b', { cost: '1' })]],
    ['b a', [aRoute('a', { cost: '0.2' }), aRoute('b', { cost: '0.03' })]],
    ['b a', [aRoute('a', { seconds: 61 }), aRoute('b', { seconds: 60 })]],
    ['a b', [aRoute('b', { seconds: 30 }), aRoute('a', { seconds: 60 })]],
    ['a b c', [aRoute('c'), aRoute('a'), aRoute('b')]],
    ['b a', [aRoute('a', { isDirect: true, hasEnoughGas: false }), aRoute('b', { cost: '9' })]],
    ['b a', [aRoute('a', { isDirect: true, hasEnoughGas: false }), aRoute('b', { hasEnoughGas: undefined })]],
    ['b a', [aRoute('a', { warning: 'SWAP_OFF_MARKET' }), aRoute('b', { cost: '9' })]],
    ['b a', [aRoute('a', { warning: 'PRICE_UNCHECKED' }), aRoute('b', { cost: '9' })]],
    ['a b', [aRoute('a', { warning: 'GAS_UNPRICED' }), aRoute('b', { cost: '9' })]],
    ['b a', [aRoute('a', { hasEnoughGas: false }), aRoute('b', { warning: 'SWAP_OFF_MARKET', cost: '9' })]],
    [
      'b a',
      [
        aRoute('a', { hasEnoughGas: false, warning: 'PRICE_UNCHECKED' }),
        aRoute('b', { hasEnoughGas: false, cost: '9' }),
      ],
    ],
  ])('are %s', (expected, routes) => {
    expect(idsOf(rankRoutes(routes))).toBe(expected)
  })

  it('do not depend on the order of the input', () => {
    const terms = fc.record({
      isDirect: fc.boolean(),
      unpriced: fc.boolean(),
      cost: fc.constantFrom('0', '0.1', '0.25', '-0.1'),
      seconds: fc.constantFrom(1, 60, 61, 1200, 1201),
    })
    fc.assert(
      fc.property(fc.array(terms, { maxLength: 8 }), fc.infiniteStream(fc.nat()), (list, order) => {
        const routes = list.map((entry, i) => aRoute(`${i}`, entry))
        const keys = new Map(routes.map((route) => [route, order.next().value as number]))
        const shuffled = routes.toSorted((a, b) => (keys.get(a) ?? 0) - (keys.get(b) ?? 0))
        expect(rankRoutes(shuffled)).toEqual(rankRoutes(routes))
      }),
    )
  })
})

describe('tags', () => {
  const tagsOf = (routes: RankedTerms[]) => Object.fromEntries(rankRoutes(routes).map((r) => [r.id, r.tags.join()]))

  it('go to the cheapest and the fastest, and to both of two that are equal', () => {
    const routes = [
      aRoute('dear', { isDirect: true, cost: '2', seconds: 5 }),
      aRoute('cheap', { cost: '1', seconds: 9 }),
      aRoute('alike', { cost: '1', seconds: 5 }),
    ]
    expect(tagsOf(routes)).toEqual({ dear: 'FASTEST', cheap: 'CHEAPEST', alike: 'CHEAPEST,FASTEST' })
  })

  it('never mark a route CHEAPEST whose cost is not fully known', () => {
    expect(tagsOf([aRoute('a', { unpriced: true })])).toEqual({ a: 'FASTEST' })
    expect(tagsOf([aRoute('a', { unpriced: true }), aRoute('b', { cost: '5' })])).toEqual({
      a: 'FASTEST',
      b: 'CHEAPEST,FASTEST',
    })
  })
})

it.each([
  [1, 'FAST'],
  [60, 'FAST'],
  [61, 'STANDARD'],
  [1200, 'STANDARD'],
  [1201, 'SLOW'],
])('%s seconds are %s', (seconds, speed) => {
  expect(speedOf(seconds)).toBe(speed)
})

it.each<[string, Terms]>([
  ['without gas', { hasEnoughGas: false }],
  ['off the market', { warning: 'SWAP_OFF_MARKET' }],
  ['of unknown price', { warning: 'PRICE_UNCHECKED' }],
])('a route %s has no tags and comes last, whatever it costs, in every order', (_, terms) => {
  for (const sort of [undefined, 'CHEAPEST', 'FASTEST'] as const) {
    const [good, bad] = rankRoutes(
      [aRoute('bad', { ...terms, cost: '-5', isDirect: true }), aRoute('good', { cost: '1', seconds: 90 })],
      sort,
    )
    expect([good?.id, good?.tags, bad?.tags]).toEqual(['good', ['CHEAPEST', 'FASTEST'], []])
    expect(rankRoutes([aRoute('alone', terms)], sort)[0]?.tags).toEqual([])
  }
})
