import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { NodeLimits, UrlLimits } from '../../nodes/node-limits.ts'
import {
  addUse,
  readNodeLimits,
  type StoredLimits,
  type StoredUrl,
  writeLearned,
} from './sql/node-limits-repository.ts'

export interface LimitsKeeperOptions {
  readonly knex: Knex
  readonly chains: readonly Pick<ChainConfig, 'chainId' | 'rpcUrls'>[]
  readonly limits: NodeLimits
  readonly logger: Pick<Logger, 'warn'>
  /** Who may hold the leases on following the chains. Absent: this process follows none, so it stores nothing that it learned. */
  readonly owner?: string | undefined
}

/** Together, processes may overspend a budget by what they send in this time. */
const STORE_EVERY_MS = 5_000

/** A URL of the configuration. */
interface KeptUrl extends StoredUrl {
  readonly limits: UrlLimits
  /** What was stored last, as JSON. */
  written: string | undefined
}

/**
 * Makes what keeps in the database what is known of the limits of all configured URLs: what was learned, so that a restart does not learn it again, and
 * what was spent of daily budgets, so that all processes on the database share them. Nothing here throws: if it fails, the process learns again, and
 * counts only what it spends itself.
 */
export function createLimitsKeeper({ knex, chains, limits, logger, owner }: LimitsKeeperOptions) {
  const urls = chains.flatMap(({ chainId, rpcUrls }) =>
    rpcUrls.map((url): KeptUrl => {
      const { host } = new URL(url)
      return { chainId: caip2Of(chainId), urlHash: hashOf(url), host, limits: limits.of(url), written: undefined }
    }),
  )
  const counted = urls.filter((url) => url.limits.budget !== undefined)
  /** Whether the last attempt failed. The log says so once. */
  let isFailing = false

  async function quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work()
      isFailing = false
    } catch (err) {
      const text = 'limits of nodes are not kept in the database; they are learned again after a restart'
      if (!isFailing) logger.warn({ err }, text)
      isFailing = true
    }
  }

  async function recall(wanted: readonly KeptUrl[]): Promise<void> {
    for (const [url, stored] of await readStored(knex, wanted)) {
      recallUse(url, stored)
      const { learned } = stored
      if (learned?.learnedUnder === conditionsOf(url.limits)) url.limits.recall(learned)
    }
  }

  async function storeAll(): Promise<void> {
    for (const url of counted) await storeUse(knex, url)
    for (const [url, stored] of await readStored(knex, counted)) recallUse(url, stored)
    if (owner !== undefined) for (const url of urls) await storeLearned(knex, owner, url)
  }

  const store = () => quietly(storeAll)
  return {
    /** Continues from what is stored. @param chainId - CAIP-2; all chains where absent */
    recall: (chainId?: string) =>
      quietly(() => recall(urls.filter((url) => chainId === undefined || url.chainId === chainId))),
    /** Stores what was spent and, of chains that this process follows, what was learned; reads what other processes have spent. */
    store,
    /** Stores every few seconds. @returns a function that stores once more and ends it */
    start() {
      let storing: Promise<void> | undefined
      const timer = setInterval(() => {
        storing ??= store().finally(() => {
          storing = undefined
        })
      }, STORE_EVERY_MS)
      return async () => {
        clearInterval(timer)
        await storing
        await store()
      }
    },
  }
}

function hashOf(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32)
}

function recallUse({ limits }: KeptUrl, { day, used }: StoredLimits): void {
  if (day !== null) limits.budget?.recall({ day, amount: used })
}

async function storeUse(knex: Knex, url: KeptUrl): Promise<void> {
  const { budget } = url.limits
  const use = budget?.takeUnstored()
  if (use === undefined) return
  try {
    await addUse(knex, url, use)
  } catch (error) {
    budget?.giveBack(use)
    throw error
  }
}

async function storeLearned(knex: Knex, owner: string, url: KeptUrl): Promise<void> {
  const { limits, chainId } = url
  const learned = limits.learned()
  const isNothing = Object.values(learned).every((each) => each === undefined)
  // A limit that no longer holds has to be removed from the row.
  if (isNothing && url.written === undefined) return
  const text = JSON.stringify({ ...learned, learnedUnder: conditionsOf(limits) } satisfies StoredLimits['learned'])
  if (text === url.written) return
  if (await writeLearned(knex, { name: `follow:${chainId}`, owner }, url, text)) url.written = text
}

/** Changes with `LearnedLimits`. */
const FORM = 2

/** What has to be as it was while limits were learned: the form in which they are stored, and what the chains file says, which else is to be tried. */
function conditionsOf({ declared }: UrlLimits): string {
  const { requestsPerSecond, maxLogRange, maxBatch } = declared
  return JSON.stringify([FORM, requestsPerSecond, maxLogRange, maxBatch])
}

/** Those of the URLs of which something is stored, with that. */
async function readStored(knex: Knex, urls: readonly KeptUrl[]): Promise<[KeptUrl, StoredLimits][]> {
  if (urls.length === 0) return []
  const rows = await readNodeLimits(knex, [...new Set(urls.map(({ chainId }) => chainId))])
  const byKey = new Map(rows.map((row) => [`${row.chainId} ${row.urlHash}`, row]))
  return urls.flatMap((url): [KeptUrl, StoredLimits][] => {
    const row = byKey.get(`${url.chainId} ${url.urlHash}`)
    return row === undefined ? [] : [[url, row]]
  })
}
