import { type Address, addressFromBytes, formatAddress } from '../../src/domain/address.ts'
import { amountBasis, type SearchInput } from '../../src/search/filter/payment-filter.ts'
import { sortKeysOf } from '../../src/search/filter/search-fields.ts'
import type { PaymentSample, SampledPayment } from './sample-payments.ts'
import type { Draw, SearchClass } from './search-classes.ts'
import { seededRandom } from './seeded-random.ts'
import type { PreparedQuery, Subject } from './subject.ts'

/** Payments of a page. */
export const PAGE = 50

/** The searches of a class. */
export interface PreparedClass {
  readonly name: string
  readonly first: readonly PreparedQuery[]
  /** Later pages; the first ones where there are none. */
  readonly deep: readonly PreparedQuery[]
}

export interface PrepareOptions {
  readonly subject: Subject
  readonly sample: PaymentSample
  readonly seed: number
  /** How many different searches to draw; a class may have fewer. */
  readonly variants: number
}

/** Of so many later pages, one lies before its cursor. */
const BACKWARD_EVERY = 5

/**
 * Draws the searches of a class, first pages and later ones. A later page begins at a random payment of the sample that matches; where the
 * sample has none, it is the second page.
 */
export async function prepareClass(
  { name, draw }: SearchClass,
  { subject, sample, seed, variants }: PrepareOptions,
): Promise<PreparedClass> {
  const random = seededRandom(seed)
  const values = drawFrom(sample.payments, random)
  const inputs = new Map<string, SearchInput>()
  for (let drawn = 0; drawn < variants; drawn++) {
    const input = { ...draw(values), limit: PAGE }
    inputs.set(JSON.stringify(input), input)
  }
  const first: PreparedQuery[] = []
  const deep: PreparedQuery[] = []
  for (const input of inputs.values()) {
    const query = { input, filter: await subject.parse(input), sent: input }
    first.push(query)
    const matching = await sample.matching(query.filter)
    const perInput = Math.max(1, Math.floor(variants / inputs.size))
    if (matching.length > 0) {
      for (let page = 0; page < perInput; page++) {
        const payment = matching[Math.floor(random() * matching.length)] as SampledPayment
        const direction = deep.length % BACKWARD_EVERY === 0 ? 'backward' : 'forward'
        deep.push(subject.laterPage(query, payment, direction))
      }
    } else deep.push(...(await secondPageOf(subject, query)))
  }
  return { name, first, deep: deep.length > 0 ? deep : first }
}

/** The second page, where there is one. */
async function secondPageOf(subject: Subject, query: PreparedQuery): Promise<PreparedQuery[]> {
  const { payments, pagination } = await subject.search(query.sent)
  const last = payments.at(-1)
  if (pagination.nextCursor === undefined || last === undefined) return []
  const keys = sortKeysOf(query.input.sortBy ?? 'date', amountBasis(query.filter)).map(({ valueOf }) => valueOf(last))
  const position = { keys, id: last.id, inclusive: false, direction: 'forward' } as const
  return [{ ...query, sent: { cursor: pagination.nextCursor }, position }]
}

export function drawFrom(payments: readonly SampledPayment[], random: () => number): Draw {
  const payment = () => payments[Math.floor(random() * payments.length)] as SampledPayment
  const known: Draw['known'] = (column) => {
    for (;;) {
      const value = payment()[column]
      if (value !== null) return value
    }
  }
  return {
    random,
    payment,
    known,
    topPayer: mostFrequent(payments, 'payer'),
    topPayee: mostFrequent(payments, 'payee'),
  }
}

function mostFrequent(payments: readonly SampledPayment[], column: 'payer' | 'payee'): string {
  const counts = new Map<Address, number>()
  for (const { [column]: bytes } of payments) {
    if (bytes === null) continue
    const address = addressFromBytes(bytes)
    counts.set(address, (counts.get(address) ?? 0) + 1)
  }
  const [top] = [...counts].toSorted(([, a], [, b]) => b - a)
  if (top === undefined) throw new Error(`no payment of the sample has a ${column}`)
  return formatAddress(top[0])
}
