import type { Knex } from 'knex'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { lineHashOf } from '../../src/imports/lines/line-keys.ts'
import { linePaymentOf } from '../../src/imports/lines/payment-batch.ts'
import { createPaymentImportRepository } from '../../src/imports/sql/payment-import-repository.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { createPaymentSearch, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { createWatchRepository } from '../../src/search/sql/watch-repository.ts'
import { createWatchHub } from '../../src/search/watch/watch-hub.ts'
import {
  createWatchPayments,
  type WatchMessage,
  type WatchOptions,
  type WatchPayments,
} from '../../src/search/watch/watch-payments.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import type { TestDatabase } from '../support/data/database.ts'
import { chains, generatePayments, START, tokens } from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { recordLogs } from '../support/logs.ts'

/** The parts of a service process that watches need, with a pool of its own. */
export interface WatchProcess {
  readonly knex: Knex
  readonly search: PaymentSearch
  readonly watch: WatchPayments
  stop(): Promise<void>
}

const cursorSecret = Buffer.alloc(32, 1)

export function startWatchProcess(
  { connection }: TestDatabase,
  options: Partial<Pick<WatchOptions, 'batch' | 'heartbeatMs'>> = {},
): WatchProcess {
  const knex = createDatabase(connection)
  const search = createPaymentSearch({ knex, chains, tokens, cursorSecret })
  const repository = createWatchRepository(knex)
  const readLastChanges = (accountIds: readonly number[]) => repository.lastChanges(accountIds)
  const watch = createWatchPayments({
    parseFilter: (account, input, signal) => search.parseFilter(account, input, signal),
    repository,
    hub: createWatchHub({ readLastChanges, logger: recordLogs() }),
    cursorSecret,
    now: () => new Date(START),
    heartbeatMs: 100,
    ...options,
  })
  return { knex, search, watch, stop: () => knex.destroy() }
}

/** All payments that match, by id. */
export async function searchAll(
  { search }: WatchProcess,
  account: Account,
  input: SearchInput,
): Promise<Map<string, Payment>> {
  const found = new Map<string, Payment>()
  let page = await search.search(account, { ...input, limit: 100 })
  for (;;) {
    for (const payment of page.payments) found.set(payment.id, payment)
    if (page.pagination.nextCursor === undefined) return found
    page = await search.search(account, { cursor: page.pagination.nextCursor })
  }
}

/** Applies an event. Throws for an ADDED of a known payment, and for any other event of an unknown one. */
export function applyMessage(state: Map<string, Payment>, message: WatchMessage): void {
  if (message.type === 'HEARTBEAT') return
  const id = message.type === 'REMOVED' ? message.id : message.payment.id
  if (state.has(id) === (message.type === 'ADDED')) throw new Error(`${message.type} of ${id} at ${message.change}`)
  if (message.type === 'REMOVED') state.delete(id)
  else state.set(id, message.payment)
}

export interface Writer {
  /** One more transaction: an import, updates or deletions. */
  write(): Promise<void>
}

/** Writes payments of an account as import and detection do, many of them repeatedly. */
export function createWriter(knex: Knex, account: Account, seed: number): Writer {
  const random = seededRandom(seed)
  const imports = createPaymentImportRepository(knex, () => new Date(START))
  const supply = generatePayments(account.id, 400, seed).map(({ payment }) => payment)
  let version = 0

  async function importSome(): Promise<void> {
    version += 1
    const from = Math.floor(random() * (supply.length - 20))
    const updatedAt = new Date(START + 600 * 3_600_000 + version * 1000)
    const donors = generatePayments(account.id, 20, seed + version * 1000)
    const batch = supply.slice(from, from + 1 + Math.floor(random() * 20)).map((payment, at): Payment => {
      if (random() < 0.5) return { ...payment, updatedAt }
      // the event has to stay: it belongs to one payment
      const { id, txHash, eventIndex, network } = payment
      const event = txHash === undefined || eventIndex === undefined ? {} : { txHash, eventIndex }
      return { ...(donors[at]?.payment ?? payment), network, ...event, id, updatedAt }
    })
    const lines = batch.map((payment) =>
      linePaymentOf(payment, account.id, lineHashOf(Buffer.from(`${payment.id} ${version}`))),
    )
    await imports.write(account, lines)
  }

  const inOrder = (write: (locked: Awaited<ReturnType<typeof lockAccount>>) => Promise<unknown>) =>
    knex.transaction(async (trx) => {
      await write(await lockAccount(trx, account.id, new Date(START + version)))
    })

  const some = () => `${Math.floor(random() * 16).toString(16)}${Math.floor(random() * 16).toString(16)}`

  return {
    async write() {
      const dice = random()
      if (dice < 0.5) await importSome()
      else if (dice < 0.8) {
        await inOrder(async (locked) => {
          // two updates in one transaction: nobody could see the state between them, but each is a change of its own
          for (let times = random() < 0.3 ? 2 : 1; times > 0; times -= 1) {
            const sql = `update payments set status = ?, amount_in_usd = ?, reference = ? where account_id = ? and id::text like ?`
            const bindings = [
              1 + Math.floor(random() * 5),
              random() < 0.3 ? null : Math.floor(random() * 300),
              random() < 0.5 ? 'INV-1' : null,
              account.id,
              `${some()}%`,
            ]
            await changePayments(locked, { sql, bindings })
          }
        })
      } else {
        await inOrder((locked) => {
          const sql = 'delete from payments where account_id = ? and id::text like ?'
          return changePayments(locked, { sql, bindings: [account.id, `${some()}%`] })
        })
      }
    },
  }
}
