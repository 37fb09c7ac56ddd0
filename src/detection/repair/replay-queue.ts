import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Findings } from '../match/detected.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { KnownTopic, PendingReplay, PendingReplays } from '../sql/pending-replays-repository.ts'
import { type ReplayChain, replayTopics } from './replay.ts'

/** Topics that are looked at again for an account, and again when a chain did not answer. What is left is in the database. */
export interface ReplayQueue {
  addChain(chainId: string, chain: ReplayChain): void
  /** Looks again now at those of the topics that are pending; what fails is kept for later and logged, not thrown. */
  add(accountId: number, topics: readonly Hex[]): Promise<void>
  /** Has `run` look again for accounts that came to know a topic while events of it were found and stored. */
  recheck(findings: Findings): Promise<void>
  /** Has `run` look again at topics of a chain that were unknown when they were seen and are known now. */
  sweep(chainId: string): Promise<void>
  /** Tries what is left over, once. */
  drain(signal?: AbortSignal): Promise<void>
  /** Tries what is left over until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

const RETRY_EVERY_MS = 2_000
const SAY_AGAIN_MS = 60_000
/** Whoever stores a request waits this long for a chain, and no longer. */
const FIRST_ATTEMPT_MS = 3_000
const LATER_ATTEMPT_MS = 60_000
/** Requests that are stored together are looked at together, so many at a time. */
const TOPICS_AN_ATTEMPT = 500
const REPLAYS_A_PAGE = 2_000

const keyOf = ({ accountId, topic }: KnownTopic) => `${accountId} ${topic}`

interface Attempt {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Makes the queue of what is pending. */
export function createReplayQueue(options: {
  readonly repository: DetectionRepository
  readonly pending: PendingReplays
  readonly logger: Logger
}): ReplayQueue {
  const { repository, pending, logger } = options
  const chains = new Map<string, ReplayChain>()
  /** What is being looked at, and when that look has ended. */
  const busy = new Map<string, Promise<void>>()
  let woken = Promise.withResolvers<void>()
  let saidAtMs = Number.NEGATIVE_INFINITY

  function warn(error: unknown, topics?: readonly Hex[]): void {
    if (performance.now() - saidAtMs < SAY_AGAIN_MS) return
    saidAtMs = performance.now()
    logger.warn({ err: error, topics }, 'earlier payments of requests could not be read; they will be tried again')
  }

  async function attempt(accountId: number, replays: readonly PendingReplay[], { timeoutMs, signal }: Attempt) {
    const topics = replays.map(({ topic }) => topic)
    const limit = AbortSignal.timeout(timeoutMs)
    const ended = Promise.withResolvers<void>()
    for (const replay of replays) busy.set(keyOf(replay), ended.promise)
    try {
      const ending = signal === undefined ? limit : AbortSignal.any([limit, signal])
      await replayTopics(repository, chains, { accountId, topics }, ending)
      await pending.done(replays)
    } catch (error) {
      if (!signal?.aborted) warn(error, topics)
    } finally {
      for (const replay of replays) busy.delete(keyOf(replay))
      ended.resolve()
    }
  }

  async function attemptAll(replays: readonly PendingReplay[], how: Attempt): Promise<void> {
    for (const [accountId, own] of Map.groupBy(replays, (replay) => replay.accountId)) {
      for (let from = 0; from < own.length; from += TOPICS_AN_ATTEMPT) {
        if (how.signal?.aborted) return
        await attempt(accountId, own.slice(from, from + TOPICS_AN_ATTEMPT), how)
      }
    }
  }

  /** The follower of a chain must not wait for other chains, nor for receipts: it only says what is to be looked at. */
  async function enqueue(topics: readonly Hex[], known: ReadonlyMap<Hex, readonly number[]>): Promise<void> {
    const accounts = await repository.accountsOfTopics(topics)
    const pairs = [...accounts].flatMap(([topic, ids]) => ids.map((accountId) => ({ accountId, topic })))
    const fresh = pairs.filter(({ accountId, topic }) => !known.get(topic)?.includes(accountId))
    await pending.add(fresh)
    if (fresh.length > 0) woken.resolve()
  }

  /** What another is looking at may have been noted anew after that look began, so it is waited for and then looked at here. */
  async function drain(signal?: AbortSignal): Promise<void> {
    for (let behind = 0n; ; ) {
      if (signal?.aborted) return
      const some = await pending.next(behind, REPLAYS_A_PAGE)
      const last = some.at(-1)
      if (last === undefined) return
      const looks = some.flatMap((replay) => busy.get(keyOf(replay)) ?? [])
      const idle = some.filter((replay) => !busy.has(keyOf(replay)))
      await attemptAll(idle, { timeoutMs: LATER_ATTEMPT_MS, signal })
      await Promise.all(looks)
      if (looks.length === 0) behind = last.note
    }
  }

  return {
    addChain: (chainId, chain) => void chains.set(chainId, chain),
    async add(accountId, topics) {
      try {
        await attemptAll(await pending.ofAccount(accountId, topics), { timeoutMs: FIRST_ATTEMPT_MS })
      } catch (error) {
        warn(error)
      }
    },
    async recheck({ directory, accounts, unmatched }) {
      if (accounts.size === 0 && unmatched.length === 0) return
      const topics = new Set([...directory.keys(), ...unmatched.map(({ topic }) => topic)])
      await enqueue([...topics], directory)
    },
    async sweep(chainId) {
      await enqueue(await repository.claimedTopics(chainId), new Map())
    },
    drain,
    async run(signal) {
      while (!signal.aborted) {
        const pause = new AbortController()
        const due = sleep(RETRY_EVERY_MS, undefined, { signal: AbortSignal.any([signal, pause.signal]) })
        await Promise.race([due, woken.promise]).catch(() => {})
        pause.abort()
        await due.catch(() => {})
        woken = Promise.withResolvers()
        await drain(signal).catch((error: unknown) => signal.aborted || warn(error))
      }
    },
  }
}
