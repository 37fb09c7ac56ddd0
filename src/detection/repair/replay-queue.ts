import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import { isLogDue } from '../../domain/logger.ts'
import type { OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { Findings } from '../match/detected.ts'
import {
  addPendingReplays,
  deleteReplays,
  findReplays,
  type KnownTopic,
  nextReplays,
  type PendingReplay,
} from '../sql/pending-replays-repository.ts'
import { replayTopics } from './correct-requests.ts'
import { repeat } from './due-queue.ts'

export type ReplayQueue = ReturnType<typeof createReplayQueue>

const POLL_EVERY_MS = 1_000
/** Storing a request waits at most this long for the nodes of a chain. */
const FIRST_ATTEMPT_MS = 3_000
const LATER_ATTEMPT_MS = 60_000
/** Requests that are stored together are replayed together, this many topics at a time. */
const TOPICS_AN_ATTEMPT = 500
const REPLAYS_A_PAGE = 2_000

type QueueOptions = Pick<OpenChainOptions, 'knex' | 'repository' | 'logger'>

/** The queue of this process. */
interface Queue extends QueueOptions {
  /** By CAIP-2. */
  readonly chains: Map<string, OpenChain>
  /** Replays that are running in this process; each promise resolves when its replay has ended. */
  readonly busy: Map<string, Promise<void>>
  warnedAtMs: number | undefined
}

/** Makes the queue of one process. It replays the topics that are pending for accounts, and again when a chain did not answer. The entries are in the database. */
export function createReplayQueue(options: QueueOptions) {
  const queue: Queue = { ...options, chains: new Map(), busy: new Map(), warnedAtMs: undefined }
  const { knex, repository } = options
  return {
    /** @param chainId - CAIP-2 */
    addChain: (chainId: string, chain: OpenChain) => void queue.chains.set(chainId, chain),
    /** Replays at once those of the topics that are pending. A failure is logged, not thrown: the topics stay pending. */
    async add(accountId: number, topics: readonly Hex[]): Promise<void> {
      try {
        await attemptAll(queue, await findReplays(knex, accountId, topics), { timeoutMs: FIRST_ATTEMPT_MS })
      } catch (error) {
        warn(queue, error)
      }
    },
    /** Adds topics that accounts came to know while events of them were being matched and stored; `run` replays them. */
    async recheck({ directory, accounts, unmatched }: Findings): Promise<void> {
      if (accounts.size === 0 && unmatched.length === 0) return
      const topics = new Set([...directory.keys(), ...unmatched.map(({ topic }) => topic)])
      await enqueue(queue, [...topics], directory)
    },
    /** Adds topics of a chain that no account knew when their events were read, and that one knows now; `run` replays them. */
    async sweep(chainId: string): Promise<void> {
      await enqueue(queue, await repository.claimedTopics(chainId), new Map())
    },
    /** Replays what is pending, once. */
    drain: () => drain(queue, undefined),
    /** Replays what is pending until the signal fires. */
    run(signal: AbortSignal): Promise<void> {
      const onError = (error: unknown) => warn(queue, error)
      return repeat(() => drain(queue, signal), { everyMs: POLL_EVERY_MS, onError, signal })
    },
  }
}

interface Attempt {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

async function attemptAll(queue: Queue, replays: readonly PendingReplay[], how: Attempt): Promise<void> {
  for (const [accountId, own] of Map.groupBy(replays, (replay) => replay.accountId)) {
    for (const some of chunksOf(own, TOPICS_AN_ATTEMPT)) {
      if (how.signal?.aborted) return
      await attempt(queue, accountId, some, how)
    }
  }
}

async function attempt(
  queue: Queue,
  accountId: number,
  replays: readonly PendingReplay[],
  { timeoutMs, signal }: Attempt,
): Promise<void> {
  const { knex, repository, chains, busy } = queue
  const topics = replays.map(({ topic }) => topic)
  const limit = AbortSignal.timeout(timeoutMs)
  const ended = Promise.withResolvers<void>()
  for (const replay of replays) busy.set(keyOf(replay), ended.promise)
  try {
    const ending = signal === undefined ? limit : AbortSignal.any([limit, signal])
    await repository.wantPayments(accountId, topics)
    const again = new Set(replays.flatMap((replay) => (replay.again ? [replay.topic] : [])))
    await replayTopics(repository, chains, { accountId, topics, again, signal: ending })
    await deleteReplays(knex, replays)
  } catch (error) {
    if (!signal?.aborted) warn(queue, error, topics)
  } finally {
    for (const replay of replays) busy.delete(keyOf(replay))
    ended.resolve()
  }
}

function keyOf({ accountId, topic }: KnownTopic): string {
  return `${accountId} ${topic}`
}

function warn(queue: Queue, error: unknown, topics?: readonly Hex[]): void {
  if (!isLogDue(queue.warnedAtMs, performance.now())) return
  queue.warnedAtMs = performance.now()
  queue.logger.warn({ err: error, topics }, 'earlier payments of requests could not be read; they will be tried again')
}

/** Only adds entries: the follower of a chain must not wait for receipts or for other chains. */
async function enqueue(
  queue: Queue,
  topics: readonly Hex[],
  known: ReadonlyMap<Hex, readonly number[]>,
): Promise<void> {
  const { knex, repository } = queue
  await addPendingReplays(knex, newlyKnown(await repository.accountsOfTopics(topics), known), false)
}

/**
 * Pairs of topic and account that were not known when the events were matched.
 *
 * @param now - the accounts that know each topic now
 * @param before - the accounts that knew each topic then
 */
export function newlyKnown(
  now: ReadonlyMap<Hex, readonly number[]>,
  before: ReadonlyMap<Hex, readonly number[]>,
): KnownTopic[] {
  const pairs = [...now].flatMap(([topic, ids]) => ids.map((accountId) => ({ accountId, topic })))
  return pairs.filter(({ accountId, topic }) => !before.get(topic)?.includes(accountId))
}

/** Replays page by page. A topic whose replay is running may have been added anew since that began, so it is waited for and replayed here. */
async function drain(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
  const { knex, busy } = queue
  for (let after = 0; ; ) {
    if (signal?.aborted) return
    const page = await nextReplays(knex, after, REPLAYS_A_PAGE)
    const last = page.at(-1)
    if (last === undefined) return
    const running = page.flatMap((replay) => busy.get(keyOf(replay)) ?? [])
    const idle = page.filter((replay) => !busy.has(keyOf(replay)))
    await attemptAll(queue, await withVisibleRequests(queue, idle), { timeoutMs: LATER_ATTEMPT_MS, signal })
    await Promise.all(running)
    if (running.length === 0) after = last.note
  }
}

/**
 * Leaves out topics whose request or directory entry cannot be read yet; they stay pending. The transaction that stores a request adds its topics,
 * and where accounts are sharded its part on the coordinator is visible a moment before those on the workers.
 */
async function withVisibleRequests(
  { repository }: Queue,
  replays: readonly PendingReplay[],
): Promise<readonly PendingReplay[]> {
  if (replays.length === 0) return replays
  const directory = await repository.accountsOfTopics([...new Set(replays.map(({ topic }) => topic))])
  const visible: PendingReplay[] = []
  for (const [accountId, own] of Map.groupBy(replays, (replay) => replay.accountId)) {
    const requests = await repository.requestsOfTopics(
      accountId,
      own.map(({ topic }) => topic),
    )
    const topics = new Set(requests.flatMap(({ topic, refundTopic }) => [topic, refundTopic ?? topic]))
    visible.push(...own.filter(({ topic }) => topics.has(topic) && directory.get(topic)?.includes(accountId)))
  }
  return visible
}
