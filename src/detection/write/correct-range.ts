import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { type EventPlace, eventKeyOf, type Findings, type UnmatchedEvent } from '../match/detected.ts'
import { lockChain } from '../sql/chain-state-repository.ts'
import { queueEnrichments } from '../sql/enrichments-repository.ts'
import { storeRequestProxies } from '../sql/request-proxies-repository.ts'
import {
  deleteOthersInRange,
  findUnmatchedKeys,
  type GoneUnmatched,
  type StoredEvent,
  unmatchedKeyOf,
} from '../sql/reread-repository.ts'
import { storeUnmatched } from '../sql/unmatched-repository.ts'
import { type AppliedChange, applyAccountChange } from './account-change.ts'
import { finalisedBlockOf } from './block-rules.ts'
import type { WrittenChain } from './payment-rows.ts'
import { runTrial } from './run-trial.ts'

/** Final blocks that were read before and have been read again. */
export interface RangeCorrection {
  /** Both ends included. */
  readonly from: number
  readonly to: number
  readonly findings: Findings
  /** Topics of all events in the blocks' logs. */
  readonly topics: ReadonlySet<Hex>
  /** What is stored of the blocks. */
  readonly stored: readonly StoredEvent[]
  /** Whether to roll back at the end: the result says what would change. */
  readonly isTrial: boolean
  /** Written last in the same transaction. */
  readonly beside: (trx: Knex.Transaction, corrected: CorrectedRange) => Promise<void>
}

/** What a correction changed. */
export interface CorrectedRange {
  /** By account. */
  readonly accounts: ReadonlyMap<number, AppliedChange>
  readonly unmatchedAdded: readonly UnmatchedEvent[]
  readonly unmatchedRemoved: readonly GoneUnmatched[]
}

/** The blocks are not all final and read, so what was found in them can still change by itself. */
export class NotFinalError extends Error {
  override readonly name = 'NotFinalError'
}

/**
 * Makes what is stored of some final blocks equal to what reading them again found, in one transaction: adds what is missing, corrects what
 * differs, and removes payments, refunds and unmatched events that the blocks do not have. Imported payments stay. Needs no lease: it takes the
 * chain's lock, as every writer of the chain does.
 *
 * @throws NotFinalError
 */
export async function correctRange(
  { knex, chain, clock }: { readonly knex: Knex; readonly chain: WrittenChain; readonly clock: () => Date },
  given: RangeCorrection,
  signal: AbortSignal | undefined,
): Promise<CorrectedRange> {
  const corrected = await runTrial<CorrectedRange>(given.isTrial, (finish) =>
    inTransaction(knex, signal, async (trx) => {
      const done = await write({ trx, chain, now: clock() }, given)
      await given.beside(trx, done)
      finish(done)
    }),
  )
  if (corrected === undefined) throw new Error('the transaction gave no result')
  return corrected
}

async function write(
  { trx, chain, now }: { readonly trx: Knex.Transaction; readonly chain: WrittenChain; readonly now: Date },
  given: RangeCorrection,
): Promise<CorrectedRange> {
  const { chainId, network } = chain
  const { from, to, stored } = given
  const state = await lockChain(trx, chainId)
  const finalBlock = state === undefined ? -1 : finalisedBlockOf(state)
  if (state === undefined || to > finalBlock) {
    throw new NotFinalError(`block ${to} of ${network} is not read and final yet: the last such block is ${finalBlock}`)
  }
  const { kept, findings } = keepUncertain(given)
  const ofAccounts = Map.groupBy(stored, ({ accountId }) => accountId)
  const unmatchedOf = Map.groupBy(findings.unmatched, ({ accountId }) => accountId)
  const ids = new Set([...ofAccounts.keys(), ...findings.accounts.keys(), ...unmatchedOf.keys()])
  const accounts = new Map<number, AppliedChange>()
  for (const accountId of [...ids].filter((id) => id !== 0).toSorted((a, b) => a - b)) {
    const { payments, refunds } = findings.accounts.get(accountId) ?? { payments: [], refunds: [] }
    const own = [...payments, ...refunds, ...(unmatchedOf.get(accountId) ?? [])]
    const gone = (ofAccounts.get(accountId) ?? []).filter((event) => !mayCount(event, given, kept))
    const heights = { finalBlock, headBlock: state.headBlock }
    const rereadEvents = [...own, ...gone]
    const change = { accountId, payments, refunds, rereadEvents, ...heights, now }
    accounts.set(accountId, await applyAccountChange(trx, chain, change))
  }
  const range = { chainId, from, to }
  const before = await findUnmatchedKeys(trx, range)
  const unmatchedRemoved = await deleteOthersInRange(trx, range, findings, kept)
  await storeUnmatched(trx, chainId, findings.unmatched)
  await storeRequestProxies(trx, chainId, findings.proxies)
  await queueEnrichments(trx, chainId, findings.lacking, now)
  const unmatchedAdded = findings.unmatched.filter((event) => !before.has(unmatchedKeyOf(event)))
  return { accounts, unmatchedAdded, unmatchedRemoved }
}

/**
 * Leaves out what this reading could not judge, so that what is stored of it stays: transactions whose trace failed or whose receipt is too large, and
 * payments whose rate is no longer readable.
 */
function keepUncertain({ findings, stored }: RangeCorrection): { kept: ReadonlySet<Hex>; findings: Findings } {
  const kept = new Set(findings.untraced)
  const counted = new Set(stored.filter(({ what }) => what === 'payment').map(keyOf))
  const isKept = (event: UnmatchedEvent) => {
    if (event.reason === 'RECEIPT_TOO_LARGE') return stored.some(({ txHash }) => txHash === event.txHash)
    return (event.reason === 'RATE_OFF' || event.reason === 'STALE_RATE') && counted.has(keyOf(event))
  }
  const keptEvents = findings.unmatched.filter(isKept)
  for (const { txHash } of keptEvents) kept.add(txHash)
  return {
    kept,
    findings: { ...findings, unmatched: findings.unmatched.filter((event) => !keptEvents.includes(event)) },
  }
}

function keyOf(event: EventPlace & { readonly accountId: number }): string {
  return `${eventKeyOf(event)} ${event.accountId}`
}

/**
 * Whether a stored event may still count although this reading did not find it for its account: it could not be judged, or the account came to know
 * its topic while the blocks were read.
 */
function mayCount(
  { accountId, txHash, topics }: StoredEvent,
  { findings, topics: logged }: RangeCorrection,
  kept: ReadonlySet<Hex>,
): boolean {
  if (kept.has(txHash)) return true
  return topics.some((topic) => logged.has(topic) && !findings.directory.get(topic)?.includes(accountId))
}
