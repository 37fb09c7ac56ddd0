import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { ChainDirectory } from '../chains/chain-directory.ts'
import { followedContracts } from '../chains/chains-file.ts'
import type { Account } from '../domain/account.ts'
import { caip2Of } from '../domain/chain.ts'
import type { Hex } from '../domain/hex.ts'
import { paymentReferenceOf, topicOfReference } from '../domain/identifiers.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import type { Meter } from '../domain/telemetry/telemetry.ts'
import { createNodeLimits, type NodeLimits } from '../nodes/node-limits.ts'
import { inLane } from '../nodes/node-policy.ts'
import { createBudgetKeeper } from './limits/keep-budgets.ts'
import { acceptEvent, unacceptEvent } from './repair/accept-event.ts'
import { createCarriedQueue, type FindSource } from './repair/carried-queue.ts'
import { createEnrichmentQueue } from './repair/enrichment-queue.ts'
import { createReplayQueue } from './repair/replay-queue.ts'
import { type ChainFollower, createChainFollower } from './run/chain-follower.ts'
import type { ChainFollowerOptions } from './run/followed-chain.ts'
import { findChain } from './sql/chain-state-repository.ts'
import { createDetectionRepository } from './sql/detection-repository.ts'

export type Detection = ReturnType<typeof createDetection>

export interface DetectionOptions
  extends Omit<ChainFollowerOptions, 'config' | 'repository' | 'owner' | 'process' | 'replays' | 'limits' | 'onFound'> {
  readonly chains: ChainDirectory
  /** What the process knows of its nodes' limits, shared with routes; default nothing but what the configuration states. */
  readonly limits?: NodeLimits | undefined
  readonly meter?: Meter | undefined
  /** Unique to this run of this process: of those that share a database, one follows a chain at a time. Default a random one. */
  readonly owner?: string
  /** Finds where a payment came from that a bridge delivered. If absent, payers of such payments stay unknown. */
  readonly findSource?: FindSource | undefined
}

const FOUND_SECONDS = {
  name: 'waybill_payment_found_seconds',
  help: "From a block's time until its payments are stored, by chain. Back-filled blocks are left out.",
  labels: ['chain'],
  buckets: [0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 900, 3600],
}

/** What runs between `start` and `stop`. */
interface Running {
  readonly ending: AbortController
  readonly done: Promise<unknown>
}

/** Makes what follows the configured chains and stores the payments and refunds of requests. */
export function createDetection(options: DetectionOptions) {
  const { knex, chains, logger } = options
  const owner = options.owner ?? randomUUID()
  const ownName = `${hostname()}/${process.pid}`
  const limits =
    options.limits ?? createNodeLimits(chains.configured, { clock: () => options.clock().getTime(), logger })
  const keeper = createBudgetKeeper({ knex, chains: chains.configured, limits, logger })
  const repository = createDetectionRepository(knex)
  const replays = createReplayQueue({ knex, repository, logger })
  // eth_getLogs without an address gives the logs of every contract.
  const followed = chains.configured.filter((chain) => followedContracts(chain).length > 0)
  const found = options.meter?.histogram(FOUND_SECONDS)
  const followers = followed.map((config): ChainFollower => {
    const shared = { ...options, limits, owner, process: ownName, repository, replays }
    const onFound = found && ((seconds: number) => found({ chain: config.name }, seconds))
    const follower = createChainFollower({ ...shared, config, onFound })
    replays.addChain(follower.chainId, follower.chain)
    return follower
  })
  const readers = new Map(followers.map(({ network, chain }) => [network, chain.reader]))
  const { findSource, clock } = options
  const carried = findSource && createCarriedQueue({ knex, chains, findSource, readers, logger, clock, owner })
  const opened = followers.map(({ chain }) => chain)
  const enrichments = createEnrichmentQueue({ knex, chains: opened, logger, clock, owner })
  const followerOf = (network: string): ChainFollower => {
    const follower = followers.find((each) => each.network === network)
    if (follower === undefined) throw new RangeError(`${network} is not followed`)
    return follower
  }
  let running: Running | undefined

  return {
    /** Begins to follow all chains; returns at once, whether their nodes answer or not. */
    start(): void {
      if (running !== undefined) return
      const ending = new AbortController()
      const loops = followers.map((follower) => follower.run(ending.signal))
      // What can be added later waits where a node allows few calls.
      const later = inLane('ENRICHMENT', () => [enrichments.run(ending.signal), carried?.run(ending.signal)])
      const done = Promise.all([keeper.run(ending.signal), ...loops, replays.run(ending.signal), ...later])
      running = { ending, done }
    },
    /** Ends following; resolves when nothing is being written any more. */
    async stop(): Promise<void> {
      running?.ending.abort(new Error('detection is stopping'))
      await running?.done
      running = undefined
    },
    /** The status of each chain with contracts, in the order of the configuration. */
    status: () => followers.map((follower) => follower.status()),
    /**
     * Attaches payments that were made before their requests were stored. Call it after the requests are committed, also with those that were stored
     * before. Resolves when the payments are attached, or when a chain does not answer soon: then they are attached later.
     */
    onRequestsStored: (account: Account, requests: readonly PaymentRequest[]) =>
      replays.add(account.id, requests.flatMap(topicsOf)),
    /**
     * Removes what was detected on a chain above a block, final or not, and reads the chain anew from there. This repairs a chain that was stopped
     * because a final block was replaced, and ends its alarm.
     *
     * @param beforehand - called before anything is removed, when nothing can prevent it any more and no other process follows the chain
     * @throws RangeError for an unknown chain or block; RpcError; ChainFollowedError
     */
    async restartFrom(network: string, block: number, beforehand?: () => Promise<void>): Promise<void> {
      await followerOf(network).restartFrom(block, beforehand)
    },
    /**
     * Accepts an unmatched event of a chain as a payment or a refund.
     *
     * @throws NotAcceptableError; RangeError for a chain that is not followed; RpcError
     */
    accept: async (network: string, decision: Parameters<typeof acceptEvent>[2], signal?: AbortSignal) =>
      acceptEvent(knex, followerOf(network).chain, decision, signal),
    /** Withdraws an acceptance. @throws as `accept` */
    unaccept: async (network: string, decision: Parameters<typeof unacceptEvent>[2], signal?: AbortSignal) =>
      unacceptEvent(knex, followerOf(network).chain, decision, signal),
    /** When the list of a chain's oracle last changed, as far as the chain was read. @param chainId - EIP-155 */
    listChangedAt: async (chainId: number) => (await findChain(knex, caip2Of(chainId)))?.listChangedAt,
    /** Looks up once what was not known of payments and is due: prices, gas, traces. @throws errors of the database */
    enrichOnce: () => enrichments.drain(),
    /** Reads one chain, or all of them, until there is nothing new. @throws what reading a chain throws */
    async scanOnce(network?: string): Promise<void> {
      const chosen = followers.filter((follower) => network === undefined || follower.network === network)
      for (const follower of chosen) await follower.scan()
      await replays.drain()
      await keeper.store()
    },
  }
}

/** The topics that events of a request's payments and refunds can have. */
function topicsOf(request: PaymentRequest): Hex[] {
  const { requestId, salt, paymentReference, refundAddress } = request
  const refundReference = refundAddress === undefined ? undefined : paymentReferenceOf(requestId, salt, refundAddress)
  return [paymentReference, refundReference].filter((each) => each !== undefined).map(topicOfReference)
}
