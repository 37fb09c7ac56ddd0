import type { Account } from '../../src/domain/account.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { type Reason } from '../../src/errors/reasons.ts'
import { WaybillError } from '../../src/errors/waybill-error.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { createPaymentSearch, type PaymentPage, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  chains,
  generatePayments,
  insertPayments,
  type StoredPayment,
  tokens,
} from '../support/data/search-payments.ts'

/** The account whose payments `openSearch` stores. */
export const account: Account = { id: 1, name: 'one' }

const cursorSecret = Buffer.alloc(32, 1)

export interface OpenedSearch {
  readonly database: TestDatabase
  readonly paymentSearch: PaymentSearch
  /** The 300 payments stored for {@link account}. */
  readonly mine: readonly StoredPayment[]
  search(input: SearchInput, as?: Account): Promise<PaymentPage>
}

/** Opens a search on a database of its own. */
export async function openSearch(): Promise<OpenedSearch> {
  const database = await createTestDatabase()
  const paymentSearch = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret })
  const mine = generatePayments(account.id, 300, 7)
  await insertPayments(database.knex, mine)
  return {
    database,
    paymentSearch,
    mine,
    search: (input, as = account) => paymentSearch.search(as, { noCache: true, ...input }),
  }
}

/** The reason, message and field that a call fails with. */
export async function faultOf(
  call: Promise<unknown>,
): Promise<{ reason: Reason; message: string; field: string | undefined }> {
  const error = await call.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (!(error instanceof WaybillError)) throw new Error(`no error with a reason: ${String(error)}`)
  return { reason: error.reason, message: error.message, field: error.metadata.field }
}

export const idsOf = ({ payments }: { payments: readonly Payment[] }) => payments.map(({ id }) => id)
