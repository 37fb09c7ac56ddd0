import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import type { Scope } from '../../src/auth/rules/api-key.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { seedPayments, type Values } from '../support/data/seed-payments.ts'
import { revokeKey } from '../support/keys.ts'
import { PATIENCE } from '../support/patience.ts'
import { runWaybill, withoutPackages } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let running: TestService
let values: Values
beforeAll(async () => {
  running = await startTestService()
  values = await seedPayments(running)
})
afterAll(() => running?.stop())

interface Terms {
  readonly key: string
  readonly url?: string
  readonly words?: readonly string[]
  readonly mode?: 'legacy' | 'auto'
}

/** An assistant's side of the command, in a process of its own. */
async function connect({ key, url = running.url, words = [], mode = 'legacy' }: Terms) {
  const root = join(import.meta.dirname, '../..')
  const transport = new StdioClientTransport({
    command: `${root}/tools/with-node`,
    args: ['node', `${root}/src/main.ts`, 'mcp', '--url', url, ...words],
    env: { PATH: process.env['PATH'] ?? '', ...(key !== '' && { WAYBILL_API_KEY: key }) },
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(transport)
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

/** The text of an answer. */
function textOf(content: readonly object[]): string {
  const [first = {}] = content
  return 'text' in first ? String(first.text) : ''
}

const ofAccounts = ['search_payments', 'summarize_payments', 'get_payment', 'list_requests', 'get_request']
const ofRoutes = ['find_routes', 'why_wallet_cannot_pay']

describe('the tools of a key', () => {
  it.each([
    ['shop', [...ofAccounts, ...ofRoutes, 'list_chains']],
    ['operator', ['list_chains', 'list_unmatched']],
    ['platform', [...ofAccounts, ...ofRoutes, 'list_chains', 'list_unmatched']],
    ['platformReader', ['search_payments', 'summarize_payments', 'get_payment']],
    ['writeOnly', []],
  ] as const)('%s: %s', async (name, expected) => {
    const words = name.startsWith('platform') ? ['--account', 'shop'] : []
    await using client = await connect({ key: running.keys[name], words })
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name)).toEqual(expected)
    for (const { description, annotations } of tools) {
      expect(description).toContain('untrusted data')
      expect(annotations).toMatchObject({ readOnlyHint: true })
    }
  })

  it('have the schemas of the definitions, in both protocols', async () => {
    for (const mode of ['legacy', 'auto'] as const) {
      await using client = await connect({ key: running.keys.shop, mode })
      const { tools } = await client.listTools()
      const schemas = Object.fromEntries(tools.map(({ name, inputSchema }) => [name, inputSchema]))
      expect(schemas['find_routes']).toMatchObject({ type: 'object', required: ['paymentReference', 'wallet'] })
      expect(schemas['get_request']).toMatchObject({
        properties: {
          paymentReference: {
            type: 'string',
            maxLength: 128,
            description: expect.stringMatching(/^Payment reference/),
          },
        },
      })
      expect(schemas['search_payments']?.properties).toMatchObject({
        status: { type: 'array', items: { type: 'string', enum: expect.arrayContaining(['CONFIRMED', 'PARTIAL']) } },
        exclude: { type: 'object', properties: { network: { type: 'array' } }, additionalProperties: false },
        sortBy: { type: 'string', enum: expect.arrayContaining(['DATE', 'AMOUNT']) },
      })
      expect(JSON.stringify(tools)).not.toMatch(/\$ref|Several values/)
    }
  })
})

describe('a call', () => {
  let shop: Client
  beforeAll(async () => {
    shop = await connect({ key: running.keys.shop })
  })
  afterAll(() => shop?.close())

  it('of each tool has the answer of the service', async () => {
    await using client = await connect({ key: running.keys.platform, words: ['--account', 'shop'] })
    const ask = async (path: string) => {
      const headers = { 'x-api-key': running.keys.shop }
      return (await fetch(running.url + path, { headers })).json()
    }
    const { 'open.paymentReference': open, 'paid.paymentId': id, 'wallet.empty': wallet = '' } = values
    const input = { paymentReference: open, wallet }
    const cases: readonly (readonly [name: string, input: Record<string, unknown>, path: string])[] = [
      [
        'search_payments',
        { status: ['PARTIAL'], limit: 2, exclude: { payee: [wallet] } },
        `/payments?status=PARTIAL&limit=2&exclude.payee=${wallet}`,
      ],
      ['summarize_payments', { groupBy: ['STATUS'] }, '/v1/payments:summarize?groupBy=STATUS'],
      ['get_payment', { id }, `/v1/payments/${id}`],
      ['list_requests', { status: ['OPEN'] }, '/v1/request?status=OPEN'],
      ['get_request', { paymentReference: open }, `/v1/request/${open}`],
      ['find_routes', input, `/v1/request/${open}/routes?wallet=${wallet}`],
      ['list_chains', {}, '/v1/chains'],
    ]
    for (const [name, given, path] of cases) {
      const { structuredContent, content, isError } = await client.callTool({ name, arguments: given })
      const expected = await ask(path)
      const without = (answer: unknown) =>
        JSON.parse(
          JSON.stringify(answer, (key, value) =>
            /cursor$/i.test(key) || key === 'follower' || key === 'backlog' ? undefined : value,
          ),
        )
      expect([name, isError, without(structuredContent)]).toEqual([name, undefined, without(expected)])
      expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }])
    }
    const { structuredContent: why = {} } = await client.callTool({ name: 'why_wallet_cannot_pay', arguments: input })
    expect(why).toMatchObject({ canPay: false, currency: 'USDC-ETHEREUM' })
    expect((why as { unavailable: unknown }).unavailable).toContainEqual(
      expect.objectContaining({ reason: 'INSUFFICIENT_BALANCE', remedy: expect.any(String) }),
    )
    expect(why).not.toHaveProperty('routes')
    const { structuredContent: unmatched } = await client.callTool({ name: 'list_unmatched' })
    expect((unmatched as { events: unknown }).events).not.toEqual([])
    expect((await ask('/v1/unmatched')).code).toBe('permission_denied')
  })

  it.each([
    ['search_payments', { payer: ['0x12'] }, 'INVALID_ADDRESS'],
    ['search_payments', { payer: '0x12' }, 'INVALID_FIELD'],
    ['search_payments', { status: ['confirmed?'] }, 'UNKNOWN_ENUM_VALUE'],
    ['search_payments', { startDate: '2026-01-01' }, 'UNKNOWN_FIELD'],
    ['search_payments', { limit: -1 }, 'INVALID_LIMIT'],
    ['search_payments', { limit: 'many' }, 'INVALID_LIMIT'],
    ['search_payments', { cursor: 'x' }, 'INVALID_CURSOR'],
    ['search_payments', { exclude: [] }, 'INVALID_FIELD'],
    ['summarize_payments', { timeZone: 'Mars/Phobos' }, 'UNKNOWN_TIME_ZONE'],
    ['get_payment', {}, 'MISSING_FIELD'],
    ['get_payment', { id: '../request' }, 'INVALID_PAYMENT_ID'],
    ['get_request', { paymentReference: '..' }, 'INVALID_PAYMENT_REFERENCE'],
    ['get_request', { paymentReference: '0x0000000000000000' }, 'REQUEST_NOT_FOUND'],
    ['find_routes', { paymentReference: '0x0000000000000000' }, 'MISSING_FIELD'],
    ['why_wallet_cannot_pay', { paymentReference: null, wallet: 1 }, 'INVALID_FIELD'],
    ['list_chains', { chain: 'ETHEREUM' }, 'UNKNOWN_FIELD'],
    ['list_unmatched', {}, 'MISSING_SCOPE'],
    ['__proto__', {}, 'there is no tool "__proto__"'],
    ['pay', {}, 'there is no tool "pay"'],
  ])('of %s with %j is refused with %s', async (name, input, reason) => {
    const { content, isError } = await shop.callTool({ name, arguments: input })
    const text = textOf(content)
    expect(isError).toBe(true)
    expect(text.slice(0, reason.length)).toBe(reason)
    // The message has what to do, with its values filled in.
    expect(text).toContain('; ')
    expect(text).not.toMatch(/[{}]/)
  })

  it('whose answer is long has fewer rows, and a cursor to the rest', async () => {
    const { knex } = running.database
    const account = await createApiKeyRepository(knex).ensureAccount('nobody')
    const names = Array.from({ length: 100 }, (_, nth) => String(nth).padStart(3, '0'))
    const lines = names.map((name) =>
      JSON.stringify({
        id: `00000000-0000-4000-8000-000000000${name}`,
        reference: `${name} ${'long '.repeat(50)}`,
        amount: '1',
        timestamp: '2025-05-01T00:00:00Z',
        status: 'CONFIRMED',
        currency: 'USDC-ETHEREUM',
        network: 'ETHEREUM',
      }),
    )
    const { bad } = await importLines(Readable.from([Buffer.from(lines.join('\n'))]), importPayments(knex, account))
    expect(bad).toBe(0)
    await using client = await connect({ key: running.keys.nobody })
    const seen: string[] = []
    let input: Record<string, unknown> = { limit: 100 }
    while (true) {
      const { structuredContent, content } = await client.callTool({ name: 'search_payments', arguments: input })
      const page = structuredContent as { payments: { reference: string }[]; pagination: { nextCursor?: string } }
      expect(textOf(content).length).toBeLessThanOrEqual(60_000)
      seen.push(...page.payments.map(({ reference }) => reference.slice(0, 3)))
      if (page.pagination.nextCursor === undefined) break
      input = { cursor: page.pagination.nextCursor }
    }
    expect(seen.toSorted()).toEqual(names)
  })
})

describe('without the service or its consent', () => {
  const cases = {
    'a wrong key': { key: 'wb_wrong', says: /^INVALID_API_KEY: .*; / },
    "a platform's key without an account": { key: 'platform', says: /^MISSING_ACCOUNT: .*; / },
    'an unknown account': { key: 'platform', words: ['--account', 'nobody-else'], says: /^UNKNOWN_ACCOUNT: / },
    'no service': { key: 'shop', url: 'down', says: /^http:\S+ does not answer \(ECONNREFUSED\)\nWhat to do: / },
    'another server': { key: 'shop', url: 'other', says: /openapi\.json \(404\) is not Waybill's\nWhat to do: / },
    'a server that leads elsewhere': { key: 'shop', url: 'moved', says: /does not answer/ },
  }
  it.each(Object.keys(cases) as (keyof typeof cases)[])('%s: says so, and what to do', async (name) => {
    const { says, key, ...terms } = cases[name] as { says: RegExp; key: string; url?: string; words?: string[] }
    const seen: unknown[] = []
    const other = createServer(({ url, headers }, response) => {
      seen.push(url, headers['x-api-key'])
      const location = `${running.url}${url}`
      response.writeHead(terms.url === 'moved' ? 307 : 404, { location }).end('<html>')
    })
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done))
    const { port } = other.address() as { port: number }
    const url =
      terms.url === undefined ? running.url : `http://127.0.0.1:${terms.url === 'down' ? await findFreePort() : port}`
    const keys: Readonly<Record<string, string>> = running.keys
    await using client = await connect({ ...terms, url, key: keys[key] ?? key })
    const fault = await client.listTools().catch(({ message }: Error) => message)
    expect(fault).toMatch(says)
    const { content, isError } = await client.callTool({ name: 'search_payments' })
    const text = textOf(content)
    expect(isError).toBe(true)
    expect(text).toMatch(says)
    expect(seen.filter((value) => value === keys[key])).toEqual([])
    other.close()
  })

  it('serves again once it is back, and no more once the key is revoked', async () => {
    const repository = createApiKeyRepository(running.database.knex)
    const { key, stored } = await issueApiKey(repository, {
      account: 'shop',
      scopes: ['chains:read'] as Scope[],
      now: NOW,
    })
    const port = await findFreePort()
    const url = `http://127.0.0.1:${port}`
    await using client = await connect({ key, url })
    await expect(client.listTools()).rejects.toThrow('does not answer')
    const listener = await running.service.listen({ host: '127.0.0.1', port })
    const names = async () => (await client.listTools()).tools.map(({ name }) => name)
    expect(await names()).toEqual(['list_chains'])
    await revokeKey(repository, stored.id, NOW)
    await expect.poll(() => names().catch(({ message }: Error) => message)).toMatch(/^INVALID_API_KEY: /)
    await expect.poll(() => client.callTool({ name: 'list_chains' }), PATIENCE).toMatchObject({ isError: true })
    await listener.stop({ graceMs: 0 })
  })
})

describe('the command', () => {
  const url = ['--url', 'https://pay.example']
  it.each([
    ['no URL', [], { WAYBILL_API_KEY: 'k' }, '--url is missing'],
    ['no key', url, {}, 'give --key-file or WAYBILL_API_KEY'],
    ['two keys', [...url, '--key-file', 'key'], { WAYBILL_API_KEY: 'k' }, 'give --key-file or WAYBILL_API_KEY'],
    ['a key as an argument', [...url, '--key', 'wb_secret'], {}, "Unknown option '--key'"],
    ['a key with a line inside', url, { WAYBILL_API_KEY: 'wb_secret\nx' }, 'WAYBILL_API_KEY holds no API key'],
    ['an empty key', url, { WAYBILL_API_KEY: ' ' }, 'WAYBILL_API_KEY holds no API key'],
    ['no file', [...url, '--key-file', '/nothing'], {}, '--key-file /nothing cannot be read'],
    ['a wrong file', [...url, '--key-file', '/etc/passwd'], {}, '--key-file holds no API key'],
    ['a file as URL', ['--url', 'file:///etc'], { WAYBILL_API_KEY: 'k' }, '--url is not where a service answers'],
    ['a user in the URL', ['--url', 'http://a:b@c'], { WAYBILL_API_KEY: 'k' }, '--url is not where a service answers'],
    ['no URL but a word', ['--url', 'pay'], { WAYBILL_API_KEY: 'k' }, '--url is not where a service answers'],
    ['a wrong account', [...url, '--account', 'A B'], { WAYBILL_API_KEY: 'k' }, '"A B" is not an account'],
  ])('with %s ends with 2', async (_, words, environment, says) => {
    const { code, stdout, stderr } = await runCommand(environment, ['mcp', ...words])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(says)
    expect(stderr.replace(/--key'.*/s, '')).not.toContain('wb_secret')
  })

  it('says what to install where the package is missing', async () => {
    const environment = { NODE_OPTIONS: withoutPackages(/^@modelcontextprotocol\//), WAYBILL_API_KEY: 'k' }
    const { code, stderr } = await runWaybill(['mcp', ...url], environment)
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('server, which is not installed: run npm ci with optional packages'),
    ])
  })

  it('reads the key of a file, and ends with its input', async () => {
    const file = join(await makeTempFolder('mcp'), 'key')
    await writeFile(file, `${running.keys.operator}\n`)
    await using client = await connect({ key: '', words: ['--key-file', file] })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['list_chains', 'list_unmatched'])
    expect(await runCommand({}, ['mcp', '--url', running.url, '--key-file', file])).toMatchObject({
      code: 0,
      stdout: '',
    })
  })
})
