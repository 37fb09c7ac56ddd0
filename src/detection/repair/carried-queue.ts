import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { type ChainDirectory } from '../../chains/chain-directory.ts'
import { decodeTransferLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { acquireLease, assertLeaseHeld, type Lease, releaseLease } from '../../store/leases-repository.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import {
  type CarriedPayment,
  dropCarried,
  findDueCarried,
  type PaymentSource,
  postponeCarried,
  storeSource,
} from '../sql/carried-repository.ts'

/**
 * Asks somebody who knows of bridges where a delivery came from. Chain ids are EIP-155 numbers. Never rejects.
 *
 * @returns FOUND; UNKNOWN for now; NEVER, whenever it is asked; NOT_ASKED, since it may not be asked for so long
 */
export type FindSource = (
  delivery: { readonly chainId: number; readonly txHash: Hex },
  signal: AbortSignal,
) => Promise<FoundSource>

export type FoundSource =
  | {
      readonly kind: 'FOUND'
      readonly transfer: { readonly sourceChainId: number; readonly sourceTxHash: Hex; readonly payer: Address }
    }
  | { readonly kind: 'UNKNOWN' | 'NEVER' }
  | { readonly kind: 'NOT_ASKED'; readonly forMs: number }

/** Looks up where payments came from that bridges delivered. What is left is in the database. */
export interface CarriedQueue {
  /** Looks up what is due, once. @throws the signal's reason */
  drain(signal?: AbortSignal): Promise<void>
  /** Looks up what is due, until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

export interface CarriedQueueOptions {
  readonly knex: Knex
  readonly chains: ChainDirectory
  readonly findSource: FindSource
  /** Those of the chains that are followed, by canonical name. */
  readonly readers: ReadonlyMap<string, ChainReader>
  readonly logger: Logger
  readonly clock: () => Date
  /** Unique to this run of this process: one of those that share a database looks up at a time. */
  readonly owner: string
  /** Between two looks at what is due; default a second. */
  readonly everyMs?: number
}

/** Time until the next attempt: this at first, then twice as long each time. */
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 6 * 60 * 60 * 1_000

/** After which it is given up: some two days. */
const MOST_ATTEMPTS = 20

const AT_ONCE = 10
const LEASE_TTL_MS = 60_000

/** For one of them, source chain included: all that are taken at once are done while the lease holds. */
const LOOK_UP_MS = 5_000

/** Makes the queue of one process. */
export function createCarriedQueue(options: CarriedQueueOptions): CarriedQueue {
  const { knex, logger, clock, owner, everyMs = 1_000 } = options
  const lease: Lease = { name: 'carried-payments', owner }
  /** The one that is asked may not be asked before then, in milliseconds since 1970. */
  let pausedUntilMs = 0

  const isPaused = () => clock().getTime() < pausedUntilMs

  /** @returns whether more may be due */
  async function drainSome(signal: AbortSignal): Promise<boolean> {
    if (isPaused() || (await findDueCarried(knex, clock(), 1)).length === 0) return false
    if (!(await acquireLease(knex, lease, LEASE_TTL_MS))) return false
    try {
      const due = await findDueCarried(knex, clock(), AT_ONCE)
      for (const carried of due) {
        signal.throwIfAborted()
        await lookUp(carried, signal)
        if (isPaused()) return false
      }
      return due.length === AT_ONCE
    } finally {
      await releaseLease(knex, lease)
    }
  }

  async function drain(signal: AbortSignal = new AbortController().signal): Promise<void> {
    while (await drainSome(signal)) signal.throwIfAborted()
  }

  /** @throws the signal's reason; what was cut short by it counts as no attempt */
  async function lookUp(carried: CarriedPayment, stopping: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(LOOK_UP_MS)])
    const chainId = Number(carried.chainId.split(':')[1])
    const answer = await options.findSource({ chainId, txHash: carried.txHash }, signal)
    if (answer.kind === 'NOT_ASKED') {
      pausedUntilMs = clock().getTime() + answer.forMs
    } else if (answer.kind === 'NEVER') {
      await dropCarried(knex, carried)
    } else if (answer.kind === 'FOUND' && (await isSeen(answer.transfer, signal))) {
      const { sourceTxHash: txHash, payer } = answer.transfer
      const source = { txHash, payer, ...networkOf(answer.transfer.sourceChainId) }
      await inTransaction(knex, undefined, async (trx) => {
        await assertLeaseHeld(trx, lease)
        await storeSource(trx, carried, { source, now: clock() })
      })
    } else {
      stopping.throwIfAborted()
      await tryLater(carried)
    }
  }

  function networkOf(chainId: number): Pick<PaymentSource, 'network'> {
    const resolved = options.chains.resolve(caip2Of(chainId))
    return resolved.kind === 'chain' ? { network: resolved.name } : {}
  }

  /** Held against the source chain where that is followed: the transaction is there, and it is the payer's or moves his money. */
  async function isSeen(
    { sourceChainId, sourceTxHash, payer }: Extract<FoundSource, { kind: 'FOUND' }>['transfer'],
    signal: AbortSignal,
  ): Promise<boolean> {
    const reader = options.readers.get(networkOf(sourceChainId).network ?? '')
    if (reader === undefined) return true
    const [receipt] = await reader.receipts([sourceTxHash], signal).catch(() => [])
    if (receipt === undefined || receipt instanceof RpcError) return false
    const isPayers = receipt.from === payer || receipt.logs.some((log) => decodeTransferLog(log)?.from === payer)
    if (!isPayers) logger.warn({ hash: sourceTxHash, payer }, 'a bridge names a payer whose transaction it was not')
    return isPayers
  }

  async function tryLater(carried: CarriedPayment): Promise<void> {
    const attempts = carried.attempts + 1
    if (attempts < MOST_ATTEMPTS) {
      const waitMs = Math.min(FIRST_WAIT_MS * 2 ** carried.attempts, LONGEST_WAIT_MS)
      await postponeCarried(knex, carried, { attempts, dueAt: new Date(clock().getTime() + waitMs) })
      return
    }
    logger.warn(
      { payment: carried.paymentId, attempts },
      'nobody knows where a payment came from; it is not asked for again',
    )
    await dropCarried(knex, carried)
  }

  return {
    drain,
    async run(signal) {
      while (!signal.aborted) {
        await drain(signal).catch((error: unknown) => {
          if (!signal.aborted)
            logger.warn({ err: error }, 'where payments came from could not be looked up; trying again')
        })
        await sleep(everyMs, undefined, { signal }).catch(() => {})
      }
    },
  }
}
