import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAddress } from '../../src/domain/address.ts'
import { formatDecimal } from '../../src/domain/decimal.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { topicOfReference } from '../../src/domain/identifiers.ts'
import { formatRequestLine } from '../../src/domain/request-line.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { parseRequestLine } from '../../src/imports/lines/parse-request.ts'
import { parsedLines } from '../../src/imports/lines/parsed-lines.ts'
import { createRequestImport } from '../../src/requests/import-requests.ts'
import { createRequests, type Requests } from '../../src/requests/requests.ts'
import { createRequestListRepository, exportRequests } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { balanceText } from '../support/data/ledger.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

let database: TestDatabase
let requests: Requests
let shop: Account
let other: Account
let number = 0

const known = { chains: sampleChainDirectory, tokens: sampleTokenDirectory }
const NOW = new Date('2026-05-01T00:00:00Z')

beforeAll(async () => {
  database = await createTestDatabase()
  requests = createRequests({
    repository: createRequestRepository(database.knex),
    lists: createRequestListRepository(database.knex),
    known,
    cursorSecret: Buffer.alloc(32, 7),
    now: () => NOW,
    onStored: async () => {},
    originsOf: async () => new Set<string>(),
  })
})
afterAll(() => database.drop())
beforeEach(async () => {
  const accounts = createApiKeyRepository(database.knex)
  number += 1
  shop = await accounts.ensureAccount(`shop-${number}`)
  other = await accounts.ensureAccount(`other-${number}`)
})

const idOf = (n: number) => `01${n.toString(16).padStart(64, '0')}`
const terms = {
  payee: formatAddress(addressOf(0x77)),
  amount: '150.50',
  invoiceCurrency: 'USD',
  paymentCurrency: 'USDC',
  network: 'base',
  reference: 'INV-1',
  refundAddress: addressOf(0x78),
  allowedPayers: [addressOf(0x79), addressOf(0x7a)],
}

async function runImport(lines: readonly object[], to = shop) {
  const bad: string[] = []
  const imported = createRequestImport({
    repository: createRequestRepository(database.knex),
    known,
    now: () => NOW,
  })
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const counts = await importLines(
    Readable.from([Buffer.from(text)]),
    parsedLines({
      parse: (json) => imported.read(parseRequestLine(json)),
      write: (items) => imported.write(to, items),
    }),
    { onBatch: (_, lately) => void bad.push(...lately.map(({ number: line, error }) => `${line} ${error.reason}`)) },
  )
  return { written: counts.written, unchanged: counts.unchanged, bad }
}

async function exportOf(account: Account): Promise<string[]> {
  const lines: string[] = []
  await exportRequests({ knex: database.knex, accountId: account.id }, async (page) => {
    lines.push(...page.map(formatRequestLine))
  })
  return lines
}

const createdAtOf = (line: string) => (JSON.parse(line) as { createdAt: string }).createdAt

const listOf = async (account: Account) => (await requests.list(account, { limit: 100 })).requests

describe('import of requests', () => {
  it('imports what the list answers as the same requests', async () => {
    const made = [
      await requests.create(shop, terms),
      await requests.create(shop, {
        ...terms,
        invoiceCurrency: 'USDC',
        refundAddress: undefined,
        reference: undefined,
      }),
    ]
    const answers = made.map(({ request, balance }) => ({
      ...request,
      ...balanceText(balance),
      amount: formatDecimal(request.amount),
      payee: formatAddress(request.payee),
      createdAt: request.createdAt.toISOString(),
      warnings: [],
    }))
    expect(await runImport(answers, other)).toEqual({ written: 2, unchanged: 0, bad: [] })
    expect((await listOf(other)).map(({ request }) => request)).toEqual(
      (await listOf(shop)).map(({ request }) => request),
    )
    expect(await runImport(answers, other)).toEqual({ written: 0, unchanged: 2, bad: [] })
    expect(await runImport(answers, shop)).toEqual({ written: 0, unchanged: 2, bad: [] })
  })

  it('exports byte for byte what it imported from an export', async () => {
    const lines = [
      { ...terms, requestId: idOf(1), salt: '01'.repeat(8), createdAt: '2026-01-01T00:00:00.001Z' },
      { ...terms, requestId: idOf(2), refundAddress: undefined, expiresAt: '2025-12-31', createdAt: '2025-01-01' },
      {
        ...terms,
        requestId: idOf(3),
        reference: 'a "b"\u2028ü',
        metadata: { zz: '1', order: '"\\\u2028', 'a.b': 'x=y' },
        amount: '0.00000001',
        cancelledAt: '2026-02-01T00:00:00.5Z',
      },
      {
        ...terms,
        network: undefined,
        paymentCurrency: 'eth-base',
        invoiceCurrency: 'ETH',
        expiresAt: '9999-12-31T23:59:59Z',
      },
      {
        ...terms,
        paymentCurrency: 'USDC-matic',
        network: undefined,
        cancelledAt: '2026-02-01T00:00:00Z',
        reference: undefined,
      },
    ]
    expect(await runImport(lines)).toEqual({ written: 5, unchanged: 0, bad: [] })
    const exported = await exportOf(shop)
    expect(exported).toHaveLength(5)
    expect(exported.filter((line) => line.includes('"cancelledAt"'))).toHaveLength(2)
    const read = exported.map((line) => JSON.parse(line) as object)
    expect(await runImport(read, other)).toEqual({ written: 5, unchanged: 0, bad: [] })
    expect(await exportOf(other)).toEqual(exported)
    expect(await runImport(read)).toEqual({ written: 0, unchanged: 5, bad: [] })
    expect(await exportOf(shop)).toEqual(exported)
    expect(exported.toSorted((a, b) => (createdAtOf(a) < createdAtOf(b) ? -1 : 1)).map(createdAtOf)).toEqual(
      exported.map(createdAtOf),
    )
  })

  it('cancels a request that was cancelled elsewhere, once, and none whose terms differ', async () => {
    const line = { ...terms, requestId: idOf(1), salt: '01'.repeat(8), expiresAt: '2026-12-31T00:00:00Z' }
    await runImport([line])
    const cancelled = { ...line, cancelledAt: '2026-06-01T00:00:00Z' }
    expect(
      await runImport([
        { ...cancelled, amount: '1' },
        { ...cancelled, returnUrl: 'https://shop.example/' },
      ]),
    ).toMatchObject({
      bad: ['1 REQUEST_TERMS_DIFFER', '2 REQUEST_TERMS_DIFFER'],
    })
    expect((await listOf(shop))[0]?.request.cancelledAt).toBeUndefined()
    expect(await runImport([cancelled, line, cancelled])).toEqual({ written: 1, unchanged: 2, bad: [] })
    expect(await runImport([{ ...line, cancelledAt: '2026-06-02T00:00:00Z' }, line])).toEqual({
      written: 0,
      unchanged: 2,
      bad: [],
    })
    expect((await listOf(shop))[0]?.request.cancelledAt).toEqual(new Date('2026-06-01T00:00:00Z'))
  })

  it('stores the topics of new requests, and notes that their earlier payments are still to be attached', async () => {
    await runImport([{ ...terms, requestId: idOf(1), salt: '11'.repeat(8) }])
    const [stored] = await listOf(shop)
    const topic = hexToBytes(topicOfReference(stored?.request.paymentReference ?? '0x'))
    for (const table of ['reference_topics', 'pending_replays']) {
      const topics = await database.knex(table).where({ account_id: shop.id }).pluck<Buffer[]>('topic')
      expect(topics.length).toBe(2)
      expect(topics).toContainEqual(topic)
    }
    await database.knex('pending_replays').delete()
    await runImport([{ ...terms, requestId: idOf(1) }])
    expect(await database.knex('pending_replays').where({ account_id: shop.id })).toEqual([])
  })

  it('makes the same request of the same line, also without an id', async () => {
    const lines = [terms, { ...terms, reference: 'INV-2' }, terms]
    expect(await runImport(lines)).toEqual({ written: 2, unchanged: 1, bad: [] })
    expect(await runImport(lines)).toEqual({ written: 0, unchanged: 3, bad: [] })
    const created = (await listOf(shop)).map(({ request }) => request.createdAt)
    expect(created).toEqual([NOW, NOW])
  })

  it('reports every bad line by number and reason, and stores the others', async () => {
    const made = await requests.create(shop, { ...terms, requestId: idOf(5), salt: '22'.repeat(8) })
    const { paymentReference } = made.request
    const lines = [
      { ...terms, requestId: idOf(1) },
      { ...terms, requestId: idOf(1), amount: '151' },
      { ...terms, requestId: idOf(5), salt: '23'.repeat(8) },
      { ...terms, requestId: idOf(6), salt: '22'.repeat(8), paymentReference },
      { ...terms, requestId: idOf(5), paymentReference },
      { ...terms, requestId: idOf(5), salt: '22'.repeat(8), paymentReference },
      { ...terms, network: 'TRON' },
      { ...terms, paymentCurrency: 'WBTC' },
      { ...terms, amount: 150 },
      { ...terms, amount: '0' },
      { ...terms, payee: undefined },
      { ...terms, createdAt: '2026-02-30T00:00:00Z' },
      { ...terms, payer: terms.payee },
      { ...terms, requestId: idOf(2) },
      { ...terms, expiresAt: 'soon' },
      { ...terms, expiresAt: 1 },
      { ...terms, cancelledAt: '2026-13-01' },
      { ...terms, amount: '9'.repeat(78) },
      { ...terms, payee: formatAddress(addressOf(0x11)) },
      { ...terms, refundAddress: formatAddress(addressOf(0x99)) },
      { ...terms, network: undefined },
      { ...terms, allowedPayers: addressOf(0x79) },
      { ...terms, allowedPayers: [addressOf(0x79), 7] },
      { ...terms, allowedPayers: [terms.payee] },
    ]
    expect(await runImport(lines)).toEqual({
      written: 2,
      unchanged: 1,
      bad: [
        '2 REQUEST_TERMS_DIFFER',
        '3 REQUEST_TERMS_DIFFER',
        '4 INVALID_FIELD',
        '5 INVALID_FIELD',
        '7 NETWORK_NOT_CONFIGURED',
        '8 CURRENCY_NOT_ON_NETWORK',
        '9 INVALID_FIELD',
        '10 INVALID_AMOUNT',
        '11 MISSING_FIELD',
        '12 INVALID_DATE',
        '13 UNKNOWN_LINE_FIELD',
        '15 INVALID_DATE',
        '16 INVALID_FIELD',
        '17 INVALID_DATE',
        '18 INVALID_AMOUNT',
        '19 RECEIVER_IS_CONTRACT',
        '20 RECEIVER_IS_CONTRACT',
        '21 MISSING_FIELD',
        '22 INVALID_FIELD',
        '23 INVALID_FIELD',
        '24 INVALID_ADDRESS',
      ],
    })
    expect(await listOf(other)).toEqual([])
  })
})
