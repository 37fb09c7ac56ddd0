import type { Knex } from 'knex'
import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { Payment } from '../../domain/payment.ts'

/** Whether an account has requests. Many have none; this saves them the other queries on requests. */
export async function hasAnyRequest(trx: Knex, accountId: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>('select 1 from requests where account_id = ? limit 1', [
    accountId,
  ])
  return rows.length > 0
}

/**
 * Finds the stored requests of payments that have a payment reference and no request id.
 *
 * @returns request ids by the payment's index in the list
 */
export async function findNames(
  trx: Knex,
  accountId: number,
  unnamed: readonly Pick<Payment, 'paymentReference' | 'network' | 'payee'>[],
): Promise<ReadonlyMap<number, string>> {
  if (unnamed.length === 0) return new Map()
  const bindings: unknown[] = [
    unnamed.map(({ paymentReference }) => hexToBytes(paymentReference ?? '')),
    unnamed.map(({ network }) => network),
    unnamed.map(({ payee }) => (payee === undefined ? null : addressToBytes(payee))),
    accountId,
  ]
  const found = await trx.raw<{ rows: { nth: bigint; request_id: Buffer }[] }>(
    FIND_NAMES,
    bindings as Knex.RawBinding[],
  )
  return new Map(found.rows.map(({ nth, request_id: id }) => [Number(nth) - 1, id.toString('hex')]))
}

/** The rules by which an event counts for a request, as far as a payment has their fields. Of several requests the oldest counts. */
const FIND_NAMES = `
  select k.nth, r.request_id
  from unnest(?::bytea[], ?::text[], ?::bytea[]) with ordinality as k(payment_reference, network, payee, nth)
  cross join lateral (
    select request_id from requests
    where account_id = ? and payment_reference = k.payment_reference and network = k.network
      and (k.payee is null or payee = k.payee)
    order by created_at, request_id limit 1) r`
