import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { decodeTransferLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { assertLeaseHeld, type Lease } from '../../store/leases-repository.ts'
import type { OpenChainOptions } from '../chain/open-chain.ts'
import type { ChainReader, TransactionReceipt } from '../read/chain-reader.ts'
import {
  type CarriedPayment,
  deleteCarried,
  findDueCarried,
  keepSeen,
  type PaymentSource,
  postponeCarried,
  reportedPayerFrom,
  type SeenSource,
  storeSource,
  takeSourceBack,
} from '../sql/carried-repository.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import { createDueQueue } from './due-queue.ts'

/**
 * Asks a service that knows bridges where a delivery came from. Chain ids are EIP-155 numbers. Never rejects.
 *
 * @returns FOUND; UNKNOWN for now; NEVER: it will never know; NOT_ASKED: the service must not be asked for some time
 */
export type FindSource = (
  delivery: { readonly chainId: number; readonly txHash: Hex },
  signal: AbortSignal,
) => Promise<FoundSource>

type FoundSource =
  | { readonly kind: 'FOUND'; readonly transfer: BridgeTransfer }
  | { readonly kind: 'UNKNOWN' | 'NEVER' }
  | { readonly kind: 'NOT_ASKED'; readonly forMs: number }

/** The sending side of a bridge transfer. */
interface BridgeTransfer {
  readonly sourceChainId: number
  readonly sourceTxHash: Hex
  readonly payer: Address
}

interface CarriedQueueOptions extends Pick<OpenChainOptions, 'knex' | 'logger' | 'clock'> {
  readonly chains: ChainDirectory
  readonly findSource: FindSource
  /** Readers of the followed chains, by canonical name. */
  readonly readers: ReadonlyMap<string, ChainReader>
  /** Unique to this run of this process: of those that share a database, one looks up at a time. */
  readonly owner: string
}

const POLL_EVERY_MS = 1_000

/** The wait after the first lookup that found nothing; it doubles after each. */
const FIRST_WAIT_MS = 2_000
const MAX_WAIT_MS = 6 * 60 * 60 * 1_000

/** Lookups before an entry is given up, after some two days. */
const MAX_ATTEMPTS = 20

const ENTRIES_AT_ONCE = 10
const LEASE_TTL_MS = 60_000

/** How often a source that is not final yet is checked. */
const CHECK_EVERY_MS = 15_000

/** For one lookup, source chain included. All lookups of one round end while the lease is held. */
const LOOKUP_MS = 5_000

/** The queue of this process. */
interface Queue extends CarriedQueueOptions {
  readonly lease: Lease
  /** The service must not be asked before then: milliseconds since 1970. */
  pausedUntilMs: number
}

/** Makes the queue of one process. It looks up where payments came from that bridges delivered, and checks that until it is final. The entries are in the database. */
export function createCarriedQueue(options: CarriedQueueOptions) {
  const { knex, clock, logger } = options
  const lease = { name: 'carried-payments', owner: options.owner }
  const queue: Queue = { ...options, lease, pausedUntilMs: 0 }
  const { drain, run } = createDueQueue<CarriedPayment>({
    knex,
    lease,
    ttlMs: LEASE_TTL_MS,
    atOnce: ENTRIES_AT_ONCE,
    pollEveryMs: POLL_EVERY_MS,
    findDue: (limit) => findDueCarried(knex, { now: clock(), onlySeen: isPaused(queue) }, limit),
    async lookup(due, signal) {
      for (const carried of due) {
        signal.throwIfAborted()
        if (carried.seen !== undefined) await checkSeen(queue, carried, carried.seen, signal)
        else if (!isPaused(queue)) await lookup(queue, carried, signal)
      }
    },
    onError: (err) =>
      logger.warn({ err }, 'the sources of bridge payments could not be looked up; they will be tried again'),
  })
  return {
    /** Looks up what is due, once. @throws the signal's reason */
    drain: (signal = new AbortController().signal) => drain(signal),
    /** Looks up what is due until the signal fires. */
    run,
  }
}

function isPaused({ clock, pausedUntilMs }: Queue): boolean {
  return clock().getTime() < pausedUntilMs
}

/** @throws the signal's reason; a lookup that it cut short does not count as an attempt */
async function lookup(queue: Queue, carried: CarriedPayment, stopping: AbortSignal): Promise<void> {
  const { knex, clock } = queue
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(LOOKUP_MS)])
  const chainId = Number(carried.chainId.split(':')[1])
  const answer = await queue.findSource({ chainId, txHash: carried.txHash }, signal)
  if (answer.kind === 'NOT_ASKED') queue.pausedUntilMs = clock().getTime() + Math.max(answer.forMs, POLL_EVERY_MS)
  else if (answer.kind === 'NEVER') await deleteCarried(knex, carried)
  else {
    const source = answer.kind === 'FOUND' ? await confirm(queue, answer.transfer, signal) : undefined
    if (source !== undefined) {
      await store(queue, carried, source)
      return
    }
    stopping.throwIfAborted()
    await postpone(queue, carried)
  }
}

async function store(queue: Queue, carried: CarriedPayment, { seen, ...source }: ConfirmedSource): Promise<void> {
  const { knex, lease, clock } = queue
  const check = seen && !(await isFinal(queue, seen)) ? { seen, dueAt: nextCheck(queue) } : undefined
  const isScreened = configOf(queue, carried.chainId)?.screening !== undefined
  await inTransaction(knex, undefined, async (trx) => {
    await assertLeaseHeld(trx, lease)
    await storeSource(trx, carried, { source, now: clock(), check, isScreened })
  })
}

function nextCheck({ clock }: Queue): Date {
  return new Date(clock().getTime() + CHECK_EVERY_MS)
}

async function isFinal({ knex }: Queue, { chainId, blockNumber }: SeenSource): Promise<boolean> {
  const stored = await findChain(knex, chainId)
  return stored !== undefined && stored.finalBlock >= blockNumber
}

/** Checks whether a source is still part of its chain: as long as its block is not final, a reorg can remove it. */
async function checkSeen(
  queue: Queue,
  carried: CarriedPayment,
  seen: SeenSource,
  stopping: AbortSignal,
): Promise<void> {
  const { knex, lease, clock } = queue
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(LOOKUP_MS)])
  const payer = await reportedPayerFrom(knex, carried, seen.txHash)
  const reader = readerOf(queue, Number(seen.chainId.split(':')[1]))
  const found = reader && payer && (await findSeen(reader, seen, payer, signal).catch(() => 'UNKNOWN' as const))
  stopping.throwIfAborted()
  if (found === undefined) await deleteCarried(knex, carried)
  else if (found === 'UNKNOWN') await keepSeen(knex, carried, seen, nextCheck(queue))
  else if (found === 'GONE') {
    queue.logger.info(
      { payment: carried.paymentId },
      'a reorg removed the source of a bridge payment: it is looked up again',
    )
    await inTransaction(knex, undefined, async (trx) => {
      await assertLeaseHeld(trx, lease)
      await takeSourceBack(trx, carried, clock())
    })
  } else if (found.blockHash === seen.blockHash && (await isFinal(queue, seen))) await deleteCarried(knex, carried)
  else await keepSeen(knex, carried, found, nextCheck(queue))
}

/** Finds where a source transaction is now. UNKNOWN: the node does not have the block, or does not answer for the transaction. */
async function findSeen(
  reader: ChainReader,
  seen: SeenSource,
  payer: Address,
  signal: AbortSignal,
): Promise<SeenSource | 'GONE' | 'UNKNOWN'> {
  const [header] = await reader.headers([seen.blockNumber], signal)
  if (header === undefined) return 'UNKNOWN'
  if (header.hash === seen.blockHash) return seen
  const [receipt] = await reader.receipts([seen.txHash], signal)
  if (receipt instanceof RpcError) return 'UNKNOWN'
  if (receipt === undefined || !isTransactionOf(payer, receipt)) return 'GONE'
  return { ...seen, blockNumber: receipt.blockNumber, blockHash: receipt.blockHash }
}

function networkOf(chains: ChainDirectory, chainId: number): string | undefined {
  const resolved = chains.resolve(caip2Of(chainId))
  return resolved.kind === 'chain' ? resolved.name : undefined
}

/** The reader of a chain, if that is followed. */
function readerOf({ chains, readers }: Queue, chainId: number): ChainReader | undefined {
  return readers.get(networkOf(chains, chainId) ?? '')
}

interface ConfirmedSource extends PaymentSource {
  /** Where the source was seen; undefined where its chain is not followed. */
  readonly seen: SeenSource | undefined
}

/** Checks an answer against the source chain, if that is followed. @returns undefined where it is not confirmed */
async function confirm(
  queue: Queue,
  { sourceChainId, sourceTxHash, payer }: BridgeTransfer,
  signal: AbortSignal,
): Promise<ConfirmedSource | undefined> {
  const source = { network: networkOf(queue.chains, sourceChainId), txHash: sourceTxHash, payer }
  const reader = readerOf(queue, sourceChainId)
  if (reader === undefined) return { ...source, seen: undefined, isProven: false }
  const [receipt] = await reader.receipts([sourceTxHash], signal).catch(() => [])
  if (receipt === undefined || receipt instanceof RpcError) return undefined
  if (!isTransactionOf(payer, receipt)) {
    queue.logger.warn({ hash: sourceTxHash, payer }, 'a bridge names a payer who has no part in the source transaction')
    return undefined
  }
  const { txHash, blockNumber, blockHash } = receipt
  const seen = { chainId: caip2Of(sourceChainId), txHash, blockNumber, blockHash }
  return { ...source, seen, isProven: isPaidBy(payer, receipt, listedTokens(queue, sourceChainId)) }
}

/**
 * Whether an address sent a transaction, or is the sender of any Transfer in it. This finds answers that name the wrong transaction or payer. It is no
 * proof: any token counts, since the bridge decides what it takes, and a token can log Transfers in anybody's name.
 */
export function isTransactionOf(address: Address, { from, logs }: Pick<TransactionReceipt, 'from' | 'logs'>): boolean {
  return from === address || logs.some((log) => decodeTransferLog(log)?.from === address)
}

/** Whether a transaction shows that an address paid: it sent the transaction, or a listed token, which logs Transfers of its own holders alone. */
export function isPaidBy(
  address: Address,
  { from, logs }: Pick<TransactionReceipt, 'from' | 'logs'>,
  tokens: ReadonlySet<Address>,
): boolean {
  const isPayment = (transfer: ReturnType<typeof decodeTransferLog>) =>
    transfer !== undefined && transfer.from === address && transfer.value > 0n && tokens.has(transfer.token)
  return from === address || logs.some((log) => isPayment(decodeTransferLog(log)))
}

function configOf({ chains }: Queue, caip2: string) {
  return chains.configured.find(({ chainId }) => caip2Of(chainId) === caip2)
}

function listedTokens(queue: Queue, chainId: number): ReadonlySet<Address> {
  const config = configOf(queue, caip2Of(chainId))
  return new Set(config?.tokens.map(({ address }) => address))
}

/**
 * The time to wait after a lookup that found nothing; undefined to give up.
 *
 * @param attempts - earlier lookups that found nothing
 */
export function waitAfterAttempt(attempts: number): number | undefined {
  return attempts + 1 < MAX_ATTEMPTS ? Math.min(FIRST_WAIT_MS * 2 ** attempts, MAX_WAIT_MS) : undefined
}

async function postpone({ knex, clock, logger }: Queue, carried: CarriedPayment): Promise<void> {
  const attempts = carried.attempts + 1
  const waitMs = waitAfterAttempt(carried.attempts)
  if (waitMs !== undefined) {
    await postponeCarried(knex, carried, { attempts, dueAt: new Date(clock().getTime() + waitMs) })
    return
  }
  logger.warn(
    { payment: carried.paymentId, attempts },
    'the source of a bridge payment was not found; it is not looked up again',
  )
  await deleteCarried(knex, carried)
}
