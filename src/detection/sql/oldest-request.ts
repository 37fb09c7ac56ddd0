import type { Knex } from 'knex'
import { type Hex, hexToBytes } from '../../domain/hex.ts'

/** Clocks differ, and some merchants store a request after they showed its reference. */
const BEFORE_REQUEST_MS = 86_400_000

/** The time from which payments of a request are looked for. */
export function sinceRequest(createdAt: Date): Date {
  return new Date(createdAt.getTime() - BEFORE_REQUEST_MS)
}

/** When the oldest request on a chain was created; undefined where there is none. Reads all requests: once for a chain and process. */
export async function oldestRequestOn(knex: Knex, network: string): Promise<Date | undefined> {
  const row = await knex('requests').where({ network }).min<{ oldest: Date | null }>({ oldest: 'created_at' }).first()
  return row?.oldest ?? undefined
}

/** When the oldest of an account's requests with these topics was created, by canonical name of the chain. */
export async function oldestRequestsOf(
  knex: Knex,
  accountId: number,
  topics: readonly Hex[],
): Promise<Map<string, Date>> {
  const { rows } = await knex.raw<{ rows: { network: string; oldest: Date }[] }>(
    'select network, min(created_at) as oldest from requests where account_id = ? and topic = any(?) group by network',
    [accountId, topics.map(hexToBytes)],
  )
  return new Map(rows.map(({ network, oldest }) => [network, oldest]))
}
