import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { DailyBudget } from '../../nodes/daily-budget.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { repeat } from '../repair/due-queue.ts'
import { addUse, readUses, type StoredUrl } from './sql/budgets-repository.ts'

interface BudgetKeeperOptions {
  readonly knex: Knex
  readonly chains: readonly Pick<ChainConfig, 'chainId' | 'rpcUrls'>[]
  readonly limits: NodeLimits
  readonly logger: Pick<Logger, 'warn'>
}

/** Together, processes may overspend a budget by what they send in this time. */
const STORE_EVERY_MS = 5_000

/** A URL with a daily budget. */
interface KeptUrl extends StoredUrl {
  readonly budget: DailyBudget
}

/**
 * Makes what keeps in the database what was spent of daily budgets, so that all processes on the database share them. Nothing here throws: if it fails,
 * the process counts only what it spends itself.
 */
export function createBudgetKeeper({ knex, chains, limits, logger }: BudgetKeeperOptions) {
  const urls = chains.flatMap(({ chainId, rpcUrls }) =>
    rpcUrls.flatMap((url): KeptUrl[] => {
      const { budget, host } = limits.of(url)
      return budget === undefined ? [] : [{ chainId: caip2Of(chainId), urlHash: hashOf(url), host, budget }]
    }),
  )
  /** Whether the last attempt failed. The log says so once. */
  let isFailing = false

  async function storeAll(): Promise<void> {
    if (urls.length === 0) return
    for (const url of urls) await storeUse(knex, url)
    for (const { chainId, urlHash, ...use } of await readUses(knex, [...new Set(urls.map((url) => url.chainId))])) {
      urls.find((url) => url.chainId === chainId && url.urlHash === urlHash)?.budget.recall(use)
    }
  }

  /** Stores what was spent, and reads what all processes have spent. */
  async function store(): Promise<void> {
    try {
      await storeAll()
      isFailing = false
    } catch (err) {
      const text = 'daily budgets of nodes are not kept in the database; this process counts only its own calls'
      if (!isFailing) logger.warn({ err }, text)
      isFailing = true
    }
  }

  return {
    store,
    /** Stores every few seconds until the signal fires, and once more then. */
    run: (signal: AbortSignal): Promise<void> => repeat(store, { everyMs: STORE_EVERY_MS, signal }).then(store),
  }
}

function hashOf(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32)
}

async function storeUse(knex: Knex, url: KeptUrl): Promise<void> {
  const use = url.budget.takeUnstored()
  if (use === undefined) return
  try {
    await addUse(knex, url, use)
  } catch (error) {
    url.budget.giveBack(use)
    throw error
  }
}
