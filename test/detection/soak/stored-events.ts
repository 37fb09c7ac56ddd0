/** What the database holds of events beside the answers of the service. */
import type { Knex } from 'knex'
import type { Difference, UnmatchedRow } from './judge.ts'

/** Unmatched events of references that some account knows. @param networks - by CAIP-2 id */
export async function readUnmatched(knex: Knex, networks: ReadonlyMap<string, string>): Promise<UnmatchedRow[]> {
  const rows: { chain_id: string; name: string; tx_hash: Buffer; event_index: number; reason: string }[] = await knex(
    'unmatched_events as u',
  )
    .join('accounts as a', 'a.id', 'u.account_id')
    .select('u.chain_id', 'a.name', 'u.tx_hash', 'u.event_index', 'u.reason')
  return rows.map(({ chain_id, name, tx_hash, event_index, reason }) => ({
    network: networks.get(chain_id) ?? chain_id,
    account: name,
    event: `0x${tx_hash.toString('hex')} ${event_index} ${reason}`,
  }))
}

/** Events that were stored as more than one payment or refund of one account. */
export async function findDoubled(knex: Knex): Promise<Difference[]> {
  const doubled: object[] = []
  for (const table of ['payments', 'refunds']) {
    const key = ['account_id', 'chain_id', 'tx_hash', 'event_index']
    const rows: object[] = await knex(table).select(key).groupBy(key).havingRaw('count(*) > 1')
    doubled.push(...rows.map((row) => ({ table, ...row })))
  }
  return doubled.map((detail) => ({ what: 'an event is stored twice', detail }))
}
