import type { Knex } from 'knex'
import type { PaymentFilter } from '../../src/search/filter/payment-filter.ts'
import { plainConditions } from './plain-sql.ts'
import { seededRandom } from './seeded-random.ts'

/** The columns of a payment from which the values of searches are drawn: those of filters and orders. */
export interface SampledPayment {
  readonly id: string
  readonly status: number
  readonly type: number | null
  readonly timestamp: Date
  readonly changed_at: Date
  readonly network: string
  readonly source_network: string | null
  readonly currency: string
  readonly currency_symbol: string
  readonly invoice_currency: string | null
  readonly amount: string
  readonly amount_in_usd: string | null
  readonly invoice_amount: string | null
  readonly payer: Buffer | null
  readonly payee: Buffer | null
  readonly tx_hash: Buffer | null
  readonly source_tx_hash: Buffer | null
  readonly request_id: Buffer | null
  readonly payment_reference: Buffer | null
  readonly reference: string | null
  readonly metadata: Readonly<Record<string, string>> | null
}

/** A random sample of the payments of an account. */
export interface PaymentSample {
  readonly payments: readonly SampledPayment[]
  /** Those that match a filter, found by plain SQL. */
  matching(filter: PaymentFilter): Promise<readonly SampledPayment[]>
}

/** Payments are sampled in runs of neighbouring ids. Ids are random, so a run is as good as single payments, and the primary key reads it. */
const RUN = 50

/**
 * Draws payments of an account; the same for the same seed and payments.
 *
 * @param knex - a pool of one connection, which keeps them as a temporary table
 */
export async function samplePayments(
  knex: Knex,
  { accountId, count, seed }: { accountId: number; count: number; seed: number },
): Promise<PaymentSample> {
  const random = seededRandom(seed)
  const starts = Array.from({ length: Math.ceil(count / RUN) }, () => randomUuid(random))
  await knex.raw(
    `create temporary table sampled as select distinct on (p.id) p.* from unnest(?::uuid[]) s cross join lateral (
       select account_id, id, status, type, timestamp, changed_at, network, source_network, currency, currency_symbol, invoice_currency, amount,
         amount_in_usd, invoice_amount, payer, payee, tx_hash, source_tx_hash, request_id, payment_reference, reference, metadata
       from payments where account_id = ? and id > s order by id limit ${RUN}) p`,
    [`{${starts.join(',')}}`, accountId],
  )
  const { rows: payments } = await knex.raw<{ rows: SampledPayment[] }>('select * from sampled order by id')
  const byId = new Map(payments.map((payment) => [payment.id, payment]))
  return {
    payments,
    async matching(filter) {
      const conditions = plainConditions(filter)
      const { rows } = await knex.raw<{ rows: { id: string }[] }>(
        `select id from sampled where ${conditions.map(({ sql }) => sql).join(' and ')} order by id`,
        conditions.flatMap(({ bindings }) => bindings) as Knex.RawBinding[],
      )
      return rows.flatMap(({ id }) => byId.get(id) ?? [])
    },
  }
}

function randomUuid(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
