import type { Listener } from '../../src/api/listener/listener.ts'
import { composeService, type ListenOptions, type Service } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import type { Scope } from '../../src/auth/rules/api-key.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { startTestChain, type TestChain } from './chains/chain.ts'
import { createTestDatabase, type TestDatabase } from './data/database.ts'
import { type LogRecorder, recordLogs } from './logs.ts'

/** The whole service with its own database and chain, listening, with API keys of several kinds. */
export interface TestService {
  readonly url: string
  readonly port: number
  readonly service: Service
  readonly database: TestDatabase
  readonly chain: TestChain
  readonly logs: LogRecorder
  readonly keys: TestKeys
  /** Starts another listener with other limits; `stop` stops it too. */
  listen(limits: NonNullable<ListenOptions['limits']>): Promise<Listener>
  stop(): Promise<void>
}

/**
 * `shop`, `other` and `nobody` are accounts whose keys have every scope that an account's key may have; `nobody` owns nothing. `operator` is an
 * operator's key.
 */
export type TestKeys = Readonly<
  Record<'shop' | 'other' | 'nobody' | 'writeOnly' | 'platform' | 'platformReader' | 'operator', string>
>

export const EVERY_SCOPE = [
  'routes:read',
  'payments:read',
  'requests:read',
  'requests:write',
  'webhooks:write',
  'keys:write',
  'chains:read',
] as const

const keyTerms: Readonly<Record<keyof TestKeys, { account: string; scopes: readonly Scope[] }>> = {
  shop: { account: 'shop', scopes: EVERY_SCOPE },
  other: { account: 'other', scopes: EVERY_SCOPE },
  nobody: { account: 'nobody', scopes: EVERY_SCOPE },
  writeOnly: { account: 'shop', scopes: ['requests:write'] },
  platform: { account: 'platform', scopes: [...EVERY_SCOPE, 'operations:read', 'accounts:any'] },
  platformReader: { account: 'platform', scopes: ['accounts:any', 'payments:read'] },
  operator: { account: 'ops', scopes: ['chains:read', 'operations:read'] },
}

/** The clock of every test service stands still at this time, so that the same call has the same answer. */
export const NOW = new Date('2026-03-01T12:00:00.000Z')

/**
 * Starts a service on one chain, ETHEREUM, with finality at a depth of 3 and a genesis at {@link NOW}. Detection does not run by itself: a
 * test calls `service.detection.scanOnce()` after a payment.
 *
 * @param openDatabase - a migrated one; its `knex` is the service's pool
 */
export async function startTestService(openDatabase = () => createTestDatabase()): Promise<TestService> {
  const [database, chain] = await Promise.all([
    openDatabase(),
    startTestChain({ genesisTimeSec: NOW.getTime() / 1000, baseFeePerGas: 8_000_000_000n }),
  ])
  const logs = recordLogs()
  const { knex } = database
  const service = await composeService({
    knex,
    chains: [chain.config({ name: 'ETHEREUM', finalityDepth: 3 })],
    logger: logs,
    now: () => NOW,
    openCallsPerMinute: 0,
  })
  const keys = await issueKeys(knex)
  const listeners: Listener[] = []
  const listen = async (limits: NonNullable<ListenOptions['limits']>) => {
    const listener = await service.listen({ host: '127.0.0.1', port: 0, limits })
    listeners.push(listener)
    return listener
  }
  const { url, port } = await listen({})
  return {
    url,
    port,
    service,
    database,
    chain,
    logs,
    keys,
    listen,
    async stop() {
      await Promise.all(listeners.map((listener) => listener.stop({ graceMs: 0 })))
      await Promise.all([chain.stop(), database.drop()])
    },
  }
}

async function issueKeys(knex: TestDatabase['knex']): Promise<TestKeys> {
  const repository = createApiKeyRepository(knex)
  const issued: [string, string][] = []
  for (const [name, terms] of Object.entries(keyTerms)) {
    const { key } = await issueApiKey(repository, { ...terms, now: NOW, callsPerMinute: 0 })
    issued.push([name, key])
  }
  return Object.fromEntries(issued) as TestKeys
}
