import type { Knex } from 'knex'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { Lack } from '../match/detected.ts'
import { UNHURRIED } from '../read/patience.ts'
import {
  deleteEnrichments,
  findDueEnrichments,
  type PendingEnrichment,
  postponeEnrichment,
} from '../sql/enrichments-repository.ts'
import type { Corrected } from '../write/payment-writer.ts'
import { correctRequestIds, readAgain } from './correct-requests.ts'
import { createDueQueue } from './due-queue.ts'

interface EnrichmentQueueOptions extends Pick<OpenChainOptions, 'knex' | 'logger' | 'clock'> {
  readonly chains: readonly OpenChain[]
  /** Unique to this run of this process: of those that share a database, one looks up figures of a chain at a time. */
  readonly owner: string
}

const POLL_EVERY_MS = 2_000
const ENTRIES_AT_ONCE = 50
const LEASE_TTL_MS = 120_000
/** For the entries of one account. A round has at most ENTRIES_AT_ONCE accounts, and ends when half of its lease is over. */
const LOOKUP_MS = 30_000
const SLICE_MS = LEASE_TTL_MS / 2

/** The wait after the second lookup; it doubles after each. */
const FIRST_WAIT_MS = 10_000
const MAX_WAIT_MS = 6 * 60 * 60 * 1_000
const GIVE_UP_AFTER_MS = 5 * 24 * 60 * 60 * 1_000

/**
 * The time to wait after a lookup that left something open; undefined to give up.
 *
 * @param attempts - earlier lookups
 * @param ageMs - since the entry was queued
 */
export function waitAfterLookup(attempts: number, ageMs: number): number | undefined {
  return ageMs >= GIVE_UP_AFTER_MS ? undefined : Math.min(FIRST_WAIT_MS * 2 ** attempts, MAX_WAIT_MS)
}

/**
 * Makes the queue of one process. It looks up what was not known of payments when they were stored: prices, gas, fees of rollups, and calls that tell
 * who paid. The entries are in the database. Chains are looked at beside each other, so that one whose nodes hang delays no other.
 */
export function createEnrichmentQueue(options: EnrichmentQueueOptions) {
  const queues = options.chains.map((chain) => createChainQueue(options, chain))
  return {
    /** Looks up what is due, once. @throws errors of the database */
    async drain(): Promise<void> {
      for (const queue of queues) await queue.drain(new AbortController().signal)
    },
    /** Looks up what is due until the signal fires; never rejects. */
    run: (signal: AbortSignal) => Promise.all(queues.map((queue) => queue.run(signal))),
  }
}

function createChainQueue(options: EnrichmentQueueOptions, chain: OpenChain) {
  const { knex, clock, owner, logger } = options
  const { chainId, name } = chain.tools.chain
  return createDueQueue<PendingEnrichment>({
    knex,
    lease: { name: `enrich:${chainId}`, owner },
    ttlMs: LEASE_TTL_MS,
    atOnce: ENTRIES_AT_ONCE,
    pollEveryMs: POLL_EVERY_MS,
    findDue: (limit) => findDueEnrichments(knex, chainId, clock(), limit),
    async lookup(due, signal) {
      const endMs = performance.now() + SLICE_MS
      for (const [accountId, entries] of Map.groupBy(due, (entry) => entry.accountId)) {
        if (performance.now() > endMs) return
        await lookup(options, chain, { accountId, entries }, signal)
      }
    },
    onError: (err) =>
      logger.warn({ chain: name, err }, 'missing figures of payments could not be looked up; they will be tried again'),
  })
}

interface AccountEntries {
  readonly accountId: number
  readonly entries: readonly PendingEnrichment[]
}

/** Reads the transactions again, and writes what is known now. Whatever fails is tried again later. */
async function lookup(
  options: EnrichmentQueueOptions,
  chain: OpenChain,
  account: AccountEntries,
  stopping: AbortSignal,
): Promise<void> {
  const tooLate = AbortSignal.timeout(LOOKUP_MS)
  try {
    await enrich(options, chain, account, AbortSignal.any([stopping, tooLate]))
  } catch (error) {
    stopping.throwIfAborted()
    if (!(error instanceof RpcError) && !tooLate.aborted) throw error
    for (const entry of account.entries) await postpone(options, chain, entry)
  }
}

async function enrich(
  options: EnrichmentQueueOptions,
  chain: OpenChain,
  { accountId, entries }: AccountEntries,
  signal: AbortSignal,
): Promise<void> {
  const { chainId } = chain.tools.chain
  const txHashes = entries.map(({ txHash }) => txHash)
  const neverTraced = new Set(entries.filter(({ lacks }) => lacks.has('TRACE')).map(({ txHash }) => txHash))
  const asked = { accountId, topics: new Set<Hex>(), txHashes, neverTraced, patience: UNHURRIED }
  const { findings, blockOf } = await readAgain(chain, asked, signal)
  const lacking = new Map(findings.lacking.map(({ txHash, lacks }) => [txHash, lacks]))
  let read: ReadonlySet<Hex> = new Set()
  const beside = async (trx: Knex.Transaction, { canonical }: Pick<Corrected, 'canonical'>) => {
    read = canonical
    const complete = txHashes.filter((txHash) => canonical.has(txHash) && !lacking.has(txHash))
    await deleteEnrichments(trx, chainId, accountId, complete)
  }
  const corrected = await chain.writer.correct({ accountId, findings, blockOf, keepsUndecided: true, beside }, signal)
  for (const entry of entries) {
    const stillLacks = read.has(entry.txHash) ? lacking.get(entry.txHash) : entry.lacks
    if (stillLacks !== undefined) await postpone(options, chain, { ...entry, lacks: stillLacks })
  }
  // What counts as a refund depends on who paid.
  const requestIds = corrected === undefined ? [] : withOtherPayers(corrected)
  await correctRequestIds(options.knex, chain, { accountId, requestIds, signal })
}

/** Ids of the requests of payments whose payer was found, or that are gone because their payee made them. */
function withOtherPayers({ paymentsBefore, payments }: Corrected): string[] {
  const payerOf = ({ payer }: { readonly payer: Buffer | null }) => payer?.toString('hex')
  const after = new Map(payments.map((row) => [row.id, row]))
  const isOther = (before: PaymentRow) => {
    const row = after.get(before.id)
    return row === undefined || payerOf(row) !== payerOf(before)
  }
  const requestIds = [...paymentsBefore.values()].filter(isOther).flatMap(({ request_id }) => request_id ?? [])
  return [...new Set(requestIds.map((id) => id.toString('hex')))]
}

async function postpone(
  { knex, clock, logger }: EnrichmentQueueOptions,
  { tools }: OpenChain,
  entry: PendingEnrichment,
): Promise<void> {
  const nowMs = clock().getTime()
  const waitMs = waitAfterLookup(entry.attempts, nowMs - entry.queuedAt.getTime())
  const dueAt = waitMs === undefined ? undefined : new Date(nowMs + waitMs)
  await postponeEnrichment(knex, tools.chain.chainId, { ...entry, attempts: entry.attempts + 1 }, dueAt)
  if (dueAt !== undefined) return
  const lacks: Lack[] = [...entry.lacks]
  logger.warn(
    { chain: tools.chain.name, txHash: entry.txHash, lacks },
    'figures of a payment were not found; they are not looked up again',
  )
}
