import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { LearnedLimits, NodeLimits, UrlLimits } from '../../nodes/node-limits.ts'
import {
  addUse,
  readNodeLimits,
  type StoredLimits,
  type StoredUrl,
  writeLearned,
} from './sql/node-limits-repository.ts'

/**
 * Keeps in the database what is known of the nodes' limits: what was learned, so that a restart does not learn it again, and what was spent of
 * daily budgets, so that all processes on the database share them. Nothing here throws: if it fails, the process learns again, and counts only
 * what it spends itself.
 */
export interface LimitsKeeper {
  /** Continues from what is stored. @param chainId - CAIP-2; all chains where absent */
  readonly recall: (chainId?: string) => Promise<void>
  /** Stores what was spent and, of chains that this process follows, what was learned; reads what other processes have spent. */
  store(): Promise<void>
  /** Stores every few seconds. @returns a function that stores once more and ends it */
  start(): () => Promise<void>
}

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

interface Keeper extends LimitsKeeperOptions {
  readonly urls: readonly KeptUrl[]
  /** Whether the last attempt failed. The log says so once. */
  isFailing: boolean
}

/** Makes the keeper of the limits of all configured URLs. Does nothing until it is asked. */
export function createLimitsKeeper(options: LimitsKeeperOptions): LimitsKeeper {
  const { chains, limits } = options
  const urls = chains.flatMap(({ chainId, rpcUrls }) =>
    rpcUrls.map((url): KeptUrl => {
      const { host } = new URL(url)
      return { chainId: caip2Of(chainId), urlHash: hashOf(url), host, limits: limits.of(url), written: undefined }
    }),
  )
  const keeper: Keeper = { ...options, urls, isFailing: false }
  const store = () => quietly(keeper, () => storeAll(keeper))
  return {
    recall: (chainId) => quietly(keeper, () => recallAll(keeper, chainId)),
    store,
    start: () => startStoring(store),
  }
}

function hashOf(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32)
}

function startStoring(store: () => Promise<void>): () => Promise<void> {
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
}

async function quietly(keeper: Keeper, work: () => Promise<void>): Promise<void> {
  try {
    await work()
    keeper.isFailing = false
  } catch (err) {
    if (!keeper.isFailing) {
      keeper.logger.warn(
        { err },
        'limits of nodes are not kept in the database; they are learned again after a restart',
      )
    }
    keeper.isFailing = true
  }
}

async function recallAll({ knex, urls }: Keeper, chainId: string | undefined): Promise<void> {
  const wanted = urls.filter((url) => chainId === undefined || url.chainId === chainId)
  for (const [url, stored] of pairsOf(wanted, await readNodeLimits(knex, chainsOf(wanted)))) {
    recallUse(url, stored)
    const { learned } = stored
    if (learned?.learnedUnder === conditionsOf(url.limits)) url.limits.recall(learned)
  }
}

function recallUse({ limits }: KeptUrl, { day, used }: StoredLimits): void {
  if (day !== null) limits.budget?.recall({ day, amount: used })
}

async function storeAll(keeper: Keeper): Promise<void> {
  const { knex, urls } = keeper
  const counted = urls.filter(({ limits }) => limits.budget !== undefined)
  for (const url of counted) await storeUse(keeper, url)
  if (counted.length > 0) {
    for (const [url, stored] of pairsOf(counted, await readNodeLimits(knex, chainsOf(counted)))) recallUse(url, stored)
  }
  for (const url of urls) await storeLearned(keeper, url)
}

async function storeUse({ knex }: Keeper, url: KeptUrl): Promise<void> {
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

async function storeLearned({ knex, owner }: Keeper, url: KeptUrl): Promise<void> {
  const { limits, chainId } = url
  const learned = limits.learned()
  // A limit that no longer holds has to be removed from the row.
  if (owner === undefined || (isNothing(learned) && url.written === undefined)) return
  const text = JSON.stringify({ ...learned, learnedUnder: conditionsOf(limits) } satisfies StoredLimits['learned'])
  if (text === url.written) return
  if (await writeLearned(knex, { name: `follow:${chainId}`, owner }, url, text)) url.written = text
}

function isNothing(learned: LearnedLimits): boolean {
  return Object.values(learned).every((each) => each === undefined)
}

/** Changes with `LearnedLimits`. */
const FORM = 2

/** What has to be as it was while limits were learned: the form in which they are stored, and what the chains file says, which else is to be tried. */
function conditionsOf({ declared }: UrlLimits): string {
  const { requestsPerSecond, maxLogRange, maxBatch } = declared
  return JSON.stringify([FORM, requestsPerSecond, maxLogRange, maxBatch])
}

function chainsOf(urls: readonly KeptUrl[]): string[] {
  return [...new Set(urls.map(({ chainId }) => chainId))]
}

function pairsOf(urls: readonly KeptUrl[], rows: readonly StoredLimits[]): [KeptUrl, StoredLimits][] {
  const byKey = new Map(rows.map((row) => [`${row.chainId} ${row.urlHash}`, row]))
  return urls.flatMap((url): [KeptUrl, StoredLimits][] => {
    const row = byKey.get(`${url.chainId} ${url.urlHash}`)
    return row === undefined ? [] : [[url, row]]
  })
}
