import type { Knex } from 'knex'
import { caip2Of } from '../../domain/chain.ts'
import { bytesToHex, type Hex } from '../../domain/hex.ts'
import type { Section } from '../read-sections.ts'
import { findAccounts } from '../sql/stored-requests.ts'
import { countUnmatched, pendingTopics, type UnmatchedRow, unmatchedBetween } from '../sql/stored-rows.ts'
import type { VerifyDifference } from '../verify-report.ts'
import { unmatchedKey } from './compare-requests.ts'
import { type CompareTerms, inSnapshot, isWithin } from './compare-terms.ts'
import { type Comparison, UNDECIDED } from './compared-page.ts'
import { differencesOf } from './differences.ts'
import { type FieldTexts, storedUnmatchedTexts, unmatchedTexts } from './expected-rows.ts'

/** How many unmatched events a chain keeps, of no account and of accounts. @see CHAIN, "Which event is a payment of which request" */
const KEPT_UNMATCHED = 100_000

interface UnmatchedTerms {
  /** Rows of accounts, by {@link unmatchedKey}. */
  readonly expected: ReadonlyMap<string, FieldTexts>
  readonly comparison: Comparison
  readonly names: ReadonlyMap<number, string>
}

/** Compares unmatched events: those of the chain must be stored, unless old ones were deleted beyond the limit, and no others. */
export async function compareUnmatched(
  terms: CompareTerms,
  section: Section,
  { expected, comparison, names }: UnmatchedTerms,
): Promise<{ differences: VerifyDifference[]; count: number }> {
  const { chain, account } = terms
  const chainId = caip2Of(chain.chainId)
  return inSnapshot(terms, async (trx) => {
    const pending = new Set((await pendingTopics(trx)).map(bytesToHex))
    const all = new Map([...expected, ...(account === undefined ? await unknownEvents(trx, section) : [])])
    const left = new Map([...all].filter(([, texts]) => isWithin(section.span, Number(texts['blockNumber']))))
    const count = left.size
    const differences: VerifyDifference[] = []
    for await (const rows of unmatchedBetween(trx, { chainId, ...section.span })) {
      for (const row of rows) {
        const key = unmatchedKey(row.account_id, bytesToHex(row.tx_hash), row.event_index)
        const chainSays = left.get(key)
        left.delete(key)
        if (isLeftOut(row, terms, comparison, pending)) continue
        differences.push(...compareOne(row, chainSays, names))
      }
    }
    if (left.size === 0) return { differences, count }
    const counts = await countUnmatched(trx, chainId)
    const lacking = [...left].filter(([key, texts]) => {
      const isKept = (key.startsWith('0 ') ? counts.unknown : counts.known) < KEPT_UNMATCHED
      return isKept && !pending.has(texts['topic'] as Hex) && comparison.isRead(Number(texts['blockNumber']))
    })
    differences.push(...lacking.map(([key, texts]) => describeLacking(key, texts, names)))
    return { differences, count }
  })
}

/** Events whose topic still belongs to no request. They are stored under the index of their log. */
async function unknownEvents(trx: Knex, { unknown }: Section): Promise<[string, FieldTexts][]> {
  const known = await findAccounts(trx, [...new Set(unknown.map(({ event }) => event.topic))])
  return unknown
    .filter(({ event }) => !known.has(event.topic))
    .map((each) => [unmatchedKey(0, each.txHash, each.event.logIndex), unmatchedTexts(each, 'UNKNOWN_TOPIC')])
}

function isLeftOut(
  row: UnmatchedRow,
  { account }: CompareTerms,
  comparison: Comparison,
  pending: ReadonlySet<Hex>,
): boolean {
  if (row.reason === 'RECEIPT_TOO_LARGE' || pending.has(bytesToHex(row.topic))) return true
  if (account !== undefined && row.account_id !== account.id) return true
  return !comparison.isRead(Number(row.block_number))
}

function compareOne(
  row: UnmatchedRow,
  chainSays: FieldTexts | undefined,
  names: ReadonlyMap<number, string>,
): VerifyDifference[] {
  const at = {
    kind: 'UNMATCHED',
    account: names.get(row.account_id),
    txHash: bytesToHex(row.tx_hash),
    eventIndex: row.event_index,
    blockNumber: Number(row.block_number),
  } as const
  if (chainSays === undefined) return [{ ...at, field: 'row', stored: row.reason }]
  const isUndecided = chainSays['reason'] === UNDECIDED
  return differencesOf(at, storedUnmatchedTexts(row), chainSays, (field) => isUndecided && field === 'reason')
}

function describeLacking(key: string, texts: FieldTexts, names: ReadonlyMap<number, string>): VerifyDifference {
  const [accountId, txHash, eventIndex] = key.split(' ')
  return {
    kind: 'UNMATCHED',
    account: names.get(Number(accountId)),
    txHash,
    eventIndex: Number(eventIndex),
    blockNumber: Number(texts['blockNumber']),
    field: 'row',
    chain: texts['reason'],
  }
}
