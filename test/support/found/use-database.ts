import { writeFile } from 'node:fs/promises'
import { createApiKeyRepository } from '../../../src/auth/sql/api-key-repository.ts'
import type { Payment } from '../../../src/domain/payment.ts'
import type { DatabaseConnection } from '../../../src/postgres/knex.ts'
import { createDatabase } from '../../../src/postgres/knex.ts'
import { createRequests } from '../../../src/requests/requests.ts'
import { createRequestListRepository } from '../../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../../src/requests/sql/request-repository.ts'
import { createPaymentSearch } from '../../../src/search/page/payment-search.ts'
import { createSummarizePayments } from '../../../src/search/totals/summarize-payments.ts'
import type { SettingThatWorks } from '../../cases/database-settings.ts'
import { type TestDatabase, urlOfDatabase } from '../data/database.ts'
import { chains, generatePayments, insertPayments, tokens } from '../data/search-payments.ts'
import { runCommand } from '../run-command.ts'

const CURSOR_SECRET = Buffer.alloc(32, 7)
const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const PAYEE = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/** Everything that a client was reported, to be compared between databases. */
export interface Reported {
  /** One request, whatever the number of creations with its key. */
  readonly created: readonly string[]
  readonly pages: unknown
  readonly summary: unknown
  readonly listed: unknown
  readonly exported: string
  /** What `check` finds wrong. */
  readonly check: { readonly code: number; readonly stdout: string }
}

/**
 * Uses an empty database as clients and operators do: eight creations at once with one Idempotency-Key, an import,
 * searches, summaries, lists, exports and the check of what is stored.
 *
 * @param file - payments as `export payments` writes them
 */
export async function useDatabase(
  { connection, url }: { readonly connection: DatabaseConnection; readonly url: string },
  file: string,
): Promise<Reported> {
  const knex = createDatabase(connection)
  try {
    const account = await createApiKeyRepository(knex).ensureAccount('shop')
    const requests = createRequests({
      repository: createRequestRepository(knex),
      lists: createRequestListRepository(knex),
      known: { chains, tokens },
      cursorSecret: CURSOR_SECRET,
      now: () => new Date(NOW),
      onStored: async () => {},
      originsOf: async () => new Set<string>(),
    })
    const terms = {
      payee: PAYEE,
      amount: '150.50',
      invoiceCurrency: 'usdc',
      paymentCurrency: 'USDC-BASE',
      network: 'base',
    }
    const creations = Array.from({ length: 8 }, () => requests.create(account, terms, { idempotencyKey: 'once' }))
    const created = (await Promise.all(creations)).map(({ request }) => request.requestId)

    await command(url, ['import', 'payments', file, '--account', 'shop'])
    const search = createPaymentSearch({ knex, chains, tokens, cursorSecret: CURSOR_SECRET })
    const summarize = createSummarizePayments({ knex, parseFilter: (...asked) => search.parseFilter(...asked) })
    const first = await search.search(account, { limit: 25, includeTotal: 'exact' })
    const second = await search.search(account, { limit: 25, cursor: first.pagination.nextCursor })
    return {
      created: [...new Set(created.map((id) => (id === created[0] ? 'one' : 'another')))],
      pages: [first.payments.map(unstamped), first.pagination.total, second.payments.map(unstamped)],
      summary: await summarize(account, { groupBy: ['day', 'network'], timeZone: 'Asia/Kolkata' }),
      listed: (await requests.list(account, {})).requests.map(({ request }) => [request.createdAt, request.amount]),
      exported: (await command(url, ['export', 'payments', '--account', 'shop'])).stdout,
      check: await command(url, ['verify']),
    }
  } finally {
    await knex.destroy()
  }
}

/** A stamp is that of one database. */
const unstamped = (payment: Payment): Payment => ({ ...payment, changedAt: undefined })

export const placeOf = (database: TestDatabase) => ({ connection: database.connection, url: urlOfDatabase(database) })

/** Makes a setting for every later connection to a database, where its server has the setting. */
export async function makeSetting({ knex, direct }: TestDatabase, { name, value, since = 0 }: SettingThatWorks) {
  const { rows } = await knex.raw(`select current_setting('server_version_num')::int / 10000 as version`)
  if (rows[0].version >= since) await knex.raw(`alter database ${direct.database} set ${name} = '${value}'`)
}

/** Writes generated payments as `export payments` does. */
export async function writeExport({ knex, ...database }: TestDatabase, file: string): Promise<void> {
  const account = await createApiKeyRepository(knex).ensureAccount('source')
  await insertPayments(knex, generatePayments(account.id, 60, 7))
  const { stdout } = await command(urlOfDatabase({ knex, ...database }), ['export', 'payments', '--account', 'source'])
  await writeFile(file, stdout)
}

async function command(url: string, words: readonly string[]): Promise<{ code: number; stdout: string }> {
  const { code, stdout, stderr } = await runCommand({ DATABASE_URL: url, CHAINS_FILE: 'none' }, words)
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
  return { code, stdout }
}
