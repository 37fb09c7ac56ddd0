import type { Knex } from 'knex'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { distributeTables, planDistribution } from '../../src/postgres/sharding/distribute.ts'
import { readCluster } from '../../src/postgres/sharding/read-cluster.ts'
import type { GeneratorTerms } from '../search/generate-payments.ts'
import { loadPayments } from '../search/load-payments.ts'

/** A database with the payments of the bench. */
export interface OpenPlace {
  readonly url: string
  readonly knex: Knex
  /** Nodes with shards; 0 on one server. */
  readonly workers: number
}

interface PlaceTerms extends GeneratorTerms {
  readonly say: (text: string) => void
}

/** Fills an empty database, and shards it where it is on a Citus coordinator. */
export async function openPlace(
  url: string,
  { rows, seed, say }: PlaceTerms,
  stack: AsyncDisposableStack,
): Promise<OpenPlace> {
  const knex = stack.adopt(createDatabase(url, { poolMax: 8 }), (pool) => pool.destroy())
  const workers = (await readCluster(knex))?.shardNodes.length ?? 0
  const place = { url, knex, workers }
  say(`filling ${describePlace(place)}`)
  await migrate(knex)
  await loadPayments({ knex, rows, seed, say: () => {} })
  if (workers > 0) {
    const startedMs = performance.now()
    const events = { onWaiting: () => {}, onTable: () => {} }
    await distributeTables(knex, await planDistribution(knex, undefined), events, undefined)
    say(`${describePlace(place)}: sharded in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`)
  }
  return place
}

export function describePlace({ workers }: OpenPlace): string {
  if (workers === 0) return 'one server'
  return workers === 1 ? '1 worker' : `${workers} workers`
}
