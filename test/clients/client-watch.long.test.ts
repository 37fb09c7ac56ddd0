import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createWaybill, WatchPaymentsResponse_Type as Type, type Waybill } from '../../clients/typescript/src/public.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { startWaybill, type WaybillProcess } from '../support/process.ts'

// The client's watch through 100 cut connections and a restart of the service: every change once, in order.

const CUTS = 100
const ROUNDS = 25
const LINES = 40

let database: TestDatabase
let environment: Record<string, string>
let service: WaybillProcess
let proxy: CuttingProxy
let waybill: Waybill

beforeAll(async () => {
  database = await createTestDatabase()
  const port = await findFreePort()
  environment = { PORT: `${port}`, CHAINS_FILE: 'none', DATABASE_URL: urlOfDatabase(database), DATA_DIR: '/nowhere' }
  const terms = { account: 'shop', scopes: ['payments:read'], now: new Date(), callsPerMinute: 0 } as const
  const { key } = await issueApiKey(createApiKeyRepository(database.knex), terms)
  service = await startService()
  proxy = await startCuttingProxy(port)
  waybill = createWaybill({ baseUrl: proxy.url, apiKey: key })
})
afterAll(async () => {
  await proxy?.stop()
  service?.kill('SIGTERM')
  await service?.ended
  await database?.drop()
})

async function startService(): Promise<WaybillProcess> {
  const started = startWaybill(['serve'], environment)
  await started.says(/on (http:\/\/[^:]+:\d+)/)
  return started
}

interface CuttingProxy {
  readonly url: string
  /** Bytes of answers that a connection may carry before it is cut; undefined lets all pass. */
  limit: number | undefined
  cuts: number
  stop(): Promise<void>
}

/** Passes bytes on, and cuts a connection in the middle of an answer. */
async function startCuttingProxy(port: number): Promise<CuttingProxy> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    let passed = 0
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          open.delete(socket)
          client.destroy()
          upstream.destroy()
        })
    }
    client.pipe(upstream)
    upstream.on('data', (bytes) => {
      const left = proxied.limit === undefined ? bytes.length : Math.max(0, proxied.limit - passed)
      passed += bytes.length
      client.write(bytes.subarray(0, left))
      if (left >= bytes.length) return
      proxied.cuts += 1
      client.end()
      upstream.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxied: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    limit: undefined,
    cuts: 0,
    async stop() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
  return proxied
}

async function importRound(round: number): Promise<void> {
  const lines = Array.from({ length: LINES }, (_, n) =>
    JSON.stringify({
      id: `5e000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`,
      status: 'CONFIRMED',
      timestamp: '2026-03-01T12:00:00Z',
      updatedAt: new Date(Date.UTC(2026, 2, 1, 12, 0, round)).toISOString(),
      amount: String(round),
      currency: 'USDC-BASE',
      network: 'BASE',
    }),
  )
  const words = ['import', 'payments', '-', '--account', 'shop']
  const { code, stderr } = await startWaybill(words, environment, Readable.from([`${lines.join('\n')}\n`])).ended
  if (code !== 0) throw new Error(stderr)
}

it('a watch sees every change once through 100 cut connections and a restart', async () => {
  const changes = new Map<string, string[]>()
  const aborter = new AbortController()
  let seen = 0
  let reconnects = 0
  const { watchCursor } = await waybill.searchPayments({})
  const watching = (async () => {
    const options = { from: watchCursor, signal: aborter.signal, onReconnect: () => void (reconnects += 1) }
    for await (const { type, id = '', payment } of waybill.watchPayments({}, options)) {
      changes.set(id, [...(changes.get(id) ?? []), `${Type[type]} ${payment?.amount}`])
      if (++seen === ROUNDS * LINES) aborter.abort(new Error('all seen'))
    }
  })()
  const end = watching.then(
    () => undefined,
    (error: unknown) => error,
  )
  // ServedRouting for the head of the answer and a few changes.
  proxy.limit = 2_000
  for (let round = 1; round <= ROUNDS; round++) {
    await importRound(round)
    if (round === 12) {
      service.kill('SIGTERM')
      await service.ended
      service = await startService()
    }
  }
  await vi.waitFor(() => expect(proxy.cuts).toBeGreaterThanOrEqual(CUTS), { timeout: 60_000 })
  proxy.limit = undefined
  expect(await end).toMatchObject({ message: 'all seen' })
  console.info(`${proxy.cuts} cuts, ${reconnects} reconnections`)
  expect(proxy.cuts).toBeGreaterThanOrEqual(CUTS)
  const expected = Array.from({ length: ROUNDS }, (_, at) => `${at === 0 ? 'ADDED' : 'UPDATED'} ${at + 1}`)
  expect(changes.size).toBe(LINES)
  for (const [id, each] of changes) expect([id, each]).toEqual([id, expected])
})

it('CURSOR_EXPIRED ends the watch and tells the caller', async () => {
  const { watchCursor } = await waybill.searchPayments({})
  await importRound(ROUNDS + 1)
  const account = () => database.knex('account_changes')
  const [{ last_change: last }] = await account()
  await account().update({ pruned_change: last })
  const watch = waybill.watchPayments({}, { from: watchCursor })
  await expect(watch.next()).rejects.toMatchObject({ name: 'WaybillCallError', reason: 'CURSOR_EXPIRED' })
})
