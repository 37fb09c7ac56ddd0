import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Knex } from 'knex'
import { composeService, type Service } from '../../src/app.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { type LockedAccount, lockAccount } from '../../src/store/payment-changes.ts'
import { readSetting } from '../../src/store/settings-repository.ts'
import { createPostWebhook, type PostOptions } from '../../src/webhooks/send/post-webhook.ts'
import { createSender, type Sender } from '../../src/webhooks/send/sender.ts'
import { createDeliveryRepository } from '../../src/webhooks/sql/delivery-repository.ts'
import { createEndpointRepository } from '../../src/webhooks/sql/endpoint-repository.ts'
import type { WebhookInput } from '../../src/webhooks/webhooks.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { changePayments, insertPayments } from '../support/data/write-payments.ts'
import { type LogRecorder, recordLogs } from '../support/logs.ts'

/** A delivery as a receiver got it. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly type: string
  readonly data: { readonly id: string; readonly status: string } & Readonly<Record<string, unknown>>
}

/** What a receiver does: answers with a status, and headers; never; or breaks the connection off. */
export type Answer = number | { readonly status: number; readonly headers: Record<string, string> } | 'never' | 'break'

export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** The ids of what it got. */
  readonly ids: ReadonlySet<string>
  /** Resolves when the condition holds, which is looked at after each delivery. */
  until(condition: () => boolean): Promise<void>
  stop(): Promise<void>
}

/** Starts a receiver on loopback. */
export async function startReceiver(
  answer: (got: Received, nth: number) => Answer | Promise<Answer> = () => 204,
  host = '127.0.0.1',
): Promise<Receiver> {
  const received: Received[] = []
  const ids = new Set<string>()
  const waiting = new Set<() => void>()
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    const { type, data } = JSON.parse(body) as Pick<Received, 'type' | 'data'>
    const got = { path: request.url ?? '', headers: request.headers, body, type, data }
    received.push(got)
    ids.add(String(request.headers['webhook-id']))
    const given = await answer(got, received.length)
    for (const check of waiting) check()
    if (given === 'break') request.socket.destroy()
    else if (given !== 'never') {
      const { status, headers } = typeof given === 'number' ? { status: given, headers: {} } : given
      response.writeHead(status, headers).end()
    }
  }
  const server = createServer((request, response) => void take(request, response))
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${host}:${port}/hooks`,
    received,
    ids,
    until: (condition) =>
      new Promise((resolve) => {
        const check = () => {
          if (!condition()) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface Stage {
  readonly database: TestDatabase
  readonly knex: Knex
  readonly account: Account
  readonly service: Service
  readonly logs: LogRecorder
  /** The clock stands still until a test moves it. */
  readonly clock: { now: Date }
  create(input: Partial<WebhookInput>): Promise<{ readonly id: string; readonly secret: string }>
  /** A sender of its own, as another process has. */
  sender(post?: Partial<PostOptions>): Promise<Sender>
  /** Runs a sender's rounds until its end. */
  run(sender: Sender): Promise<void>
  write(work: (locked: LockedAccount) => Promise<unknown>): Promise<void>
  /** Stores payments numbered from `first`, in one transaction. */
  addPayments(count: number, first?: number): Promise<void>
  setStatus(numbers: readonly number[], status: number): Promise<void>
  removePayments(from: number, to?: number): Promise<void>
  stop(): Promise<void>
}

const START = new Date('2026-03-01T12:00:00.000Z')

export const paymentId = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`

const by = { actor: 'test' }

/** @param realTime - the clock is the machine's */
export async function openStage({ realTime = false } = {}): Promise<Stage> {
  const database = await createTestDatabase()
  const { knex } = database
  const clock = { now: START }
  const now = () => (realTime ? new Date() : clock.now)
  const logs = recordLogs()
  const account = await createApiKeyRepository(knex).ensureAccount('shop')
  const service = await composeService({ knex, chains: [], logger: logs, now, webhooksAllowPrivate: true })
  const master = (await readSetting(knex, 'webhook-secret')) as Buffer
  const running: { readonly sender: Sender; readonly stop: () => Promise<void> }[] = []
  const write = (work: (locked: LockedAccount) => Promise<unknown>) =>
    inTransaction(knex, undefined, async (trx) => void (await work(await lockAccount(trx, account.id, now()))))
  return {
    database,
    knex,
    account,
    service,
    logs,
    clock,
    async create({ url, kinds = [], ...input }) {
      const made = await service.webhooks.service.create(account, { url, kinds, ...input }, by)
      return { id: made.webhook.id, secret: made.secret }
    },
    async sender(options = {}) {
      const { post } = createPostWebhook({ allowsPrivate: true, now, ...options })
      const { source } = service.webhooks
      return createSender({
        knex,
        source,
        endpoints: createEndpointRepository(knex),
        deliveries: createDeliveryRepository(knex),
        post,
        logger: logs,
        now,
        master,
        longestWaitMs: 20,
      })
    },
    async run(sender) {
      const ending = new AbortController()
      await sender.round()
      const timer = setInterval(() => void sender.round(ending.signal).catch(() => {}), 100)
      running.push({
        sender,
        async stop() {
          clearInterval(timer)
          ending.abort()
          await sender.end()
        },
      })
    },
    write,
    addPayments: (count, first = 1) =>
      write((locked) =>
        insertPayments(locked, { sql: INSERT, bindings: [account.id, now(), now(), first, first + count - 1] }),
      ),
    setStatus: (numbers, status) =>
      write((locked) =>
        changePayments(locked, {
          sql: 'update payments set status = ?, updated_at = ? where account_id = ? and id = any(?::uuid[])',
          bindings: [status, now(), account.id, numbers.map(paymentId)],
        }),
      ),
    removePayments: (from, to = from) =>
      write((locked) =>
        changePayments(locked, {
          sql: 'delete from payments where account_id = ? and id between ?::uuid and ?::uuid',
          bindings: [account.id, paymentId(from), paymentId(to)],
        }),
      ),
    async stop() {
      await Promise.all(running.map(({ stop }) => stop()))
      await database.drop()
    },
  }
}

/** Status 3 is CONFIRMED. */
const INSERT = `
  insert into payments (account_id, id, status, type, final, imported, timestamp, updated_at, network, currency, currency_symbol, amount, reference)
  select ?::int, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 3, 1, true, true, ?::timestamptz, ?::timestamptz, 'BASE', 'USDC-BASE', 'USDC',
    n, 'INV-' || n
  from generate_series(?::int, ?::int) n`
