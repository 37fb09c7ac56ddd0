import type { Knex } from 'knex'
import { chunksOf } from '../../domain/collections.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { queryRows, readRows } from './read-rows.ts'

/** A topic that an account knows. */
export interface KnownTopic {
  readonly accountId: number
  readonly topic: Hex
}

/** A topic whose earlier events are still to be replayed for the account. */
export interface PendingReplay extends KnownTopic {
  /** Number of the entry: higher than that of all earlier ones. An entry that is added again gets a new number. */
  readonly note: number
  /** Whether also events that are stored for the account already are to be judged again. */
  readonly again: boolean
}

const ROWS_A_STATEMENT = 2_000

/** @returns those of the topics that are pending for the account, in any order */
export async function findReplays(knex: Knex, accountId: number, topics: readonly Hex[]): Promise<PendingReplay[]> {
  const found: PendingReplay[] = []
  for (const some of chunksOf(topics, ROWS_A_STATEMENT)) {
    const statement =
      'select account_id, topic, note, again from pending_replays where topic = any(?) and account_id = ?'
    found.push(...(await queryRows<PendingReplay>(knex, statement, [some.map(hexToBytes), accountId])))
  }
  return found
}

/** @returns the next entries after a number, in the order of their numbers; 0 for the first */
export async function nextReplays(knex: Knex, after: number, limit: number): Promise<PendingReplay[]> {
  const rows = await knex('pending_replays').where('note', '>', after).orderBy('note').limit(limit)
  return readRows<PendingReplay>(rows)
}

/**
 * Adds entries, and gives those that are there a new number: a replay that is running may have begun too early for them. Requests add their topics in
 * the transaction that stores them, so that none is lost.
 */
export async function addPendingReplays(knex: Knex, topics: readonly KnownTopic[], again: boolean): Promise<void> {
  for (const some of chunksOf(topics, ROWS_A_STATEMENT)) {
    const rows = some.map(({ accountId, topic }) => ({ topic: hexToBytes(topic), account_id: accountId, again }))
    const merged = { note: knex.raw('excluded.note'), again: knex.raw('pending_replays.again or excluded.again') }
    await knex('pending_replays').insert(rows).onConflict(['topic', 'account_id']).merge(merged)
  }
}

/** Deletes entries, except those that got a new number since they were read. */
export async function deleteReplays(knex: Knex, replays: readonly PendingReplay[]): Promise<void> {
  const topics = replays.map(({ topic }) => hexToBytes(topic))
  const accountIds = replays.map(({ accountId }) => accountId)
  const notes = replays.map(({ note }) => note)
  await knex.raw(
    `delete from pending_replays p using unnest(?::bytea[], ?::integer[], ?::bigint[]) as d (topic, account_id, note)
     where p.topic = d.topic and p.account_id = d.account_id and p.note = d.note`,
    [topics, accountIds, notes],
  )
}

/** Topics of requests that were stored a moment ago, whose earlier events may not be attached yet. */
export async function pendingTopics(knex: Knex): Promise<Hex[]> {
  const topics = await knex('pending_replays').distinct().pluck<Buffer[]>('topic')
  return topics.map(bytesToHex)
}
