import { setTimeout as wait } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { insertAuditEntry } from '../../store/audit-repository.ts'
import { listStoredAccounts } from '../../store/proof/check-account.ts'
import type { OpenChain } from '../chain/open-chain.ts'
import {
  type DetectedPayment,
  type DetectedRefund,
  eventKeyOf,
  type Sighting,
  type UnmatchedEvent,
} from '../match/detected.ts'
import { decodeLog, describeUnread, type LoggedEvent } from '../match/unmatched-events.ts'
import { batchesOf, type CorrectedBatch, correctBatch } from '../repair/correct-requests.ts'
import { lockChain } from '../sql/chain-state-repository.ts'
import { openLookups } from '../sql/enrichments-repository.ts'
import { pendingTopics } from '../sql/pending-replays-repository.ts'
import {
  findAccountsOfTopics,
  findStoredBetween,
  onChain,
  type RequestEvents,
  readRequestEvents,
} from '../sql/topics-repository.ts'
import { countUnknown, deleteUnmatchedAt, findUnknownBetween, storeUnmatched } from '../sql/unmatched-repository.ts'
import { compareUnmatched, describeCorrection } from './compare-rows.ts'
import type { History } from './read-history.ts'
import type { Section } from './read-sections.ts'
import type { CountedAmount, Unproven, VerifyDifference } from './verify-report.ts'

/** The result of comparing a section. */
export interface Outcome {
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
  /** The payments and refunds in the section, each once. */
  readonly counted: readonly CountedAmount[]
  readonly unmatched: number
  /** The requests that were compared over their whole history, by account. */
  readonly touched: ReadonlyMap<Account, ReadonlySet<string>>
}

const REQUESTS_A_PAGE = 500

/** Compares a section of the chain with what is stored: judges its requests again by all of their events, in transactions that are rolled back. */
export async function compareSection(terms: CompareTerms, section: Section): Promise<Outcome> {
  const { knex, chain, account, history } = terms
  const { repository, chain: observed } = chain.tools
  history.begin(section)
  const events = section.logs.flatMap((log) => decodeLog(log))
  const directory = await repository.accountsOfTopics([...new Set(events.map(({ event }) => event.topic))])
  const touched = await findTouched(terms, section, directory)
  const outcomes: BatchOutcome[] = []
  for (const [owner, requestIds] of touched) {
    for (const ids of chunksOf([...requestIds].toSorted(), REQUESTS_A_PAGE)) {
      const requests = onChain(await readRequestEvents(knex, owner.id, ids), observed.chainId)
      for (const batch of batchesOf(requests)) outcomes.push(await compareBatch(terms, section, owner, batch))
    }
  }
  const differing = outcomes.filter(({ differences }) => differences.length > 0)
  for (const { owner, batch } of differing) history.addDiffering(owner.id, batch)
  const lasting = await compareAgain(terms, section, differing)
  const strangers = events.filter(({ event }) => !directory.has(event.topic))
  const unknown = account === undefined ? await compareUnknown(terms, section, strangers) : []
  return {
    differences: [...lasting, ...unknown],
    unproven: outcomes.flatMap(({ unproven }) => unproven),
    ...countAll(outcomes, section, account === undefined ? strangers.length : 0),
    touched,
  }
}

/** Finds the requests to which events or stored rows of the section belong, by account. */
async function findTouched(
  { knex, account, chain }: CompareTerms,
  { span, first, last }: Section,
  directory: ReadonlyMap<Hex, readonly number[]>,
): Promise<Map<Account, Set<string>>> {
  const { repository, chain: observed } = chain.tools
  const accounts = account === undefined ? await listStoredAccounts(knex) : [account]
  const [fromTime, toTime] = [first, last].map(({ timestampSec }) => new Date(timestampSec * 1_000)) as [Date, Date]
  const blocks = { ...span, chainId: observed.chainId, fromTime, toTime }
  const stored = await findStoredBetween(
    knex,
    accounts.map(({ id }) => id),
    blocks,
  )
  const storedOf = Map.groupBy(stored, ({ accountId }) => accountId)
  const touched = new Map<Account, Set<string>>()
  for (const owner of accounts) {
    const topics = [...directory].flatMap(([topic, ids]) => (ids.includes(owner.id) ? [topic] : []))
    const requests = topics.length === 0 ? [] : await repository.requestsOfTopics(owner.id, topics)
    const ids = [...requests, ...(storedOf.get(owner.id) ?? [])].map(({ requestId }) => requestId)
    if (ids.length > 0) touched.set(owner, new Set(ids))
  }
  return touched
}

interface BatchOutcome {
  readonly owner: Account
  readonly batch: readonly RequestEvents[]
  readonly judged: CorrectedBatch | undefined
  readonly differences: readonly VerifyDifference[]
  readonly unproven: readonly Unproven[]
}

async function compareBatch(
  terms: CompareTerms,
  section: Section,
  owner: Account,
  batch: readonly RequestEvents[],
  isTrial = true,
): Promise<BatchOutcome> {
  const { knex, chain, clock, signal, repairer = '' } = terms
  const { from, to } = section.span
  const proven = await terms.history.complete(owner.id, batch)
  const beside = async (trx: Knex.Transaction, corrected: CorrectedBatch['corrected']) => {
    const lines = describeCorrection(corrected, owner.name)
    const { name: network } = chain.tools.chain
    const details = { chain: network, from, to, changes: lines.length, first: lines.slice(0, 20) }
    await insertAuditEntry(trx, { at: clock(), actor: repairer, action: 'VERIFY_REPAIR', account: owner.name, details })
  }
  const wanted = { accountId: owner.id, isTrial, proven, ...(isTrial ? {} : { beside }), signal }
  const judged = await correctBatch(chain, batch, wanted)
  const all = judged === undefined ? [] : describeCorrection(judged.corrected, owner.name)
  const open = await findOpen(knex, chain.tools.chain.chainId, owner.id, all)
  const differences = all.filter((each) => !open.includes(each))
  return { owner, batch, judged, differences, unproven: [...unprovenIn(judged), ...open.map(toInfo)] }
}

/** Figures that are not stored and that the service still looks up. */
async function findOpen(
  knex: Knex,
  chainId: string,
  accountId: number,
  differences: readonly VerifyDifference[],
): Promise<VerifyDifference[]> {
  const lacking = differences.filter(
    ({ kind, field, stored }) =>
      kind === 'PAYMENT' &&
      (field === 'marks'
        ? stored?.includes('SCREENING_UNKNOWN')
        : stored === undefined && (field === 'gas' || field === 'payer')),
  )
  if (lacking.length === 0) return []
  const txHashes = lacking.map(({ txHash }) => txHash as Hex)
  const lookups = await openLookups(knex, accountId, { chainId, txHashes })
  return lacking.filter(({ txHash = '' }) => lookups.has(txHash))
}

function toInfo({ field, eventIndex, txHash }: VerifyDifference): Unproven {
  return {
    where: `event ${eventIndex} of ${txHash}`,
    why: `the service still looks up its ${field}`,
    isInfo: true,
  }
}

function unprovenIn(judged: CorrectedBatch | undefined): Unproven[] {
  if (judged === undefined) return []
  const { findings, corrected } = judged
  const untraced = [...findings.untraced].map((txHash) => ({
    where: `transaction ${txHash}`,
    why: 'no node traces it, so what is stored of it stands',
  }))
  const undecided = corrected.undecided.map(({ eventIndex, txHash, reason }) => ({
    where: `event ${eventIndex} of ${txHash}`,
    why:
      reason === 'RATE_OFF' || reason === 'STALE_RATE'
        ? `its rate is not proved (${reason}), so the stored verdict on it stands`
        : 'no node traces the transaction, so the stored verdict on who sent it stands',
  }))
  const asStored = [...findings.accounts.values()]
    .flatMap(({ payments }) => payments)
    .filter((each) => each.payer !== undefined && findings.withoutTrace.has(eventKeyOf(each)))
    .map(({ eventIndex, txHash }) => ({
      where: `event ${eventIndex} of ${txHash}`,
      why: 'no node traces the transaction, so its payer is taken as stored',
    }))
  return [...untraced, ...undecided, ...asStored]
}

/** Repairs what differs; or compares it again a moment later, since the service may have been about to write it. */
async function compareAgain(
  terms: CompareTerms,
  section: Section,
  differing: readonly BatchOutcome[],
): Promise<VerifyDifference[]> {
  const { knex, chain, repairer, againAfterMs, signal } = terms
  const { chainId } = chain.tools.chain
  if (differing.length === 0) return []
  if (repairer === undefined) await wait(againAfterMs, undefined, { signal })
  const lasting: VerifyDifference[] = []
  for (const { owner, batch, differences } of differing) {
    const ids = [...new Set(batch.map(({ requestId }) => requestId))]
    const requests = onChain(await readRequestEvents(knex, owner.id, ids), chainId)
    for (const again of batchesOf(requests)) {
      const second = await compareBatch(terms, section, owner, again, repairer === undefined)
      const first = new Set(differences.map((each) => JSON.stringify(each)))
      lasting.push(...second.differences.filter((each) => repairer !== undefined || first.has(JSON.stringify(each))))
    }
  }
  return lasting
}

/** Counts the events of the section, each once. */
function countAll(
  outcomes: readonly BatchOutcome[],
  { span: { from, to } }: Section,
  unknown: number,
): Pick<Outcome, 'counted' | 'unmatched'> {
  const counted: CountedAmount[] = []
  let unmatched = unknown
  const seen = new Set<string>()
  for (const { owner, judged } of outcomes) {
    const isNew = (event: Sighting) => {
      const key = `${owner.id} ${eventKeyOf(event)}`
      return event.blockNumber >= from && event.blockNumber <= to && !seen.has(key) && seen.add(key) !== undefined
    }
    const { payments = [], refunds = [] } = judged?.findings.accounts.get(owner.id) ?? {}
    const toCounted = (kind: CountedAmount['kind']) => (event: DetectedPayment | DetectedRefund) => ({
      account: owner.name,
      currency: event.currency,
      kind,
      amount: event.amount,
    })
    counted.push(...payments.filter(isNew).map(toCounted('PAYMENT')), ...refunds.filter(isNew).map(toCounted('REFUND')))
    unmatched += judged?.corrected.unmatched.filter(isNew).length ?? 0
  }
  return { counted, unmatched }
}

/** How many unmatched events of no account a chain keeps. @see CHAIN, "Which event is a payment of which request" */
const KEPT_UNKNOWN = 100_000

/**
 * Compares the events of topics that no account knows: those of the section must be stored, unless old ones were deleted beyond the limit, and no others.
 * Makes them equal where it repairs.
 */
async function compareUnknown(
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

/** What comparing sections with the database needs. */
interface CompareTerms {
  readonly knex: Knex
  readonly chain: OpenChain
  /** Absent: all accounts. */
  readonly account?: Account | undefined
  /** Who repairs, for the audit log; absent: nothing is written. */
  readonly repairer?: string | undefined
  readonly clock: () => Date
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until a difference is compared again. */
  readonly againAfterMs: number
  /** Reads blocks outside the section, for the other payments of its requests. */
  readonly history: History
}
