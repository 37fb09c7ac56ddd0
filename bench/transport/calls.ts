import { Writable } from 'node:stream'
import { createPaymentsServices, type PaymentsCalls } from '../../src/api/services/payments-services.ts'
import { createAuth } from '../../src/auth/auth.ts'
import { createLogger } from '../../src/observability/create-logger.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { page, routes } from './answers.ts'
import { API_KEY } from './key.ts'

/** What all servers share: functions that answer from memory, and the check of the API key. */
export const calls: {
  routes: Pick<PaymentsCalls['routes'], 'findRoutes'>
  payments: Pick<PaymentsCalls['payments'], 'search'>
} = {
  routes: { findRoutes: async () => routes },
  payments: { search: async () => page },
}

/** The service's own handlers on these functions. */
export const services = createPaymentsServices({ ...calls, requests: {} } as unknown as PaymentsCalls)

/** Formats lines and discards them. */
export const logger = createLogger({
  level: 'info',
  stream: new Writable({ write: (_, __, done) => done() }),
})

// The key of the process is never looked up, so the database is never called.
const knex = createDatabase('postgres://nowhere.invalid/none')

export const { authenticate } = createAuth({
  knex,
  cursorSecret: Buffer.alloc(32),
  logger,
  now: () => new Date(),
  processKeys: [{ key: API_KEY, account: { id: 1, name: 'bench' } }],
})
