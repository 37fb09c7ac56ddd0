import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWaybill, Payment_Status, type Waybill } from '../../clients/typescript/src/public.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { generatePayments, insertPayments } from '../support/data/search-payments.ts'
import { startTestService, type TestService } from '../support/service.ts'

// Exports through a proxy that asks in HTTP/1.0, as nginx does by default: it takes the end of a connection for the end of the body.

let running: TestService
let proxy: Server
/** After how many bytes of a body its connection breaks. */
let cutAt = Number.POSITIVE_INFINITY
let waybill: Waybill

beforeAll(async () => {
  running = await startTestService()
  const shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
  await insertPayments(running.database.knex, generatePayments(shop.id, 300, 21))
  proxy = createServer((request, response) => {
    const upstream = connect({ port: running.port, host: '127.0.0.1' })
    const headers = { ...request.headers, host: 'localhost', connection: 'close', 'accept-encoding': 'identity' }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
    upstream.write(`${request.method} ${request.url} HTTP/1.0\r\n${lines.join('')}\r\n`)
    request.pipe(upstream, { end: false })
    let head = ''
    let left = cutAt
    upstream.on('data', (chunk: Buffer) => {
      let body = chunk
      if (!response.headersSent) {
        head += chunk.toString('latin1')
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) return
        const [status = '', ...fields] = head.slice(0, end).split('\r\n')
        const kept = fields.map((field) => field.split(': ', 2) as [string, string])
        const passed = kept.filter(([name]) => !/^(connection|transfer-encoding|content-length|keep-alive)$/.test(name))
        response.writeHead(Number(status.split(' ')[1]), Object.fromEntries(passed))
        body = Buffer.from(head.slice(end + 4), 'latin1')
      }
      response.write(body.subarray(0, left))
      left -= body.length
      if (left <= 0) upstream.destroy()
    })
    upstream.on('close', () => response.end())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo
  waybill = createWaybill({ baseUrl: `http://127.0.0.1:${port}`, apiKey: running.keys.shop, retries: 0 })
})

afterAll(async () => {
  proxy?.close()
  proxy?.closeAllConnections()
  await running?.stop()
})

async function readCsv(columns: readonly string[]): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of waybill.exportCsv({ columns: [...columns] })) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function countPayments(): Promise<number> {
  let count = 0
  for await (const { payments } of waybill.exportPayments({})) count += payments.length
  return count
}

describe('through a proxy that speaks HTTP/1.0 to the service', () => {
  it('a whole export is whole', async () => {
    cutAt = Number.POSITIVE_INFINITY
    expect((await readCsv([])).toString()).toMatch(/\r\n\r\n$/)
    expect(await countPayments()).toBe(300)
  })

  it('an export as CSV has what the filters leave, also those of a message within', async () => {
    cutAt = Number.POSITIVE_INFINITY
    const filter = { exclude: { status: [Payment_Status.CONFIRMED], payer: [] }, minAmount: '1' }
    const pieces: Uint8Array[] = []
    for await (const piece of waybill.exportCsv({ ...filter, columns: ['id'] })) pieces.push(piece)
    let streamed = 0
    for await (const { payments } of waybill.exportPayments(filter)) streamed += payments.length
    const [, ...ids] = Buffer.concat(pieces).toString().trim().split('\r\n')
    expect(ids).toHaveLength(streamed)
    expect(streamed).toBeGreaterThan(0)
    expect(streamed).toBeLessThan(300)
  })

  it.each([[[]], [['id', 'amount']], [['invoiceAmount']]])(
    'an export of %j as CSV is cut at any place, and throws',
    async (columns) => {
      cutAt = Number.POSITIVE_INFINITY
      const { length } = await readCsv(columns)
      for (const at of [1, 10, 100, 1_000, length - 20, length - 4, length - 3, length - 2, length - 1]) {
        cutAt = Math.min(Math.max(at, 1), length - 1)
        await expect(readCsv(columns)).rejects.toMatchObject({ name: 'WaybillCallError', reason: 'NETWORK' })
      }
    },
  )

  it.each([1, 1_000, 30_000])('an export of messages that is cut after %i bytes throws', async (at) => {
    cutAt = at
    await expect(countPayments()).rejects.toMatchObject({ name: 'WaybillCallError' })
  })
})
