import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from '../domain/hex.ts'
import type { Logger } from '../domain/logger.ts'
import type { Findings } from './detected.ts'
import type { DetectionRepository } from './detection-repository.ts'
import { type ReplayChain, replayTopics } from './replay.ts'

/** Topics that are looked at again for an account, and again when a chain did not answer. */
export interface ReplayQueue {
  addChain(chainId: string, chain: ReplayChain): void
  /** Looks again now; what fails is kept for later and logged, not thrown. */
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

interface Waiting {
  readonly accountId: number
  readonly topic: Hex
}

const keyOf = (accountId: number, topic: Hex) => `${accountId} ${topic}`

/** Makes an empty queue. */
export function createReplayQueue(options: {
  readonly repository: DetectionRepository
  readonly logger: Logger
}): ReplayQueue {
  const { repository, logger } = options
  const chains = new Map<string, ReplayChain>()
  const waiting = new Map<string, Waiting>()
  let woken = Promise.withResolvers<void>()
  let saidAtMs = Number.NEGATIVE_INFINITY

  async function attempt(accountId: number, topics: readonly Hex[], signal?: AbortSignal): Promise<void> {
    const isLater = topics.every((topic) => waiting.has(keyOf(accountId, topic)))
    for (const topic of topics) waiting.set(keyOf(accountId, topic), { accountId, topic })
    const limit = AbortSignal.timeout(isLater ? LATER_ATTEMPT_MS : FIRST_ATTEMPT_MS)
    try {
      const ending = signal === undefined ? limit : AbortSignal.any([limit, signal])
      await replayTopics(repository, chains, { accountId, topics }, ending)
      for (const topic of topics) waiting.delete(keyOf(accountId, topic))
    } catch (error) {
      if (signal?.aborted || performance.now() - saidAtMs < SAY_AGAIN_MS) return
      saidAtMs = performance.now()
      logger.warn({ err: error, topics }, 'earlier payments of requests could not be read; they will be tried again')
    }
  }

  async function add(accountId: number, topics: readonly Hex[], signal?: AbortSignal): Promise<void> {
    for (let from = 0; from < topics.length; from += TOPICS_AN_ATTEMPT) {
      await attempt(accountId, topics.slice(from, from + TOPICS_AN_ATTEMPT), signal)
    }
  }

  async function addAll(pairs: readonly Waiting[], signal?: AbortSignal): Promise<void> {
    for (const [accountId, own] of Map.groupBy(pairs, (pair) => pair.accountId)) {
      await add(
        accountId,
        own.map(({ topic }) => topic),
        signal,
      )
    }
  }

  /** The follower of a chain must not wait for other chains, nor for receipts: it only says what is to be looked at. */
  async function enqueue(topics: readonly Hex[], known: ReadonlyMap<Hex, readonly number[]>): Promise<void> {
    const accounts = await repository.accountsOfTopics(topics)
    const pairs = [...accounts].flatMap(([topic, ids]) => ids.map((accountId) => ({ accountId, topic })))
    const fresh = pairs.filter(({ accountId, topic }) => !known.get(topic)?.includes(accountId))
    for (const pair of fresh) waiting.set(keyOf(pair.accountId, pair.topic), pair)
    if (fresh.length > 0) woken.resolve()
  }

  async function drain(signal?: AbortSignal): Promise<void> {
    await addAll([...waiting.values()], signal)
  }

  return {
    addChain: (chainId, chain) => void chains.set(chainId, chain),
    add,
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
        await drain(signal)
      }
    },
  }
}
