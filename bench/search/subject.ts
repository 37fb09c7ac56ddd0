import type { Knex } from 'knex'
import type { Account } from '../../src/domain/account.ts'
import { sealCursor } from '../../src/domain/pages/sealed-cursor.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import { amountBasis, type PaymentFilter, type SearchInput } from '../../src/search/filter/payment-filter.ts'
import type { FilterValues } from '../../src/search/filter/search-fields.ts'
import { sortKeysOf } from '../../src/search/filter/search-fields.ts'
import { createPaymentSearch, type PaymentPage, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { type CarriedSearch, type PagePosition, searchSeal } from '../../src/search/query/page-query.ts'
import { NO_HEADS, paymentOfRow, readPaymentColumns } from '../../src/store/payment-row.ts'
import { benchChains, benchTokens } from './bench-chains.ts'
import type { SampledPayment } from './sample-payments.ts'

/** One search that is measured. */
export interface PreparedQuery {
  readonly input: SearchInput
  readonly filter: PaymentFilter
  /** What the service is asked: the filters, or the cursor of a later page. */
  readonly sent: SearchInput
  readonly position?: PagePosition
}

/** The search of the service over one account, and the fetch of known payments that it is compared with. */
export interface Subject {
  readonly knex: Knex
  readonly account: Account
  search(input: SearchInput): Promise<PaymentPage>
  parse(input: SearchInput): Promise<PaymentFilter>
  /** Fetches payments by their ids: what the wide rows of a page cost, however they were found. */
  fetchKnown(ids: readonly string[]): Promise<readonly Payment[]>
  /** The page after or before a payment, by a cursor like those of the service. */
  laterPage(query: PreparedQuery, payment: SampledPayment, direction: PagePosition['direction']): PreparedQuery
}

const CURSOR_SECRET = Buffer.alloc(32, 7)
/** With `id = any(…)` the generic plan takes an index that only ends with the id, and reads all of it. */
const FETCH_KNOWN = `select p.* from unnest(?::uuid[]) known(id)
  cross join lateral (select ${readPaymentColumns.join(', ')} from payments where account_id = ? and id = known.id offset 0) p`

export function createSubject(knex: Knex, account: Account): Subject {
  const paymentSearch: PaymentSearch = createPaymentSearch({
    knex,
    chains: benchChains,
    tokens: benchTokens,
    cursorSecret: CURSOR_SECRET,
  })
  const seal = searchSeal(CURSOR_SECRET, account.id)
  return {
    knex,
    account,
    search: (input) => paymentSearch.search(account, input),
    parse: (input) => paymentSearch.parseFilter(account, input),
    async fetchKnown(ids) {
      const [rows = []] = await runNamed(knex, [raw(FETCH_KNOWN, [ids, account.id])], undefined)
      return rows.map((row) => paymentOfRow(row, NO_HEADS))
    },
    laterPage(query, payment, direction) {
      const { accountId: _, ...filter } = query.filter
      const { sortBy = 'date', sortOrder = 'desc', limit = 20 } = query.input
      const position = { ...positionAt(sortBy, filter, payment), inclusive: false, direction } as const
      const cursor = sealCursor(seal, {
        filter,
        sortBy,
        sortOrder,
        limit,
        position,
        lastChange: '0',
      } satisfies CarriedSearch)
      return { ...query, sent: { cursor }, position }
    },
  }
}

/** The keys of a payment in an order. */
function positionAt(sortBy: NonNullable<SearchInput['sortBy']>, filter: FilterValues, payment: SampledPayment) {
  const keys = sortKeysOf(sortBy, amountBasis(filter)).map(({ column }) => {
    const value = payment[column as keyof SampledPayment] as Date | string | number | null
    return value instanceof Date ? value.toISOString() : value
  })
  return { keys, id: payment.id }
}
