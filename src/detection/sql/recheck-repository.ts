import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import type { UnmatchedReason } from '../match/match-event.ts'

/** The step with which refunds came to need the payee's own money. */
const RULES_STEP = '0008-refund-wallets'

/** Reasons that depend on who paid, and so on the rules; the others say what an event is. */
const DOUBTED: readonly UnmatchedReason[] = ['WRONG_PAYEE', 'NOTHING_RECEIVED', 'SELF_PAYMENT', 'NOT_FROM_PAYEE']

/** A request whose payments and refunds are looked at again. */
export interface RecheckedRequest {
  /** `01` and 64 digits. */
  readonly requestId: string
  readonly topics: readonly Hex[]
  /** In the order of their blocks. */
  readonly txHashes: readonly Hex[]
}

/** Which requests are looked at. */
export interface RecheckScope {
  readonly accountId: number
  /** Canonical name of the chain. */
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  /** Only what stands in blocks before then; unmatched events of any time. */
  readonly before: Date
}

/** When this database came to the present rules. What was found in earlier blocks may be by the old ones. */
export async function findRulesStart(knex: Knex): Promise<Date> {
  const row = await knex('schema_migrations').where({ name: RULES_STEP }).first<{ applied_at: Date } | undefined>()
  if (row === undefined) throw new Error(`the database lacks the step ${RULES_STEP}`)
  return row.applied_at
}

interface RequestRow {
  readonly request_id: Buffer
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

interface TransactionRow {
  readonly tx_hash: Buffer
  readonly block_number: bigint
}

/** The next requests behind an id, in the order of their ids; '' for the first. Most have nothing to look at. */
export async function nextRechecked(
  knex: Knex,
  scope: RecheckScope,
  behind: string,
  limit: number,
): Promise<RecheckedRequest[]> {
  const { accountId, network, chainId, before } = scope
  const { rows: requests } = await knex.raw<{ rows: RequestRow[] }>(
    `select request_id, topic, refund_topic from requests
     where account_id = ? and network = ? and request_id > ? order by request_id limit ?`,
    [accountId, network, Buffer.from(behind, 'hex'), limit],
  )
  const ids = requests.map(({ request_id }) => request_id)
  const { rows: found } = await knex.raw<{ rows: (TransactionRow & { request_id: Buffer })[] }>(
    `select request_id, tx_hash, block_number from payments
     where account_id = ? and request_id = any(?) and chain_id = ? and detected and not imported and timestamp < ?
     union select request_id, tx_hash, block_number from refunds
     where account_id = ? and request_id = any(?) and chain_id = ? and timestamp < ?`,
    [accountId, ids, chainId, before, accountId, ids, chainId, before],
  )
  const topics = requests.flatMap(({ topic, refund_topic }) =>
    refund_topic === null ? [topic] : [topic, refund_topic],
  )
  const { rows: unmatched } = await knex.raw<{ rows: (TransactionRow & { topic: Buffer })[] }>(
    `select topic, tx_hash, block_number from unmatched_events
     where topic = any(?) and account_id = ? and chain_id = ? and reason = any(?)`,
    [topics, accountId, chainId, [...DOUBTED]],
  )
  const foundOf = Map.groupBy(found, ({ request_id }) => request_id.toString('hex'))
  const unmatchedOf = Map.groupBy(unmatched, ({ topic }) => topic.toString('hex'))
  return requests.map(({ request_id, topic, refund_topic }) => {
    const requestId = request_id.toString('hex')
    const own = [topic, refund_topic].filter((each) => each !== null)
    const rows = [
      ...(foundOf.get(requestId) ?? []),
      ...own.flatMap((each) => unmatchedOf.get(each.toString('hex')) ?? []),
    ]
    return { requestId, topics: own.map(bytesToHex), txHashes: inBlockOrder(rows) }
  })
}

function inBlockOrder(rows: readonly TransactionRow[]): Hex[] {
  const sorted = rows.toSorted((a, b) => Number(a.block_number - b.block_number))
  return [...new Set(sorted.map(({ tx_hash }) => bytesToHex(tx_hash)))]
}

/** An event that counts for nothing, as it is stored. */
export interface StoredUnmatched {
  readonly reason: UnmatchedReason
  readonly topic: Hex
  readonly event: Readonly<Record<string, string>>
}

/** An account's unmatched event. */
export async function findUnmatched(
  knex: Knex,
  of: { readonly accountId: number; readonly chainId: string; readonly txHash: Hex; readonly eventIndex: number },
): Promise<StoredUnmatched | undefined> {
  const row = await knex('unmatched_events')
    .where({
      account_id: of.accountId,
      chain_id: of.chainId,
      tx_hash: hexToBytes(of.txHash),
      event_index: of.eventIndex,
    })
    .first<{ reason: UnmatchedReason; topic: Buffer; event: Readonly<Record<string, string>> } | undefined>()
  return row === undefined ? undefined : { reason: row.reason, topic: bytesToHex(row.topic), event: row.event }
}

/** Whether an event counts as a payment that was detected, or as a refund. */
export async function isCounted(
  knex: Knex,
  of: { readonly accountId: number; readonly chainId: string; readonly txHash: Hex; readonly eventIndex: number },
): Promise<boolean> {
  const place = {
    account_id: of.accountId,
    chain_id: of.chainId,
    tx_hash: hexToBytes(of.txHash),
    event_index: of.eventIndex,
  }
  const payment = await knex('payments')
    .where({ ...place, detected: true, imported: false })
    .first('id')
  const refund = await knex('refunds').where(place).first('event_index')
  return payment !== undefined || refund !== undefined
}
