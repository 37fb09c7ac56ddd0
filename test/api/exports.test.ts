import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { JsonObject } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Address } from '../../src/domain/address.ts'
import { formatDecimal, parseDecimal, sumDecimals, ZERO } from '../../src/domain/decimal.ts'
import { derivedPaymentFields, formatPaymentLine } from '../../src/domain/payment-line.ts'
import { exportPayments } from '../../src/search/export/export-payments.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { createStreamClient, streamProtocols } from '../support/clients/stream-clients.ts'
import { generatePayments, insertBySql, insertPayments } from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { PATIENCE } from '../support/patience.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

// Exports: in every form, over every protocol, and when they are interrupted.

let running: TestService
let shop: Account

beforeAll(async () => {
  running = await startTestService()
  shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
  const other = await createApiKeyRepository(running.database.knex).ensureAccount('other')
  // More than two pages, and payments of another account.
  const ours = generatePayments(shop.id, 1_203, 21)
  await insertPayments(running.database.knex, [...ours, ...generatePayments(other.id, 50, 22)])
})
afterAll(() => running?.stop())

const PATH = '/v1/payments:export'

function ask(query = '', headers: Readonly<Record<string, string>> = {}, key = running.keys.shop): Promise<Response> {
  return fetch(`${running.url}${PATH}?${query}`, { headers: { 'x-api-key': key, ...headers } })
}

async function linesOf(query = ''): Promise<string[]> {
  const response = await ask(query)
  expect(response.status).toBe(200)
  const lines = (await response.text()).split('\n')
  // The last line is empty: the mark of a whole export.
  expect(lines.slice(-2)).toEqual(['', ''])
  return lines.slice(0, -2)
}

const idsOf = (lines: readonly string[]) => lines.map((line) => (JSON.parse(line) as { id: string }).id)

async function written(): Promise<string> {
  const lines: string[] = []
  await exportPayments({ knex: running.database.knex, filter: { accountId: shop.id } }, async (page) => {
    lines.push(...page.map((payment) => `${formatPaymentLine(payment)}\n`))
  })
  return lines.join('')
}

async function reasonOf(response: Response): Promise<[number, string, string | undefined]> {
  const { details } = (await response.json()) as { details: [{ reason: string; metadata: { field?: string } }] }
  return [response.status, details[0].reason, details[0].metadata.field]
}

describe('as JSON lines', () => {
  it('has the same bytes as the command, and an empty line at its end', async () => {
    const response = await ask()
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="payments.ndjson"')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const text = await response.text()
    expect(text).toBe(`${await written()}\n`)
    expect(text.split('\n')).toHaveLength(1_205)
  })

  it('filters leave out lines and change none', async () => {
    const all = new Set(await linesOf())
    const filtered = await linesOf('status=pending,failed&network=base&fromDate=2026-03-02')
    expect(filtered.length).toBeGreaterThan(20)
    expect(filtered.every((line) => all.has(line))).toBe(true)
  })

  it('is the empty line only if nothing matches', async () => {
    const response = await ask('q=nothing')
    expect([response.status, await response.text()]).toEqual([200, '\n'])
  })
})

/** Reads RFC 4180, but for the empty line at the end. */
function readCsv(text: string): string[][] {
  if (!text.endsWith('\r\n\r\n')) throw new Error('no empty line at the end')
  return readRecords(text.slice(0, -2))
}

function readRecords(text: string): string[][] {
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g
  const rows: string[][] = [[]]
  let end = 0
  for (const match of text.matchAll(cell)) {
    if (match.index !== end) throw new Error(`no CSV at ${end}: ${text.slice(end, end + 50)}`)
    end += match[0].length
    rows.at(-1)?.push((match[1]?.replaceAll('""', '"') ?? match[2] ?? '').replace(/(^|[;\t\r\n])'/g, '$1'))
    if (match[3] === '\r\n') rows.push([])
  }
  if (end !== text.length) throw new Error(`no CSV at ${end}`)
  return rows.slice(0, -1)
}

describe('as CSV', () => {
  it('holds the same values as the JSON lines, but for gas', async () => {
    const response = await ask('format=csv', { accept: 'application/json' })
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="payments.csv"')
    const [columns = [], ...rows] = readCsv(await response.text())
    const isPart = (name: string) => /^gas|Fee/.test(name)
    const read = rows.map((row) =>
      Object.fromEntries(columns.flatMap((name, at) => (row[at] === '' || isPart(name) ? [] : [[name, row[at]]]))),
    )
    const cells = (line: string) =>
      Object.entries(JSON.parse(line) as JsonObject).flatMap(([name, value]) =>
        isPart(name) ? [] : [[name, typeof value === 'string' ? value : JSON.stringify(value)]],
      )
    expect(read).toEqual((await linesOf()).map((line) => Object.fromEntries(cells(line))))
  })

  it('has the gas of a transaction once, so that the column adds up to what a summary says', async () => {
    const moved = 'status=pending,partial,confirmed,refunded'
    const [, ...rows] = readCsv(await (await ask(`format=csv&columns=gasAmount,gasCurrency,txHash&${moved}`)).text())
    const withGas = rows.filter(([amount]) => amount !== '')
    expect(withGas.filter(([amount]) => amount === '0').length).toBeGreaterThan(10)
    const sums = [...Map.groupBy(withGas, ([, currency]) => currency)].map(([currency, of]) => [
      currency,
      formatDecimal(sumDecimals(of.map(([amount = '']) => parseDecimal(amount) ?? ZERO))),
    ])
    const headers = { 'x-api-key': running.keys.shop }
    const summary = await fetch(`${running.url}/v1/payments:summarize?sums=gas&${moved}`, { headers })
    const { sums: summed } = (await summary.json()) as { sums: { parts: { currency: string; amount: string }[] }[] }
    const parts = summed.flatMap((sum) => sum.parts.map((part) => [part.currency, part.amount]))
    expect(Object.fromEntries(sums)).toEqual(Object.fromEntries(parts))
  })

  it('is the header line and the empty line only if nothing matches', async () => {
    expect(await (await ask('format=csv&q=nothing')).text()).toMatch(/^id,status,[a-zA-Z,]+\r\n\r\n$/)
  })

  it('of one column has no empty line before its end', async () => {
    const text = await (await ask('format=csv&columns=invoiceAmount')).text()
    const lines = text.split('\r\n')
    expect(lines).toContain('""')
    expect(lines.indexOf('')).toBe(lines.length - 2)
  })

  it('puts an apostrophe before text that a spreadsheet would run', async () => {
    const [row] = generatePayments(shop.id, 1, 31)
    if (row === undefined) throw new Error('no payment')
    const fullwidth = ['\uff1d1+1', '\uff0b1', '\uff0d1', '\uff20SUM(A1)']
    const split = ['x;=1+1', 'x;"=1+1"', 'x\t@1', "x;'-1", '\n=1', 'a; b']
    const texts = ['=1+1', '+1', '-1', '@SUM(A1)', "'=1", '"quoted", and =', '1-1', ...fullwidth, ...split]
    const stored = texts.map((reference, n) => {
      const id = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
      return { ...row, payment: { ...row.payment, id, eventIndex: n, reference, payee: GUARDED } }
    })
    await insertPayments(running.database.knex, stored)
    const text = await (await ask(`format=csv&payee=${GUARDED}`)).text()
    const guarded = [...fullwidth.map((cell) => `'${cell}`), "x;'=1+1", `"x;'""=1+1"""`, "x\t'@1", "x;''-1", 'a; b']
    for (const cell of ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "''=1", '"""quoted"", and ="', '1-1', ...guarded]) {
      expect(text).toContain(`,${cell},`)
    }
    const [columns = [], ...rows] = readCsv(text)
    expect(rows.map((cells) => cells[columns.indexOf('reference')])).toEqual(texts)
  })
})

const GUARDED = '0x00000000000000000000000000000000000000aa' as Address

describe('the form of an export', () => {
  it.each([
    ['', '*/*', 'application/x-ndjson'],
    ['', 'application/jsonl', 'application/jsonl'],
    ['', 'text/csv', 'text/csv; charset=utf-8; header=present'],
    ['', 'text/*, application/x-ndjson;q=0.5', 'text/csv; charset=utf-8; header=present'],
    ['format=NDJSON', 'text/csv', 'application/x-ndjson'],
    ['format=csv', 'application/x-ndjson', 'text/csv; charset=utf-8; header=present'],
  ])('%j with Accept %s is %s', async (query, accept, type) => {
    const response = await ask(`q=nothing&${query}`, { accept })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    await response.text()
  })

  it.each([
    ['', 'application/json', 406, 'NOT_ACCEPTABLE', undefined],
    ['', 'text/event-stream', 406, 'NOT_ACCEPTABLE', undefined],
    ['format=xls', '*/*', 400, 'UNKNOWN_ENUM_VALUE', 'format'],
    ['sortBy=amount', '*/*', 400, 'UNKNOWN_PARAMETER', 'sortBy'],
    ['limit=1', '*/*', 400, 'UNKNOWN_PARAMETER', 'limit'],
    ['network=etherium', '*/*', 400, 'UNKNOWN_NETWORK', 'network'],
    ['after=12', '*/*', 400, 'INVALID_PAYMENT_ID', 'after'],
    ['after=', '*/*', 400, 'INVALID_PAYMENT_ID', 'after'],
    ['after=00000000-0000-4000-8000-0000000000ff', '*/*', 400, 'EXPORT_POSITION_UNKNOWN', 'after'],
  ])('%j with Accept %s is refused', async (query, accept, status, reason, field) => {
    expect(await reasonOf(await ask(query, { accept }))).toEqual([status, reason, field])
  })

  it('HEAD answers with the header only', async () => {
    const response = await fetch(`${running.url}${PATH}?format=csv`, {
      method: 'HEAD',
      headers: { 'x-api-key': running.keys.shop },
    })
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="payments.csv"')
    expect(await response.text()).toBe('')
  })
})

it.each(streamProtocols)('over %s the same payments come in messages of at most 100', async (protocol) => {
  const client = createStreamClient(running.url)
  const headers = { 'x-api-key': running.keys.shop }
  const method = PaymentSearchService.method.exportPayments
  const { messages, error } = await client.call(protocol, method, [{ currency: ['USDC'], format: 2 }], { headers })
  const failed = await client.call(protocol, method, [{ network: ['etherium'] }], { headers })
  client.close()
  expect(error).toBeUndefined()
  const batches = messages.map((message) => (message as { payments: JsonObject[] }).payments)
  expect(batches.every(({ length }) => length >= 1 && length <= 100)).toBe(true)
  const lines = batches
    .flat()
    .map((payment) =>
      JSON.stringify(payment, (name, value: unknown) => (derivedPaymentFields.has(name) ? undefined : value)),
    )
  expect(lines).toEqual(await linesOf('currency=USDC'))
  expect(lines.length).toBeGreaterThan(200)
  expect(failed.error).toMatchObject({ reason: 'UNKNOWN_NETWORK' })
})

describe('an export that continues after the last payment received', () => {
  const write = async (change: 'move' | 'delete', id: string, to = '') => {
    await running.database.knex.transaction(async (trx) => {
      const locked = await lockAccount(trx, shop.id, NOW)
      const bindings = [shop.id, id]
      if (change === 'delete') {
        await changePayments(locked, { sql: 'delete from payments where account_id = ? and id = ?', bindings })
      } else {
        const sql = 'update payments set timestamp = ? where account_id = ? and id = ?'
        await changePayments(locked, { sql, bindings: [to, ...bindings] })
      }
    })
  }

  it('gives the rest, wherever it was interrupted', async () => {
    const all = await linesOf('status=CONFIRMED')
    for (const cut of [0, 1, 98, 99, 500, all.length - 2, all.length - 1]) {
      const [id] = idsOf(all.slice(cut, cut + 1))
      expect(await linesOf(`status=CONFIRMED&after=${id?.toUpperCase()}`)).toEqual(all.slice(cut + 1))
    }
  })

  it('gives the same rest as CSV, with its header line', async () => {
    const all = await linesOf()
    const text = await (await ask(`format=csv&after=${idsOf(all)[100]}`)).text()
    expect(readCsv(text)).toHaveLength(all.length - 101 + 1)
  })

  it('continues at the place of a payment that was removed or no longer matches', async () => {
    const all = await linesOf()
    const ids = idsOf(all)
    await write('delete', ids[300] as string)
    expect(await linesOf(`after=${ids[300]}`)).toEqual(all.slice(301))
    const pending = await linesOf('status=PENDING')
    const confirmed = all.findIndex((line) => (JSON.parse(line) as { status: string }).status === 'CONFIRMED')
    const behind = new Set(ids.slice(confirmed + 1))
    const expected = pending.filter((line) => behind.has(idsOf([line])[0] as string))
    expect(await linesOf(`status=PENDING&after=${ids[confirmed]}`)).toEqual(expected)
  })

  it('continues at the earliest place of a payment that has moved, so that none is missed', async () => {
    const ids = idsOf(await linesOf())
    const moving = ids[200] as string
    await write('move', moving, '2026-06-01T00:00:00Z')
    expect(idsOf(await linesOf(`after=${moving}`))).toEqual([...ids.slice(201), moving])
    await write('move', moving, '2026-01-01T00:00:00Z')
    expect(idsOf(await linesOf(`after=${moving}`))).toEqual(ids.filter((id) => id !== moving))
  })

  it("refuses another account's payment", async () => {
    const [id] = idsOf(await linesOf())
    const response = await ask(`after=${id}`, {}, running.keys.other)
    expect(await reasonOf(response)).toEqual([400, 'EXPORT_POSITION_UNKNOWN', 'after'])
  })
})

describe('an export that is interrupted', () => {
  /** Far more than the buffers between client and service hold. */
  beforeAll(async () => {
    const nobody = await createApiKeyRepository(running.database.knex).ensureAccount('nobody')
    await insertBySql(
      running.database.knex,
      nobody.id,
      `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol,
         amount, reference)
       select ${nobody.id}, gen_random_uuid(), 3, true, true, timestamp '2026-01-01' + n * interval '1 second', now(), 'BASE', 'USDC-BASE',
         'USDC', n, repeat('x', 250) from generate_series(1, 25000) n`,
    )
  })

  /** Reads only the head until the test reads more. */
  async function begin(query: string): Promise<IncomingMessage> {
    const request = get(`${running.url}${PATH}?${query}`, { headers: { 'x-api-key': running.keys.nobody } })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return response
  }

  /** The states of the other connections of the database, and since when. */
  const statements = async () => {
    const { rows } = await running.database.knex.raw<{ rows: { state: string; xact_start: Date | null }[] }>(
      `select state, xact_start, query_start from pg_stat_activity
       where datname = current_database() and application_name = 'waybill' and pid <> pg_backend_pid() and query not like '%pg_stat_activity%'`,
    )
    return rows
  }

  it.each([
    ['', (line: string) => (JSON.parse(line) as { error: { details: [{ reason: string }] } }).error.details[0].reason],
    ['format=csv', (line: string) => /^error,([A-Z_]+),.*,{28}$/.exec(line)?.[1]],
  ])('%j ends with a line that says so', async (query, reasonIn) => {
    const response = await begin(query)
    await running.database.knex.raw('alter table payments rename to payments_away')
    let text = ''
    try {
      for await (const chunk of response.setEncoding('utf8')) text += chunk as string
    } finally {
      await running.database.knex.raw('alter table payments_away rename to payments')
    }
    const lines = text.trimEnd().split(/\r?\n/)
    expect(lines.length).toBeGreaterThan(100)
    expect(lines.length).toBeLessThan(25_000)
    expect(reasonIn(lines.at(-1) ?? '')).toBe('INTERNAL')
    expect(text).not.toMatch(/relation|payments_away|select/)
  })

  it('holds no transaction while its reader waits, and ends with the reader', async () => {
    const response = await begin('')
    // Until no new statement begins.
    let before = ''
    await vi.waitFor(
      async () => {
        const [seen, now] = [before, JSON.stringify(await statements())]
        before = now
        expect(now).toBe(seen)
      },
      { interval: 250, timeout: 10_000 },
    )
    expect((await statements()).every(({ state, xact_start: began }) => state === 'idle' && began === null)).toBe(true)
    const logged = running.logs.records.length
    response.destroy()
    await vi.waitFor(() => {
      const line = running.logs.records.slice(logged).find(({ message }) => message === 'call')
      expect(line?.fields).toMatchObject({ reason: 'CALL_CANCELLED' })
    }, PATIENCE)
  })
})
