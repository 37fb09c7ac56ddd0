import { inTransaction } from '../../postgres/cancellable.ts'
import type { UnmatchedEvent } from '../match/detected.ts'
import { describeUnread, type LoggedEvent } from '../match/unmatched-events.ts'
import { lockChain } from '../sql/chain-state-repository.ts'
import { pendingTopics } from '../sql/pending-replays-repository.ts'
import { findAccountsOfTopics } from '../sql/topics-repository.ts'
import { countUnknown, deleteUnmatchedAt, findUnknownBetween, storeUnmatched } from '../sql/unmatched-repository.ts'
import { compareUnmatched } from './compare-rows.ts'
import type { CompareTerms } from './compare-terms.ts'
import type { Section } from './read-sections.ts'
import type { VerifyDifference } from './verify-report.ts'

/** How many unmatched events of no account a chain keeps. @see CHAIN, "Which event is a payment of which request" */
const KEPT_UNKNOWN = 100_000

/**
 * Compares the events of topics that no account knows: those of the section must be stored, unless old ones were deleted beyond the limit, and no others.
 * Makes them equal where it repairs.
 */
export async function compareUnknown(
  { knex, chain, repairer, signal }: CompareTerms,
  { span, uncertain, logs }: Section,
  strangers: readonly LoggedEvent[],
): Promise<VerifyDifference[]> {
  const { chainId } = chain.tools.chain
  const timeOf = new Map(logs.map(({ blockNumber, blockTimestamp }) => [Number(blockNumber), Number(blockTimestamp)]))
  const expected = strangers.map((each) => describeUnread(each, 'UNKNOWN_TOPIC', timeOf.get(each.blockNumber) ?? 0))
  return inTransaction(knex, signal, async (trx) => {
    if (repairer !== undefined) await lockChain(trx, chainId)
    const stored = (await findUnknownBetween(trx, { chainId, ...span })).filter(
      ({ blockNumber }) => !uncertain.has(blockNumber),
    )
    // Whoever came to know a topic meanwhile has its events attached, or will have.
    const topics = [...new Set([...stored, ...expected].map(({ topic }) => topic))]
    const known = await findAccountsOfTopics(trx, topics)
    const pending = new Set(await pendingTopics(trx))
    const isStill = ({ topic }: UnmatchedEvent) => !known.has(topic) && !pending.has(topic)
    const isKept = (await countUnknown(trx, chainId)) < KEPT_UNKNOWN
    const differences = compareUnmatched(stored.filter(isStill), expected.filter(isStill), undefined).filter(
      (each) => isKept || each.stored !== undefined,
    )
    if (repairer !== undefined && differences.length > 0) {
      await deleteUnmatchedAt(trx, chainId, 0, stored.filter(isStill))
      await storeUnmatched(trx, chainId, expected.filter(isStill))
    }
    return differences
  })
}
