import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'

/** A topic that an account knows and whose earlier events may not be attached to it yet. */
export interface KnownTopic {
  readonly accountId: number
  readonly topic: Hex
}

/** One that is noted as still to be looked at. */
export interface PendingReplay extends KnownTopic {
  /** Higher than that of anything noted before; another after it was noted again. */
  readonly note: bigint
}

/** What is still to be looked at again. Requests note their topics in the transaction that stores them, so that nothing is lost. */
export interface PendingReplays {
  /** Those of the topics that are pending for the account, in any order. */
  ofAccount(accountId: number, topics: readonly Hex[]): Promise<PendingReplay[]>
  /** The next ones behind a note, in the order of their notes; 0 for the first. */
  next(behind: bigint, limit: number): Promise<PendingReplay[]>
  /** Notes topics, anew where they are noted: who is looking at them right now may have looked too early. */
  add(topics: readonly KnownTopic[]): Promise<void>
  /** Forgets what was looked at, but for what was noted anew since. */
  done(replays: readonly PendingReplay[]): Promise<void>
}

interface Row {
  readonly account_id: number
  readonly topic: Buffer
  readonly note: bigint
}

/** Rows in one statement. */
const CHUNK = 2_000

/** Makes the repository on a database. */
export function createPendingReplays(knex: Knex): PendingReplays {
  return {
    async ofAccount(accountId, topics) {
      const found: Row[] = []
      for (let from = 0; from < topics.length; from += CHUNK) {
        const { rows } = await knex.raw<{ rows: Row[] }>(
          'select account_id, topic, note from pending_replays where topic = any(?) and account_id = ?',
          [topics.slice(from, from + CHUNK).map(hexToBytes), accountId],
        )
        found.push(...rows)
      }
      return found.map(toReplay)
    },
    async next(behind, limit) {
      const rows = await knex<Row>('pending_replays').where('note', '>', behind).orderBy('note').limit(limit)
      return rows.map(toReplay)
    },
    async add(topics) {
      for (let from = 0; from < topics.length; from += CHUNK) {
        const rows = topics.slice(from, from + CHUNK).map(({ accountId, topic }) => ({
          topic: hexToBytes(topic),
          account_id: accountId,
        }))
        const note = knex.raw('excluded.note')
        await knex('pending_replays').insert(rows).onConflict(['topic', 'account_id']).merge({ note })
      }
    },
    async done(replays) {
      const topics = replays.map(({ topic }) => hexToBytes(topic))
      const accountIds = replays.map(({ accountId }) => accountId)
      const notes = replays.map(({ note }) => note.toString())
      await knex.raw(
        `delete from pending_replays p using unnest(?::bytea[], ?::integer[], ?::bigint[]) as d (topic, account_id, note)
         where p.topic = d.topic and p.account_id = d.account_id and p.note = d.note`,
        [topics, accountIds, notes],
      )
    },
  }
}

function toReplay({ account_id, topic, note }: Row): PendingReplay {
  return { accountId: account_id, topic: bytesToHex(topic), note }
}
