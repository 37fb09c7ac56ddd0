import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { copyRows } from '../../postgres/copy-rows.ts'
import { completeStored, type RequestRow, requestOfRow, rowOfRequest } from './request-repository.ts'

/** What an import stored of a batch, and what is stored now. */
export interface InsertedRequests {
  /** Ids of the new requests. */
  readonly inserted: Set<string>
  /** Every request of the batch as it is stored, by id. */
  readonly stored: ReadonlyMap<string, PaymentRequest>
}

/** Stores requests by the thousand. */
export interface RequestImportRepository {
  /** Stores requests with their topics in one transaction. A stored id stays as it is; of an id that occurs twice, the first is stored. */
  insertAll(account: Account, requests: readonly PaymentRequest[]): Promise<InsertedRequests>
  /** Stores when requests were cancelled. A cancelled request stays as it is. */
  cancelAll(account: Account, cancelled: readonly CancelledRequest[]): Promise<void>
}

/** When a request was cancelled. */
export interface CancelledRequest {
  readonly requestId: string
  readonly at: Date
}

/** Creates the repository on a database. */
export function createRequestImportRepository(knex: Knex): RequestImportRepository {
  return {
    insertAll: (account, requests) =>
      inTransaction(knex, undefined, async (trx) => {
        await trx.raw(CREATE_STAGE)
        const target = { table: 'staged_requests', columns: ['place', ...columns] }
        const rows = requests.map((request, place) => {
          const row = rowOfRequest(account, request)
          return [place, ...columns.map((column) => row[column])]
        })
        await copyRows(trx, target, rows)
        const { rows: made } = await trx.raw<{ rows: RequestRow[] }>(INSERT_NEW, [])
        await completeStored(trx, account, made, new Date())
        const ids = requests.map(({ requestId }) => hexToBytes(requestId))
        const { rows: stored } = await trx.raw<{ rows: RequestRow[] }>(FIND_STORED, [account.id, ids])
        return {
          inserted: new Set(made.map(({ request_id }) => request_id.toString('hex'))),
          stored: new Map(stored.map((row) => [row.request_id.toString('hex'), requestOfRow(row)])),
        }
      }),
    async cancelAll(account, cancelled) {
      await knex.raw(CANCEL, [
        cancelled.map(({ requestId }) => hexToBytes(requestId)),
        cancelled.map(({ at }) => at),
        account.id,
      ])
    },
  }
}

const columns = [
  'account_id',
  'request_id',
  'salt',
  'payment_reference',
  'topic',
  'payee',
  'amount',
  'invoice_currency',
  'payment_currency',
  'network',
  'reference',
  'refund_address',
  'refund_topic',
  'created_at',
  'expires_at',
  'cancelled_at',
] as const satisfies readonly (keyof RequestRow)[]

const CREATE_STAGE = `create temporary table staged_requests (like requests including defaults, place int not null) on commit drop`

const INSERT_NEW = `
  insert into requests (${columns.join(', ')})
  select ${columns.join(', ')} from staged_requests order by place
  on conflict (account_id, request_id) do nothing
  returning *`

const FIND_STORED = 'select * from requests where account_id = ? and request_id = any(?)'

const CANCEL = `
  update requests set cancelled_at = told.at
  from unnest(?::bytea[], ?::timestamptz[]) as told(request_id, at)
  where account_id = ? and requests.request_id = told.request_id and cancelled_at is null`
