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
  /** Looks again for accounts that came to know a topic while events of it were found and stored. */
  recheck(findings: Findings): Promise<void>
  /** Looks again at topics of a chain that were unknown when they were seen and are known now. */
  sweep(chainId: string): Promise<void>
  /** Tries what is left over until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

const RETRY_EVERY_MS = 2_000
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

  async function attempt(accountId: number, topics: readonly Hex[], signal?: AbortSignal): Promise<void> {
    const isLater = topics.every((topic) => waiting.has(keyOf(accountId, topic)))
    for (const topic of topics) waiting.set(keyOf(accountId, topic), { accountId, topic })
    const limit = AbortSignal.timeout(isLater ? LATER_ATTEMPT_MS : FIRST_ATTEMPT_MS)
    try {
      const ending = signal === undefined ? limit : AbortSignal.any([limit, signal])
      await replayTopics(repository, chains, { accountId, topics }, ending)
      for (const topic of topics) waiting.delete(keyOf(accountId, topic))
    } catch (error) {
      if (isLater || signal?.aborted) return
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

  async function replayForAll(topics: readonly Hex[], known: ReadonlyMap<Hex, readonly number[]>): Promise<void> {
    const accounts = await repository.accountsOfTopics(topics)
    const pairs = [...accounts].flatMap(([topic, ids]) => ids.map((accountId) => ({ accountId, topic })))
    await addAll(pairs.filter(({ accountId, topic }) => !known.get(topic)?.includes(accountId)))
  }

  return {
    addChain: (chainId, chain) => void chains.set(chainId, chain),
    add,
    async recheck({ directory, accounts, unmatched }) {
      if (accounts.size === 0 && unmatched.length === 0) return
      const topics = new Set([...directory.keys(), ...unmatched.map(({ topic }) => topic)])
      await replayForAll([...topics], directory)
    },
    async sweep(chainId) {
      await replayForAll(await repository.claimedTopics(chainId), new Map())
    },
    async run(signal) {
      while (!signal.aborted) {
        await sleep(RETRY_EVERY_MS, undefined, { signal }).catch(() => {})
        await addAll([...waiting.values()], signal)
      }
    },
  }
}
