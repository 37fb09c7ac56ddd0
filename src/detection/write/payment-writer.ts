import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { assertLeaseHeld, type Lease } from '../../store/leases-repository.ts'
import { lockAccounts } from '../../store/payment-changes.ts'
import { settleStored } from '../../store/request-ledger.ts'
import { type EventPlace, eventKeyOf, type Findings, type UnmatchedEvent } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import {
  accountsAbove,
  findUnproven,
  loadPaymentsByEvents,
  loadRefundsByTransactions,
  type Removal,
} from '../sql/account-rows-repository.ts'
import {
  forgetContracts,
  insertSpans,
  limitSpans,
  markRead,
  moveContracts,
  type ReadContract,
  readContracts,
  type Span,
} from '../sql/chain-spans-repository.ts'
import {
  accountsInBlocks,
  addAccountToBlocks,
  deleteBlocksAbove,
  deleteFinalBlocks,
  insertBlocks,
  insertChain,
  lockChain,
  noteListChange,
  readBlocks,
  type StoredBlock,
  type StoredChain,
  timeOfBlock,
  updateChain,
} from '../sql/chain-state-repository.ts'
import { queueEnrichments } from '../sql/enrichments-repository.ts'
import { addPendingReplays } from '../sql/pending-replays-repository.ts'
import { storeRequestProxies } from '../sql/request-proxies-repository.ts'
import { findAccountsOfTopics } from '../sql/topics-repository.ts'
import {
  deleteUnknown,
  deleteUnmatchedAt,
  findReturnsToUnknown,
  pruneUnmatched,
  storeUnmatched,
} from '../sql/unmatched-repository.ts'
import { type AccountChange, type AppliedChange, applyAccountChange } from './account-change.ts'
import { accountsByBlock, blocksToStore, finalisedBlockOf, findCanonical, judgeRestart } from './block-rules.ts'
import { rowKeyAt, rowKeyOf, type WrittenChain } from './payment-rows.ts'

/** Another process moved the chain's checkpoint, so what was to be written was decided on an old state. */
export class CheckpointMovedError extends Error {
  override readonly name = 'CheckpointMovedError'

  constructor(network: string) {
    super(`another process has moved the checkpoint of ${network}`)
  }
}

/** A span was read, limited or dropped meanwhile, or the chain was stopped, so what was read of the span is not to be written. */
export class SpanMovedError extends Error {
  override readonly name = 'SpanMovedError'

  constructor(network: string) {
    super(`the blocks of ${network} that were read are not wanted any more`)
  }
}

/** Blocks that were read, and what was found in them. */
interface Advance {
  readonly lease: Lease
  /** Where this process believes the checkpoint to be. */
  readonly from: StoredBlock
  /** Lowest first. Final blocks other than the last may be left out. Empty: only the head and the final block moved. */
  readonly blocks: readonly BlockHeader[]
  readonly headBlock: number
  readonly finalBlock: number
  /** Whether a node of the chain has ever answered a `finalized` block. */
  readonly hasFinalizedTag: boolean
  readonly findings?: Findings | undefined
  /** Whether the blocks from the checkpoint to the last of `blocks` are not read yet: they become spans. */
  readonly leavesUnread?: boolean
}

/** What was found in final blocks of a span. */
interface SpanRead {
  readonly lease: Lease
  /** The span as it was before. */
  readonly span: Span
  /** The last block that was read. */
  readonly last: BlockHeader
  readonly findings: Findings
  /** What was found just before, and was perhaps not stored yet when these blocks were matched. */
  readonly unseen: Findings | undefined
}

/** Where reading a chain starts. */
export interface Start {
  readonly lease: Lease
  readonly block: number
  /** The time from which the block was found; undefined where it was given. */
  readonly since: Date | undefined
  /** From which block each contract is to be read. */
  readonly contracts: readonly ReadContract[]
  /** Whether what is left to read below is dropped. */
  readonly mayRaise: boolean
}

/** A reorg: blocks above `to` are no longer part of the chain. */
interface Rewind {
  readonly lease: Lease
  /** Where this process believes the checkpoint to be. */
  readonly from: StoredBlock
  /** The highest block that is still part of it. */
  readonly to: StoredBlock
}

/** What was found for one account by reading events again. */
export interface Correction {
  readonly accountId: number
  readonly findings: Findings
  /** The block in which each transaction was read. */
  readonly blockOf: ReadonlyMap<Hex, StoredBlock>
  /** Stored events that are no longer among those of their transactions or blocks. */
  readonly gone?: readonly EventPlace[]
  /** Whether what may only be undecided stays as it is stored: the rate of an old conversion, or a trace, may no longer be readable. */
  readonly keepsUndecided?: boolean
  /** Whether to roll back at the end: the result says what would change. */
  readonly isTrial?: boolean
  /** Written last in the same transaction. If it throws, nothing is written. */
  readonly beside?: (trx: Knex.Transaction, corrected: Corrected) => Promise<void>
}

/** What a correction changed. */
export interface Corrected extends AppliedChange {
  /** Transactions whose block is still part of the chain. Of the others, nothing was written. */
  readonly canonical: ReadonlySet<Hex>
  /** Of the events that were read again. */
  readonly unmatchedBefore: readonly UnmatchedEvent[]
  readonly unmatched: readonly UnmatchedEvent[]
  /** Unmatched for want of a rate or a trace, and left as the payments and refunds that they are stored as. */
  readonly undecided: readonly UnmatchedEvent[]
}

/** Thrown to roll back a transaction whose result alone was wanted. */
const TRIAL_ENDED = new Error('a trial is rolled back')

export type PaymentWriter = ReturnType<typeof createPaymentWriter>

/** What the writer of one chain works with. */
interface Writing {
  readonly knex: Knex
  readonly chain: WrittenChain
  readonly clock: () => Date
}

/** Makes what writes the findings of detection on one chain. Each call is one transaction: all of it is written, or nothing. */
export function createPaymentWriter(writing: Writing) {
  const { knex, chain, clock } = writing
  const { chainId } = chain
  const inOne =
    <Given>(write: (writing: Writing, trx: Knex.Transaction, given: Given) => Promise<void>) =>
    (given: Given, signal?: AbortSignal) =>
      inTransaction(knex, signal, (trx) => write(writing, trx, given))
  return {
    /** Begins to follow the chain, unless it is followed already. */
    open: (genesisHash: Hex, checkpoint: BlockHeader, headBlock: number): Promise<void> =>
      knex.transaction(async (trx) => {
        const isNew = await insertChain(trx, { ...chain, genesisHash, checkpoint, headBlock, now: clock() })
        if (!isNew) return
        await forgetContracts(trx, chainId)
        await insertBlocks(trx, chainId, [checkpoint], new Map())
        await supersedeUnproven(trx, chain.network, clock())
      }),
    /** Writes what was found in new blocks, and moves the checkpoint. @throws CheckpointMovedError, LeaseLostError */
    advance: inOne(advance),
    /** Removes what was found in blocks that a reorg replaced. @throws CheckpointMovedError, LeaseLostError */
    rewind: inOne(rewind),
    /**
     * Corrects what is stored of events that were read again: payments and refunds that no longer count are deleted, others added or changed, and
     * their requests settled. Imported payments stay as they are. Leaves out transactions whose block is no longer canonical, or was not read yet: the
     * follower reads that block.
     *
     * @returns undefined for a chain that was never followed
     */
    async correct({ isTrial = false, ...given }: Correction, signal?: AbortSignal): Promise<Corrected | undefined> {
      let corrected: Corrected | undefined
      const work = async (trx: Knex.Transaction) => {
        corrected = await correct(writing, trx, given)
        if (isTrial) throw TRIAL_ENDED
      }
      await inTransaction(knex, signal, work).catch((error: unknown) => {
        if (error !== TRIAL_ENDED) throw error
      })
      return corrected
    },
    /** Writes what was found in a span. @throws LeaseLostError, SpanMovedError */
    writeSpan: inOne(writeSpan),
    /** Sets where reading the chain starts, and makes spans of what is not read yet. @throws LeaseLostError */
    setStart: inOne(setStart),
    /**
     * Deletes all that was detected above a block, final or not, and clears the alarm, so that the chain is read anew from there.
     *
     * @throws LeaseLostError; RangeError for a block that was not read yet, or that has been replaced since
     */
    restart: (lease: Lease, from: BlockHeader): Promise<void> =>
      knex.transaction((trx) => restart(writing, trx, lease, from)),
    /** Stops the chain for every process until an operator restarts it. @throws LeaseLostError */
    raiseAlarm: (lease: Lease, text: string): Promise<void> =>
      knex.transaction(async (trx) => {
        await assertLeaseHeld(trx, lease)
        await updateChain(trx, chainId, { alarm: text, now: clock() })
      }),
    /** Limits the stored unmatched events; see the function of the same name. */
    pruneUnmatched: (keep: number) => pruneUnmatched(knex, chainId, keep),
  }
}

/** Once a chain is followed, imported payments without a transaction no longer count for its requests. */
async function supersedeUnproven(trx: Knex.Transaction, network: string, now: Date): Promise<void> {
  const unproven = await findUnproven(trx, network)
  for (const account of await lockAccounts(trx, [...unproven.keys()], now)) {
    await settleStored(account, unproven.get(account.accountId) ?? [])
  }
}

async function advance(writing: Writing, trx: Knex.Transaction, given: Advance): Promise<void> {
  const { lease, from, blocks, headBlock, finalBlock, hasFinalizedTag, findings, leavesUnread = false } = given
  const { chainId } = writing.chain
  const stored = await lockAt(writing, trx, lease, from)
  const checkpoint = blocks.at(-1)
  if (leavesUnread && checkpoint !== undefined) await leaveUnread(trx, stored, checkpoint.number)
  const finalisedBlock = finalisedBlockOf({ finalBlock, scannedBlock: checkpoint?.number ?? stored.scannedBlock })
  await insertBlocks(trx, chainId, blocksToStore(blocks, finalisedBlock), accountsByBlock(findings))
  const finalised = await accountsInBlocks(trx, chainId, '<=', finalisedBlock)
  await storeFindings(writing, trx, { findings, finalised, finalBlock: finalisedBlock, headBlock })
  await deleteFinalBlocks(trx, chainId, finalisedBlock)
  await updateChain(trx, chainId, { checkpoint, headBlock, finalBlock, hasFinalizedTag, now: writing.clock() })
}

/** Makes spans of the blocks above the checkpoint up to `until`. */
async function leaveUnread(
  trx: Knex.Transaction,
  { chainId, scannedBlock, scannedTime }: StoredChain,
  until: number,
): Promise<void> {
  const contracts = await readContracts(trx, chainId)
  const spans = [...contracts].map(([address, from]) => ({ address, from: Math.max(from, scannedBlock + 1), until }))
  await insertSpans(trx, chainId, spans, scannedTime)
}

/** Takes the chain's lock: whoever writes rows of a chain waits here, so checkpoint, blocks and payments move together. */
async function lockAt(
  { chain }: Writing,
  trx: Knex.Transaction,
  lease: Lease,
  from: StoredBlock,
): Promise<StoredChain> {
  await assertLeaseHeld(trx, lease)
  const stored = await lockChain(trx, chain.chainId)
  if (stored?.scannedBlock !== from.number || stored.scannedHash !== from.hash) {
    throw new CheckpointMovedError(chain.network)
  }
  return stored
}

type AccountHeights = Pick<AccountChange, 'finalBlock' | 'headBlock'>

/** Stores findings of all accounts, and finalises also payments of the accounts in `finalised`. */
async function storeFindings(
  writing: Writing,
  trx: Knex.Transaction,
  {
    findings,
    finalised,
    ...heights
  }: AccountHeights & { findings: Findings | undefined; finalised: readonly number[] },
): Promise<void> {
  const { chainId } = writing.chain
  await changeAccounts(writing, trx, [...(findings?.accounts.keys() ?? []), ...finalised], (accountId) => ({
    ...(findings?.accounts.get(accountId) ?? NOTHING),
    ...heights,
  }))
  if (findings?.listChangedAtSec !== undefined) await noteListChange(trx, chainId, findings.listChangedAtSec)
  await storeUnmatched(trx, chainId, findings?.unmatched ?? [])
  await storeRequestProxies(trx, chainId, findings?.proxies ?? [])
  await queueEnrichments(trx, chainId, findings?.lacking ?? [], writing.clock())
}

/** Changes accounts in ascending order, as all writers of payments do, so that they never deadlock. */
async function changeAccounts(
  { chain, clock }: Writing,
  trx: Knex.Transaction,
  accountIds: readonly number[],
  changeOf: (accountId: number) => Omit<AccountChange, 'accountId' | 'now'>,
): Promise<void> {
  for (const accountId of [...new Set(accountIds)].toSorted((a, b) => a - b)) {
    await applyAccountChange(trx, chain, { accountId, ...changeOf(accountId), now: clock() })
  }
}

async function writeSpan(
  writing: Writing,
  trx: Knex.Transaction,
  { lease, span, last, findings, unseen }: SpanRead,
): Promise<void> {
  const { chainId, network } = writing.chain
  await assertLeaseHeld(trx, lease)
  const stored = await lockChain(trx, chainId)
  if (stored === undefined || stored.alarm !== undefined || !(await markRead(trx, chainId, span, last))) {
    throw new SpanMovedError(network)
  }
  const { headBlock } = stored
  await storeFindings(writing, trx, { findings, finalised: [], finalBlock: finalisedBlockOf(stored), headBlock })
  await judgeLaterEventsAgain(trx, chainId, unseen === undefined ? [findings] : [unseen, findings])
}

/**
 * Later blocks may have been read before these. What was decided there without the payments and proxies that were found here is decided again: money
 * that went to somebody who was not known as a payer, and payments through a contract that was not known as a proxy.
 */
async function judgeLaterEventsAgain(
  trx: Knex.Transaction,
  chainId: string,
  found: readonly Findings[],
): Promise<void> {
  const accountIds = [...new Set(found.flatMap(({ accounts }) => [...accounts.keys()]))]
  const topics = [...new Set(found.flatMap(({ directory }) => [...directory.keys()]))]
  const returns = accountIds.length === 0 ? [] : await findReturnsToUnknown(trx, chainId, { accountIds, topics })
  const topicsOfProxies = new Set(found.flatMap(({ proxies }) => proxies.map(({ topic }) => topic)))
  const ofProxies = await findAccountsOfTopics(trx, [...topicsOfProxies])
  const through = [...ofProxies].flatMap(([topic, ids]) => ids.map((accountId) => ({ accountId, topic })))
  const again = new Map([...returns, ...through].map((each) => [`${each.accountId} ${each.topic}`, each]))
  await addPendingReplays(trx, [...again.values()], true)
}

async function setStart(writing: Writing, trx: Knex.Transaction, start: Start): Promise<void> {
  const { lease, block, since, contracts, mayRaise } = start
  const { chainId } = writing.chain
  await assertLeaseHeld(trx, lease)
  const stored = await lockChain(trx, chainId)
  if (stored === undefined) return
  await moveContracts(trx, chainId, contracts, mayRaise)
  await updateChain(trx, chainId, { startBlock: block, startSince: since ?? null, now: writing.clock() })
}

async function rewind(writing: Writing, trx: Knex.Transaction, { lease, from, to }: Rewind): Promise<void> {
  const { chainId } = writing.chain
  const { finalBlock, headBlock } = await lockAt(writing, trx, lease, from)
  await removeAbove(writing, trx, {
    accountIds: await accountsInBlocks(trx, chainId, '>', to.number),
    removal: { above: to.number, alsoFinal: false },
    finalBlock: finalisedBlockOf({ finalBlock, scannedBlock: to.number }),
    headBlock,
  })
  const checkpoint = { ...to, timestampSec: await timeOfBlock(trx, chainId, to.number) }
  await updateChain(trx, chainId, { checkpoint, now: writing.clock() })
}

/** Deletes all rows of a chain that belong to blocks above a number. */
async function removeAbove(
  writing: Writing,
  trx: Knex.Transaction,
  { accountIds, ...change }: AccountHeights & { readonly accountIds: readonly number[]; readonly removal: Removal },
): Promise<void> {
  const { above } = change.removal
  const { chainId } = writing.chain
  await changeAccounts(writing, trx, accountIds, () => ({ ...NOTHING, ...change }))
  await deleteBlocksAbove(trx, chainId, above)
}

async function restart(writing: Writing, trx: Knex.Transaction, lease: Lease, from: BlockHeader): Promise<void> {
  const { chainId, network } = writing.chain
  const { number } = from
  await assertLeaseHeld(trx, lease)
  const stored = await lockChain(trx, chainId)
  if (stored === undefined) return
  const verdict = judgeRestart(await readBlocks(trx, chainId), from)
  if (verdict === 'NOT_READ') throw new RangeError(`block ${number} of ${network} was not read yet: choose a lower one`)
  if (verdict === 'REPLACED') {
    throw new RangeError(`block ${number} of ${network} was replaced after it was read: choose a lower one`)
  }
  await removeAbove(writing, trx, {
    accountIds: await accountsAbove(trx, chainId, number),
    removal: { above: number, alsoFinal: true },
    // Nothing becomes final here: blocks below that are not final keep their rows and become so in their order.
    finalBlock: 0,
    headBlock: stored.headBlock,
  })
  if (verdict === 'FINAL') await insertBlocks(trx, chainId, [from], new Map())
  await limitSpans(trx, chainId, number)
  const finalBlock = Math.min(stored.finalBlock, number)
  await updateChain(trx, chainId, { checkpoint: from, finalBlock, alarm: null, now: writing.clock() })
}

async function correct(
  writing: Writing,
  trx: Knex.Transaction,
  { accountId, findings, blockOf, gone = [], keepsUndecided = false, beside }: Omit<Correction, 'isTrial'>,
): Promise<Corrected | undefined> {
  const { chainId } = writing.chain
  const stored = await lockChain(trx, chainId)
  if (stored === undefined) return undefined
  const canonical = findCanonical(stored, await readBlocks(trx, chainId), blockOf)
  const { payments, refunds, unmatched: all, lacking } = findingsOf(accountId, findings, canonical)
  const own = all.filter((event) => event.accountId === accountId)
  const undecided = keepsUndecided ? await findUndecided(writing, trx, own, findings) : []
  const unmatched = own.filter((event) => !undecided.includes(event))
  const rereadEvents = [...payments, ...refunds, ...unmatched, ...gone]
  const numbers = [...payments, ...refunds].map(({ blockNumber }) => blockNumber)
  await addAccountToBlocks(trx, chainId, accountId, numbers)
  const heights = { finalBlock: finalisedBlockOf(stored), headBlock: stored.headBlock }
  const change = { accountId, payments, refunds, rereadEvents, ...heights, now: writing.clock() }
  const applied = await applyAccountChange(trx, writing.chain, change)
  const unmatchedBefore = await deleteUnmatchedAt(trx, chainId, accountId, rereadEvents)
  const known = [...findings.directory].flatMap(([topic, ids]) => (ids.includes(accountId) ? [topic] : []))
  await deleteUnknown(trx, chainId, { txHashes: canonical, topics: known })
  await storeUnmatched(trx, chainId, unmatched)
  await queueEnrichments(trx, chainId, lacking, writing.clock())
  const corrected = { ...applied, canonical, unmatchedBefore, unmatched, undecided }
  await beside?.(trx, corrected)
  return corrected
}

/** The events that are stored as payments or refunds, and unmatched now for want of a rate or a trace. */
async function findUndecided(
  { chain }: Writing,
  trx: Knex.Transaction,
  unmatched: readonly UnmatchedEvent[],
  { withoutTrace }: Findings,
): Promise<UnmatchedEvent[]> {
  const doubted = unmatched.filter(
    (event) => event.reason === 'RATE_OFF' || event.reason === 'STALE_RATE' || withoutTrace.has(eventKeyOf(event)),
  )
  const [first] = doubted
  if (first === undefined) return []
  const { accountId } = first
  const txHashes = new Set(doubted.map(({ txHash }) => txHash))
  const payments = await loadPaymentsByEvents(trx, accountId, { txHashes, ids: [] })
  const refunds = await loadRefundsByTransactions(trx, accountId, txHashes)
  const counted = new Set([...[...payments.values()].filter(({ detected }) => detected), ...refunds].map(rowKeyOf))
  return doubted.filter((event) => counted.has(rowKeyAt(event, chain)))
}

/** What was found in transactions whose block is still part of the chain. */
function findingsOf(accountId: number, findings: Findings, canonical: ReadonlySet<Hex>) {
  const isCanonical = ({ txHash }: { readonly txHash: Hex }) => canonical.has(txHash)
  const { payments, refunds } = findings.accounts.get(accountId) ?? NOTHING
  const unmatched = findings.unmatched.filter(isCanonical)
  const lacking = findings.lacking.filter((each) => each.accountId === accountId && isCanonical(each))
  return { payments: payments.filter(isCanonical), refunds: refunds.filter(isCanonical), unmatched, lacking }
}

const NOTHING: Pick<AccountChange, 'payments' | 'refunds'> = { payments: [], refunds: [] }
