import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../src/auth/api-key-repository.ts'
import type { Account } from '../src/domain/account.ts'
import { formatAddress } from '../src/domain/address.ts'
import { hexToBytes } from '../src/domain/hex.ts'
import { topicOfReference } from '../src/domain/payment-reference.ts'
import { importLines } from '../src/imports/import-lines.ts'
import { parseRequestLine } from '../src/imports/parse-request.ts'
import { parsedLines } from '../src/imports/parsed-lines.ts'
import { createRequestImport } from '../src/requests/import-requests.ts'
import { createRequestImportRepository } from '../src/requests/request-import-repository.ts'
import { createRequestListRepository } from '../src/requests/request-list-repository.ts'
import { createRequestRepository } from '../src/requests/request-repository.ts'
import { createRequests, type Requests } from '../src/requests/requests.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from './support/sample-chains.ts'

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
}

async function bring(lines: readonly object[], to = shop) {
  const bad: string[] = []
  const imported = createRequestImport({
    repository: createRequestImportRepository(database.knex),
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

const listOf = async (account: Account) => (await requests.list(account, { limit: 100 })).requests

describe('import of requests', () => {
  it('takes what the list answers, and makes the same requests of it elsewhere', async () => {
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
      ...balance,
      payee: formatAddress(request.payee),
      createdAt: request.createdAt.toISOString(),
    }))
    expect(await bring(answers, other)).toEqual({ written: 2, unchanged: 0, bad: [] })
    expect((await listOf(other)).map(({ request }) => request)).toEqual(
      (await listOf(shop)).map(({ request }) => request),
    )
    expect(await bring(answers, other)).toEqual({ written: 0, unchanged: 2, bad: [] })
    expect(await bring(answers, shop)).toEqual({ written: 0, unchanged: 2, bad: [] })
  })

  it('makes the topics of new requests known, and notes that earlier payments are to be looked for', async () => {
    await bring([{ ...terms, requestId: idOf(1), salt: '11'.repeat(8) }])
    const [stored] = await listOf(shop)
    const topic = hexToBytes(topicOfReference(stored?.request.paymentReference ?? '0x'))
    for (const table of ['reference_topics', 'pending_replays']) {
      const topics = await database.knex(table).where({ account_id: shop.id }).pluck<Buffer[]>('topic')
      expect(topics.length).toBe(2)
      expect(topics).toContainEqual(topic)
    }
    await database.knex('pending_replays').delete()
    await bring([{ ...terms, requestId: idOf(1) }])
    expect(await database.knex('pending_replays').where({ account_id: shop.id })).toEqual([])
  })

  it('is the same request again by the same line, also without an id', async () => {
    const lines = [terms, { ...terms, reference: 'INV-2' }, terms]
    expect(await bring(lines)).toEqual({ written: 2, unchanged: 1, bad: [] })
    expect(await bring(lines)).toEqual({ written: 0, unchanged: 3, bad: [] })
    const created = (await listOf(shop)).map(({ request }) => request.createdAt)
    expect(created).toEqual([NOW, NOW])
  })

  it('tells every bad line by number and reason while the others go in', async () => {
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
    ]
    expect(await bring(lines)).toEqual({
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
      ],
    })
    expect(await listOf(other)).toEqual([])
  })
})
