import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { followedContracts } from '../chains/chains-file.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import type { Account } from '../domain/account.ts'
import type { Hex } from '../domain/hex.ts'
import type { Logger } from '../domain/logger.ts'
import { paymentReferenceOf, topicOfReference } from '../domain/payment-reference.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import { type ChainFollower, type ChainStatus, createChainFollower } from './follow/chain-follower.ts'
import { acceptEvent, unacceptEvent } from './repair/accept-event.ts'
import { createCarriedQueue, type FindSource } from './repair/carried-queue.ts'
import { type RecheckStep, type RecheckTerms, recheckChain } from './repair/recheck.ts'
import { createReplayQueue } from './repair/replay-queue.ts'
import { createDetectionRepository } from './sql/detection-repository.ts'
import { createPendingReplays } from './sql/pending-replays-repository.ts'

/** Follows chains and stores what is paid. */
export interface Detection {
  /** Begins to follow all chains; returns at once, whether they answer or not. */
  start(): void
  /** Ends following; resolves when nothing is being written any more. */
  stop(): Promise<void>
  /** Where each chain with contracts stands, in the order of the configuration. */
  status(): ChainStatus[]
  /**
   * Attaches payments that were made before requests were stored. Call it after the requests are committed, also of those that were
   * there already. Resolves when they are attached, or when a chain does not answer soon: it is tried again then.
   */
  onRequestsStored(account: Account, requests: readonly PaymentRequest[]): Promise<void>
  /**
   * Forgets what was detected on a chain above a block, final or not, and looks at it anew from there: the repair of a chain that was
   * stopped by a reorg beneath finality, which this clears.
   *
   * @param beforehand - done when nothing stands against it any more, while nobody else follows the chain
   *
   * @throws RangeError for a chain or block that is not there; RpcError; ChainFollowedError
   */
  restartFrom(network: string, block: number, beforehand?: () => Promise<void>): Promise<void>
  /**
   * Looks again at the transactions of an account's payments, refunds and unmatched events on a chain, and puts right what is stored.
   *
   * @throws RangeError for a chain that is not followed; RpcError
   */
  recheck(network: string, terms: RecheckTerms): AsyncGenerator<RecheckStep>
  /**
   * Accepts an unmatched event of a chain as a payment or a refund.
   *
   * @throws NotAcceptableError; RangeError for a chain that is not followed; RpcError
   */
  accept(network: string, decision: Parameters<typeof acceptEvent>[2], signal?: AbortSignal): Promise<void>
  /** Takes an acceptance back. @throws as {@link accept} */
  unaccept(network: string, decision: Parameters<typeof unacceptEvent>[2], signal?: AbortSignal): Promise<void>
  /** Looks at one chain, or at all, until there is nothing new. @throws what the look met */
  scanOnce(network?: string): Promise<void>
}

export interface DetectionOptions {
  readonly knex: Knex
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly logger: Logger
  readonly clock: () => Date
  /** Told of each HTTP exchange with a node as it begins. */
  readonly onExchange?: () => void
  /** Unique to this run of this process: several may share a database, and one of them follows a chain at a time. */
  readonly owner?: string
  /** How long a chain stays with a process that no longer says anything; default CHAIN_LEASE_MS. */
  readonly leaseTtlMs?: number
  /** Time between two looks at a chain; default half its block time, between 250 and 2,000. */
  readonly pollIntervalMs?: number
  /** For one exchange with a node; default 10,000. */
  readonly rpcTimeoutMs?: number
  /** Events of unknown topics that are kept of a chain; default 100,000. */
  readonly keepUnknown?: number
  /** Where payments came from that bridges delivered; nobody is asked unless given. */
  readonly findSource?: FindSource | undefined
}

/** Makes detection for the configured chains. */
export function createDetection(options: DetectionOptions): Detection {
  const { knex, chains, logger } = options
  const owner = options.owner ?? randomUUID()
  const repository = createDetectionRepository(knex)
  const replays = createReplayQueue({ repository, pending: createPendingReplays(knex), logger })
  // To nodes, logs of no address are logs of every address.
  const followed = chains.configured.filter((chain) => followedContracts(chain).length > 0)
  const followers = followed.map((config): ChainFollower => {
    const follower = createChainFollower({ ...options, config, owner, repository, replays })
    replays.addChain(follower.chainId, follower.replayChain)
    return follower
  })
  const readers = new Map(followers.map(({ network, replayChain }) => [network, replayChain.reader]))
  const { findSource, clock } = options
  const carried = findSource && createCarriedQueue({ knex, chains, findSource, readers, logger, clock, owner })
  const followerOf = (network: string): ChainFollower => {
    const follower = followers.find((each) => each.network === network)
    if (follower === undefined) throw new RangeError(`${network} is not followed`)
    return follower
  }
  let running: { readonly ending: AbortController; readonly done: Promise<unknown> } | undefined

  return {
    start() {
      if (running !== undefined) return
      const ending = new AbortController()
      const loops = followers.map((follower) => follower.run(ending.signal))
      running = { ending, done: Promise.all([...loops, replays.run(ending.signal), carried?.run(ending.signal)]) }
    },
    async stop() {
      running?.ending.abort(new Error('detection is stopping'))
      await running?.done
      running = undefined
    },
    status: () => followers.map((follower) => follower.status()),
    onRequestsStored: (account, requests) => replays.add(account.id, requests.flatMap(topicsOf)),
    async restartFrom(network, block, beforehand) {
      await followerOf(network).restartFrom(block, beforehand)
    },
    recheck: (network, terms) => recheckChain(knex, followerOf(network).replayChain, terms),
    accept: async (network, decision, signal) => acceptEvent(knex, followerOf(network).replayChain, decision, signal),
    unaccept: async (network, decision, signal) =>
      unacceptEvent(knex, followerOf(network).replayChain, decision, signal),
    async scanOnce(network) {
      const chosen = followers.filter((follower) => network === undefined || follower.network === network)
      for (const follower of chosen) await follower.scan()
      await replays.drain()
    },
  }
}

/** The topics under which a request's payments and refunds come. */
function topicsOf(request: PaymentRequest): Hex[] {
  const { requestId, salt, paymentReference, refundAddress } = request
  const refundReference = refundAddress === undefined ? undefined : paymentReferenceOf(requestId, salt, refundAddress)
  return [paymentReference, ...(refundReference === undefined ? [] : [refundReference])].map(topicOfReference)
}
