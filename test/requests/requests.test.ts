import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAddress } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { topicOfReference } from '../../src/domain/identifiers.ts'
import { type PaymentRequest, requestStatuses } from '../../src/domain/payment-request.ts'
import type { TermsInput } from '../../src/domain/request-line.ts'
import { createRequests, type Requests } from '../../src/requests/requests.ts'
import type { UpdateInput } from '../../src/requests/rules/request-terms.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { settleStored } from '../../src/store/request-ledger.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { balanceText } from '../support/data/ledger.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

const PAYEE = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const TERMS: TermsInput = {
  payee: PAYEE,
  amount: '150.50',
  invoiceCurrency: 'usdc',
  paymentCurrency: 'USDC-BASE',
  network: 'base',
  reference: 'INV-1',
}

let database: TestDatabase
let requests: Requests
let acme: Account
let other: Account
let stored: string[]
let clock = Date.parse('2026-03-01T12:00:00.000Z')

beforeAll(async () => {
  database = await createTestDatabase()
  const accounts = createApiKeyRepository(database.knex)
  acme = await accounts.ensureAccount('acme')
  other = await accounts.ensureAccount('other')
  requests = createRequests({
    repository: createRequestRepository(database.knex, () => new Date(clock)),
    lists: createRequestListRepository(database.knex),
    known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
    cursorSecret: Buffer.alloc(32, 7),
    now: () => new Date((clock += 1)),
    originsOf: async () => new Set(['https://shop.example']),
    onStored: async (_, made) => {
      stored.push(...made.map(({ requestId }) => requestId))
    },
  })
})
afterAll(() => database.drop())
beforeEach(() => {
  stored = []
})

function pairs(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, nth) => [`k${nth}`, `${nth}`]))
}

function errorOf(
  promise: Promise<unknown>,
): Promise<{ reason?: string; metadata?: Record<string, string>; message?: string }> {
  return promise.then(
    () => ({ reason: 'no error' }),
    (error) => error,
  )
}

let paymentNumber = 0

async function insertPayment(
  account: Account,
  requestId: string,
  payment: { amount: string; final: boolean; status?: number; invoiceAmount?: string; currency?: string },
): Promise<void> {
  paymentNumber += 1
  await database.knex('payments').insert({
    account_id: account.id,
    id: `00000000-0000-8000-8000-${String(paymentNumber).padStart(12, '0')}`,
    status: payment.status ?? (payment.final ? 3 : 1),
    final: payment.final,
    imported: true,
    timestamp: new Date(),
    updated_at: new Date(),
    network: 'BASE',
    currency: payment.currency ?? 'USDC-BASE',
    currency_symbol: 'USDC',
    amount: payment.amount,
    refunded_amount: payment.status === 4 ? payment.amount : '0',
    invoice_amount: payment.invoiceAmount ?? null,
    request_id: hexToBytes(requestId),
  })
  await database.knex.transaction(async (trx) =>
    settleStored(await lockAccount(trx, account.id, new Date()), [hexToBytes(requestId)]),
  )
}

describe('createPaymentRequest', () => {
  it('stores canonical terms and computes the payment reference', async () => {
    const { request, balance } = await requests.create(acme, TERMS)
    expect(request).toMatchObject({
      payee: PAYEE.toLowerCase(),
      amount: { units: 1505n, places: 1 },
      invoiceCurrency: 'USDC-BASE',
      paymentCurrency: 'USDC-BASE',
      network: 'BASE',
      reference: 'INV-1',
    })
    expect(request.requestId).toMatch(/^01[0-9a-f]{64}$/)
    expect(request.salt).toMatch(/^[0-9a-f]{16}$/)
    expect(balanceText(balance)).toEqual({
      status: 'OPEN',
      paidAmount: '0',
      pendingAmount: '0',
      outstandingAmount: '150.5',
      overpaidAmount: '0',
    })
    expect(stored).toEqual([request.requestId])
    const topic = hexToBytes(topicOfReference(request.paymentReference))
    expect(await database.knex('reference_topics').where({ topic }).pluck('account_id')).toEqual([acme.id])
  })

  it('notes the topics of new requests for one search of earlier payments', async () => {
    const topicsOf = (table: string) =>
      database.knex(table).where({ account_id: account.id }).orderBy('topic').pluck('topic')
    const account = await createApiKeyRepository(database.knex).ensureAccount('topics')
    const { request } = await requests.create(account, { ...TERMS, refundAddress: formatAddress(addressOf(70)) })
    const known = await topicsOf('reference_topics')
    expect(known).toHaveLength(2)
    expect(await topicsOf('pending_replays')).toEqual(known)
    await database.knex('pending_replays').where({ account_id: account.id }).delete()
    const again = { ...TERMS, requestId: request.requestId }
    await requests.create(account, { ...again, refundAddress: formatAddress(addressOf(70)) })
    expect((await errorOf(requests.create(account, again))).reason).toBe('REQUEST_TERMS_DIFFER')
    await requests.storeAll(account, [{ terms: again, createdAt: new Date() }])
    expect(await topicsOf('reference_topics')).toEqual(known)
    expect(await topicsOf('pending_replays')).toEqual([])
  })

  it('computes the reference that other software computes for the same terms', async () => {
    const requestId = '01e273ecc29d4b526df3a0f1f05ffc59372af8752c2b678096e49ac270416a7cdb'
    const salt = 'ea3bc7caf64110ca'
    const { request } = await requests.create(acme, { ...TERMS, requestId, salt })
    // keccak256("01e2…7cdbea3bc7caf64110ca" + lower(payee)), last 8 bytes, computed with another implementation
    expect(request.paymentReference).toBe('0x9f61fa0fdbde4e8c')
  })

  it('answers the same id and terms with the stored request, also without the salt', async () => {
    const first = await requests.create(acme, TERMS)
    const requestId = first.request.requestId
    expect((await requests.create(acme, { ...TERMS, requestId, payee: PAYEE.toLowerCase() })).request).toEqual(
      first.request,
    )
    expect((await requests.create(acme, { ...TERMS, requestId, salt: first.request.salt })).request).toEqual(
      first.request,
    )
  })

  it.each([
    ['amount', { amount: '150.51' }],
    ['payee', { payee: formatAddress(addressOf(77)) }],
    ['reference', { reference: 'INV-2' }],
    ['reference', { reference: undefined }],
    ['refundAddress', { refundAddress: formatAddress(addressOf(78)) }],
    ['allowedPayers', { allowedPayers: [formatAddress(addressOf(78))] }],
    ['salt', { salt: '0000000000000001' }],
    ['invoiceCurrency', { invoiceCurrency: 'USD' }],
    ['returnUrl', { returnUrl: 'https://shop.example/orders/1' }],
  ])('refuses the same id with another %s', async (term, change) => {
    const { request } = await requests.create(acme, TERMS)
    const error = await errorOf(requests.create(acme, { ...TERMS, requestId: request.requestId, ...change }))
    expect(error.reason).toBe('REQUEST_TERMS_DIFFER')
    expect(error.message).toContain(term)
  })

  it('keeps the title that a request has: it is no term', async () => {
    const { request } = await requests.create(acme, { ...TERMS, title: 'Two books' })
    const again = { ...TERMS, requestId: request.requestId, title: 'Three books' }
    expect((await requests.create(acme, again)).request).toEqual(request)
    expect(request.title).toBe('Two books')
    const keyed = await requests.create(acme, { ...TERMS, title: 'One book' }, { idempotencyKey: 'titled' })
    const another = { title: 'No book', metadata: { order: '2' }, expiresAt: '2027-01-01' }
    const repeated = await requests.create(acme, { ...TERMS, ...another }, { idempotencyKey: 'titled' })
    expect(repeated.request).toEqual(keyed.request)
  })

  it.each([
    ['title', '', 'INVALID_TITLE', 'it is empty'],
    ['title', 'x'.repeat(81), 'INVALID_TITLE', 'more than 80 characters'],
    ['title', 'two\nlines', 'INVALID_TITLE', 'control character'],
    ['title', 'Pay 1 \u202e0001 \u202cUSDC', 'INVALID_TITLE', 'changes the direction of text'],
    ['title', '\ud800', 'INVALID_TITLE', 'not valid Unicode'],
    ['metadata', { '': '1' }, 'INVALID_METADATA', '"" is no key'],
    ['metadata', { ['k'.repeat(41)]: '1' }, 'INVALID_METADATA', 'is no key'],
    ['metadata', { 'or der': '1' }, 'INVALID_METADATA', '"or der" is no key'],
    ['metadata', { 'a=b': '1' }, 'INVALID_METADATA', 'is no key'],
    ['metadata', { größe: '1' }, 'INVALID_METADATA', 'is no key'],
    ['metadata', { 'order\n': '1' }, 'INVALID_METADATA', 'is no key'],
    ['metadata', { order: '' }, 'INVALID_METADATA', 'the value of "order": it is empty'],
    ['metadata', { order: 'x'.repeat(501) }, 'INVALID_METADATA', 'more than 500 characters'],
    ['metadata', { order: 'two\nlines' }, 'INVALID_METADATA', 'control character'],
    ['metadata', { order: '\ud800' }, 'INVALID_METADATA', 'not valid Unicode'],
    ['metadata', pairs(21), 'TOO_MANY_VALUES', '21, at most 20'],
    ['returnUrl', '', 'INVALID_RETURN_URL', 'no address of a page'],
    ['returnUrl', '/orders/1', 'INVALID_RETURN_URL', 'no address of a page'],
    ['returnUrl', 'https://shop.example/a b', 'INVALID_RETURN_URL', 'no address of a page'],
    ['returnUrl', 'http://shop.example/', 'INVALID_RETURN_URL', 'does not begin with https://'],
    ['returnUrl', 'javascript:alert(1)', 'INVALID_RETURN_URL', 'does not begin with https://'],
    ['returnUrl', 'https://shop.example@evil.example/', 'INVALID_RETURN_URL', 'a user name or a password'],
    ['returnUrl', 'https://evil.example/', 'INVALID_RETURN_URL', 'no publishable key'],
    ['returnUrl', 'https://shop.example.evil.example/', 'INVALID_RETURN_URL', 'no publishable key'],
    ['returnUrl', 'https://shop.example:8443/', 'INVALID_RETURN_URL', 'no publishable key'],
  ])('refuses the %s %j: %s, %s', async (field, value, reason, says) => {
    const error = await errorOf(requests.create(acme, { ...TERMS, [field]: value }))
    expect(error.reason).toBe(reason)
    expect(error.message).toContain(says)
  })

  it.each([
    ['title', 'Deux livres \u2019 \u{1f4da} مرحبا'],
    ['title', '\u{1f4da}'.repeat(80)],
    ['returnUrl', 'https://shop.example/orders/1?a=b#top'],
    ['metadata', pairs(20)],
    ['metadata', { ['k'.repeat(40)]: '\u{1f4da}'.repeat(500), 'A-z_0.9': ' a=b, "c" \u200e' }],
    ['metadata', JSON.parse('{"__proto__":"1","constructor":"2"}')],
  ])('takes the %s %j', async (field, value) => {
    expect((await requests.create(acme, { ...TERMS, [field]: value })).request).toMatchObject({ [field]: value })
  })

  it('keeps accounts apart: the same id and terms are stored once for each', async () => {
    const { request } = await requests.create(acme, TERMS)
    const again = await requests.create(other, { ...TERMS, requestId: request.requestId, salt: request.salt })
    expect(again.request.paymentReference).toBe(request.paymentReference)
    expect(again.request.createdAt).not.toEqual(request.createdAt)
  })

  it('creates one request for concurrent calls with one idempotency key', async () => {
    const calls = Array.from({ length: 8 }, () => requests.create(acme, TERMS, { idempotencyKey: 'order-7' }))
    const made = new Set((await Promise.all(calls)).map(({ request }) => request.requestId))
    expect(made.size).toBe(1)
    const elsewhere = await requests.create(other, TERMS, { idempotencyKey: 'order-7' })
    expect(made).not.toContain(elsewhere.request.requestId)
    const error = await errorOf(requests.create(acme, { ...TERMS, amount: '1' }, { idempotencyKey: 'order-7' }))
    expect(error.reason).toBe('IDEMPOTENCY_KEY_REUSED')
  })

  it('answers a repeated call after the expiry with the request of the first call, and creates no new one', async () => {
    const expiresAt = new Date(clock + 5).toISOString()
    const { request } = await requests.create(acme, { ...TERMS, expiresAt }, { idempotencyKey: 'expiring' })
    expect(request.expiresAt).toEqual(new Date(expiresAt))
    clock += 10
    const again = await requests.create(acme, { ...TERMS, expiresAt }, { idempotencyKey: 'expiring' })
    expect(again.request).toEqual(request)
    const { requestId } = request
    expect((await requests.create(acme, { ...TERMS, expiresAt, requestId })).request).toEqual(request)
    for (const options of [{}, { idempotencyKey: 'another' }]) {
      expect((await errorOf(requests.create(acme, { ...TERMS, expiresAt }, options))).reason).toBe('EXPIRY_PAST')
    }
    // The refused call has not claimed the key.
    const later = new Date(clock + 60_000).toISOString()
    await requests.create(acme, { ...TERMS, expiresAt: later }, { idempotencyKey: 'another' })
    expect((await requests.create(acme, { ...TERMS, requestId })).request).toEqual(request)
  })

  it.each<[string, Partial<TermsInput>, Partial<PaymentRequest>]>([
    ['no network beside an id', { network: undefined }, { network: 'BASE', paymentCurrency: 'USDC-BASE' }],
    [
      'an alias within an id',
      { network: undefined, paymentCurrency: 'usdc-MATIC' },
      { paymentCurrency: 'USDC-POLYGON' },
    ],
    ['an alias of the network itself', { network: '137', paymentCurrency: 'USDC-matic' }, { network: 'POLYGON' }],
    ['an alias in both currencies', { invoiceCurrency: 'usdc-8453' }, { invoiceCurrency: 'USDC-BASE' }],
    ['the most base units', { amount: `${2n ** 256n / 10n ** 6n}.639935` }, { network: 'BASE' }],
  ])('accepts %s', async (_, change, made) => {
    expect((await requests.create(acme, { ...TERMS, ...change })).request).toMatchObject(made)
  })

  it.each<[string, Partial<TermsInput>, string, string]>([
    ['a token as payee', { payee: formatAddress(addressOf(0x12)) }, 'RECEIVER_IS_CONTRACT', 'payee'],
    ['a contract as payee', { payee: formatAddress(addressOf(0x99)) }, 'RECEIVER_IS_CONTRACT', 'payee'],
    ['a token as refund address', { refundAddress: addressOf(0x13) }, 'RECEIVER_IS_CONTRACT', 'refundAddress'],
    ['78 nines', { amount: '9'.repeat(78) }, 'INVALID_AMOUNT', 'amount'],
    ['one base unit too many', { amount: `${2n ** 256n / 10n ** 6n}.639936` }, 'INVALID_AMOUNT', 'amount'],
    ['78 nines of dollars', { amount: '9'.repeat(78), invoiceCurrency: 'USD' }, 'INVALID_AMOUNT', 'amount'],
    ['no network beside a symbol', { network: undefined, paymentCurrency: 'USDC' }, 'MISSING_FIELD', 'network'],
    ['an id of another chain', { paymentCurrency: 'USDC-matic' }, 'CURRENCY_NOT_ON_NETWORK', 'paymentCurrency'],
    ['an address with a wrong checksum', { payee: PAYEE.replace('C8', 'c8') }, 'INVALID_ADDRESS', 'payee'],
    ['an address of 39 digits', { payee: PAYEE.slice(0, -1) }, 'INVALID_ADDRESS', 'payee'],
    ['the zero address', { payee: `0x${'0'.repeat(40)}` }, 'INVALID_ADDRESS', 'payee'],
    ['a Tron payee on an EVM chain', { payee: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' }, 'INVALID_ADDRESS', 'payee'],
    ['a bad refund address', { refundAddress: '0x1' }, 'INVALID_ADDRESS', 'refundAddress'],
    ['the payee as refund address', { refundAddress: PAYEE.toLowerCase() }, 'REFUND_ADDRESS_IS_PAYEE', 'refundAddress'],
    ['an exponent', { amount: '1e3' }, 'INVALID_AMOUNT', 'amount'],
    ['a hexadecimal amount', { amount: '0x10' }, 'INVALID_AMOUNT', 'amount'],
    ['a blank before the amount', { amount: ' 1' }, 'INVALID_AMOUNT', 'amount'],
    ['minus zero', { amount: '-0' }, 'INVALID_AMOUNT', 'amount'],
    ['zero', { amount: '0' }, 'INVALID_AMOUNT', 'amount'],
    ['a negative amount', { amount: '-1' }, 'INVALID_AMOUNT', 'amount'],
    ['seven places of USDC', { amount: '1.0000001' }, 'INVALID_AMOUNT', 'amount'],
    ['100 digits', { amount: '9'.repeat(100) }, 'INVALID_AMOUNT', 'amount'],
    ['nine places of a fiat currency', { invoiceCurrency: 'USD', amount: '0.000000001' }, 'INVALID_AMOUNT', 'amount'],
    ['an unknown network', { network: 'bse' }, 'UNKNOWN_NETWORK', 'network'],
    ['a network that is not configured', { network: 'ethereum' }, 'NETWORK_NOT_CONFIGURED', 'network'],
    ['a token of another chain', { paymentCurrency: 'USDC-POLYGON' }, 'CURRENCY_NOT_ON_NETWORK', 'paymentCurrency'],
    [
      'a bridged token that the chain lacks',
      { paymentCurrency: 'USDC.e' },
      'CURRENCY_NOT_ON_NETWORK',
      'paymentCurrency',
    ],
    ['an unknown invoice currency', { invoiceCurrency: 'USDX' }, 'UNKNOWN_CURRENCY', 'invoiceCurrency'],
    ['a short request id', { requestId: '01ab' }, 'INVALID_REQUEST_ID', 'requestId'],
    ['a salt of other letters', { salt: 'salt' }, 'INVALID_SALT', 'salt'],
    ['an empty reference', { reference: '' }, 'INVALID_REFERENCE', 'reference'],
    ['a reference of 257 characters', { reference: 'x'.repeat(257) }, 'INVALID_REFERENCE', 'reference'],
    ['a NUL in the reference', { reference: 'a\u0000b' }, 'INVALID_REFERENCE', 'reference'],
    ['a lone surrogate in the reference', { reference: 'a\ud800' }, 'INVALID_REFERENCE', 'reference'],
  ])('refuses %s', async (_, change, reason, field) => {
    const error = await errorOf(requests.create(acme, { ...TERMS, ...change }))
    expect(error.reason).toBe(reason)
    expect(error.metadata?.field).toBe(field)
    expect(stored).toEqual([])
  })

  it('refuses an invoice in a token that is not the payment currency', async () => {
    const error = await errorOf(requests.create(acme, { ...TERMS, invoiceCurrency: 'USDT' }))
    expect(error.reason).toBe('CURRENCY_MISMATCH')
  })

  it.each(['', 'a b', 'x'.repeat(256), 'ü'])('refuses the idempotency key "%s"', async (idempotencyKey) => {
    expect((await errorOf(requests.create(acme, TERMS, { idempotencyKey }))).reason).toBe('INVALID_IDEMPOTENCY_KEY')
  })
})

describe('updatePaymentRequest', () => {
  const update = (paymentReference: string, change: Partial<UpdateInput>, account = acme) =>
    requests.update(account, { paymentReference, metadata: {}, ...change }, { keyId: undefined })
  const rowOf = ({ requestId }: PaymentRequest) =>
    database
      .knex('requests')
      .where({ account_id: acme.id, request_id: hexToBytes(requestId) })
      .first()

  it('changes what is sent, keeps the rest, and clears by an empty text', async () => {
    const expiresAt = '2027-01-01T00:00:00Z'
    const made = (await requests.create(acme, { ...TERMS, title: 'Two', metadata: { a: '1', b: '2' }, expiresAt }))
      .request
    const reference = made.paymentReference
    const first = (await update(reference, { metadata: { a: '', b: '3', c: 'x' } })).request
    expect(first).toEqual({ ...made, metadata: { b: '3', c: 'x' } })
    const second = (await update(reference, { title: 'Three', expiresAt: '2027-02-01' })).request
    expect(second).toEqual({ ...first, title: 'Three', expiresAt: new Date('2027-02-01T23:59:59.999Z') })
    const cleared = (await update(reference, { title: '', expiresAt: '', metadata: { b: '', c: '', none: '' } }))
      .request
    expect(cleared).toEqual({ ...made, title: undefined, expiresAt: undefined, metadata: undefined })
    await requests.cancel(acme, reference)
    expect((await update(reference, { metadata: { late: '1' } })).request.metadata).toEqual({ late: '1' })
    const again = { ...TERMS, requestId: made.requestId, title: 'x', metadata: { other: '1' } }
    expect((await requests.create(acme, again)).request.metadata).toEqual({ late: '1' })
  })

  it('writes one line into the audit log and one change for what changes, and nothing where nothing does', async () => {
    const { request } = await requests.create(acme, { ...TERMS, title: 'Two', metadata: { a: '1' } })
    const id = hexToBytes(request.requestId)
    const logged = () =>
      database.knex('payment_changes').where({ account_id: acme.id, changed_request: id }).pluck('kind')
    const audited = () => database.knex('audit_log').where({ action: 'UPDATE_REQUEST' }).pluck('details')
    const before = (await audited()).length
    await update(request.paymentReference, { title: 'Two', expiresAt: '', metadata: { a: '1', b: '' } })
    expect([await logged(), (await audited()).length]).toEqual([[], before])
    await update(request.paymentReference, { title: 'Three', metadata: { a: '1', b: 'secret' } })
    expect(await logged()).toEqual([4])
    const changed = ['title', 'metadata.b']
    expect((await audited()).slice(before)).toEqual([{ requestId: request.requestId, changed }])
  })

  it('has an expiry that moves logged again', async () => {
    const { request } = await requests.create(acme, { ...TERMS, expiresAt: '2027-01-01' })
    const tell = () =>
      database
        .knex('requests')
        .where({ request_id: hexToBytes(request.requestId) })
        .update({ expiry_logged: true })
    await tell()
    await update(request.paymentReference, { title: 'x', expiresAt: '2027-01-01' })
    expect((await rowOf(request)).expiry_logged).toBe(true)
    await update(request.paymentReference, { expiresAt: '2027-01-02' })
    expect((await rowOf(request)).expiry_logged).toBe(false)
    await tell()
    await update(request.paymentReference, { expiresAt: '' })
    expect((await rowOf(request)).expiry_logged).toBe(false)
  })

  it.each<[string, Partial<UpdateInput>, string]>([
    ['a reference that is none', { paymentReference: 'zz' }, 'INVALID_PAYMENT_REFERENCE'],
    ['an unknown reference', { paymentReference: '0x0000000000000001' }, 'REQUEST_NOT_FOUND'],
    ['an expiry that is past', { expiresAt: '2026-02-01' }, 'EXPIRY_PAST'],
    ['an expiry that is no time', { expiresAt: 'soon' }, 'INVALID_DATE'],
    ['a long title', { title: 'x'.repeat(81) }, 'INVALID_TITLE'],
    ['a key that is none', { metadata: { 'a b': '' } }, 'INVALID_METADATA'],
    ['a long value', { metadata: { a: 'x'.repeat(501) } }, 'INVALID_METADATA'],
    ['more pairs than fit', { metadata: pairs(20) }, 'TOO_MANY_VALUES'],
  ])('refuses %s, and changes nothing', async (_, change, reason) => {
    const made = (await requests.create(acme, { ...TERMS, metadata: { first: '1' } })).request
    expect((await errorOf(update(made.paymentReference, change))).reason).toBe(reason)
    expect((await requests.get(acme, made.paymentReference)).request).toEqual(made)
    expect((await errorOf(update(made.paymentReference, { title: 'mine' }, other))).reason).toBe('REQUEST_NOT_FOUND')
  })
})

describe('storeAll', () => {
  it('stores requests with their times, and leaves stored ones as they are', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('bulk')
    const { request: first } = await requests.create(account, TERMS)
    const { salt, requestId } = first
    const entries = Array.from({ length: 1_100 }, (_, i) => ({
      terms:
        i === 700 ? { ...TERMS, requestId, salt } : { ...TERMS, requestId: `01${String(i).padStart(64, '0')}`, salt },
      createdAt: new Date(Date.UTC(2025, 0, 1, 0, 0, i)),
    }))
    await requests.storeAll(account, entries)
    await requests.storeAll(account, entries)
    expect(await database.knex('requests').where({ account_id: account.id }).count()).toEqual([{ count: 1_100n }])
    expect((await requests.get(account, first.paymentReference)).request).toEqual(first)
    expect(stored.slice(-1_100)).toContain(requestId)
  })

  it('keeps when a request was cancelled elsewhere, and takes an expiry in the past', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('bulk-closed')
    const [createdAt, cancelledAt] = [new Date('2025-01-01T00:00:00Z'), new Date('2025-01-02T00:00:00Z')]
    const terms = { ...TERMS, expiresAt: '2025-01-03T00:00:00Z' }
    await requests.storeAll(account, [{ terms, createdAt, cancelledAt }])
    const [found] = (await requests.list(account, {})).requests
    expect(found?.request).toMatchObject({ createdAt, cancelledAt, expiresAt: new Date(terms.expiresAt) })
  })

  it('stores none when one is invalid', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('bulk-bad')
    const entries = [TERMS, { ...TERMS, amount: '0' }].map((terms) => ({ terms, createdAt: new Date() }))
    expect((await errorOf(requests.storeAll(account, entries))).reason).toBe('INVALID_AMOUNT')
    expect((await requests.list(account, {})).requests).toEqual([])
  })
})

describe('getPaymentRequest', () => {
  it('takes a reference in any case, with or without 0x, and finds only requests of the account', async () => {
    const { request } = await requests.create(acme, TERMS)
    const digits = request.paymentReference.slice(2)
    for (const text of [request.paymentReference, digits, digits.toUpperCase(), `0x${digits.toUpperCase()}`]) {
      expect((await requests.get(acme, text)).request).toEqual(request)
    }
    expect((await errorOf(requests.get(other, digits))).reason).toBe('REQUEST_NOT_FOUND')
  })

  it.each(['', '0x', '0x12', 'zzzzzzzzzzzzzzzz', '0x11223344556677889'])('refuses the reference "%s"', async (text) => {
    expect((await errorOf(requests.get(acme, text))).reason).toBe('INVALID_PAYMENT_REFERENCE')
  })

  it('counts final and pending payments, and never goes below zero', async () => {
    const { request } = await requests.create(acme, TERMS)
    const balance = async () => balanceText((await requests.get(acme, request.paymentReference)).balance)
    await insertPayment(acme, request.requestId, { amount: '100', final: true, status: 2 })
    expect(await balance()).toMatchObject({ status: 'PARTIALLY_PAID', paidAmount: '100', outstandingAmount: '50.5' })
    await insertPayment(acme, request.requestId, { amount: '50.5', final: false })
    expect(await balance()).toMatchObject({ status: 'PENDING', pendingAmount: '50.5', outstandingAmount: '0' })
    await insertPayment(acme, request.requestId, { amount: '50.500001', final: true })
    expect(await balance()).toEqual({
      status: 'PAID',
      paidAmount: '150.500001',
      pendingAmount: '50.5',
      outstandingAmount: '0',
      overpaidAmount: '50.500001',
    })
  })

  it('adds up payments of any size, which an import may have brought', async () => {
    const { request } = await requests.create(acme, TERMS)
    const nines = '9'.repeat(78)
    for (const final of [true, true, false]) await insertPayment(acme, request.requestId, { amount: nines, final })
    const { balance } = await requests.get(acme, request.paymentReference)
    expect(balanceText(balance)).toMatchObject({
      status: 'PAID',
      paidAmount: `1${'9'.repeat(77)}8`,
      pendingAmount: nines,
      outstandingAmount: '0',
    })
  })

  it('counts neither failed payments nor those of another account', async () => {
    const { request } = await requests.create(acme, TERMS)
    await insertPayment(acme, request.requestId, { amount: '150.5', final: true, status: 5 })
    await insertPayment(other, request.requestId, { amount: '150.5', final: true })
    expect((await requests.get(acme, request.paymentReference)).balance.status).toBe('OPEN')
  })

  it('is REFUNDED when all counted payments were returned, whatever the others are', async () => {
    const { request } = await requests.create(acme, TERMS)
    const status = async () => (await requests.get(acme, request.paymentReference)).balance.status
    await insertPayment(acme, request.requestId, { amount: '5', final: true, status: 4, currency: 'DAI-BASE' })
    expect(await status()).toBe('OPEN')
    await insertPayment(acme, request.requestId, { amount: '150.5', final: true, status: 4 })
    await insertPayment(acme, request.requestId, { amount: '5', final: true, status: 3, currency: 'DAI-BASE' })
    expect(await status()).toBe('REFUNDED')
  })

  it('counts a fiat request in its invoice currency', async () => {
    const { request } = await requests.create(acme, { ...TERMS, invoiceCurrency: 'USD', amount: '100' })
    await insertPayment(acme, request.requestId, { amount: '99.98', invoiceAmount: '100', final: true })
    expect(balanceText((await requests.get(acme, request.paymentReference)).balance)).toMatchObject({
      status: 'PAID',
      paidAmount: '100',
    })
  })

  it('binds the account, so that one shard answers, and reads no payment', async () => {
    const { request } = await requests.create(acme, TERMS)
    const seen: { sql: string; bindings: readonly unknown[] }[] = []
    const note = (query: (typeof seen)[number]) => void seen.push(query)
    database.knex.on('query', note)
    await requests.get(acme, request.paymentReference)
    database.knex.off('query', note)
    const reads = seen.filter(({ sql }) => sql.includes('requests'))
    expect(reads.map(({ bindings }) => bindings)).toEqual([[acme.id, hexToBytes(request.paymentReference), 1]])
    expect(seen.some(({ sql }) => sql.includes('payments'))).toBe(false)
  })

  it('is REFUNDED when all counted payments were fully returned', async () => {
    const { request } = await requests.create(acme, TERMS)
    await insertPayment(acme, request.requestId, { amount: '150.5', final: true, status: 4 })
    const { balance } = await requests.get(acme, request.paymentReference)
    expect(balanceText(balance)).toMatchObject({ status: 'REFUNDED', outstandingAmount: '0' })
  })
})

describe('listPaymentRequests', () => {
  it('walks every request once, forward and back, newest first, also requests of one instant', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('walker')
    const made: string[] = []
    for (let i = 0; i < 23; i++) {
      if (i % 3 !== 0) clock -= 1
      made.push((await requests.create(account, { ...TERMS, reference: `R${i}` })).request.requestId)
    }
    const forward: string[] = []
    let page = await requests.list(account, { limit: 5 })
    const pages = [page]
    while (page.nextCursor !== undefined) {
      page = await requests.list(account, { cursor: page.nextCursor })
      pages.push(page)
    }
    for (const { requests: each } of pages) forward.push(...each.map(({ request }) => request.requestId))
    expect(forward.toSorted()).toEqual(made.toSorted())
    expect(pages.map(({ requests: each }) => each.length)).toEqual([5, 5, 5, 5, 3])
    const times = pages.flatMap(({ requests: each }) => each.map(({ request }) => request.createdAt.getTime()))
    expect(times).toEqual(times.toSorted((a, b) => b - a))

    const backward: string[][] = []
    while (page.prevCursor !== undefined) {
      page = await requests.list(account, { cursor: page.prevCursor })
      backward.unshift(page.requests.map(({ request }) => request.requestId))
    }
    expect(backward.flat()).toEqual(forward.slice(0, 20))
    expect(page.prevCursor).toBeUndefined()
  })

  it('filters by the status of the balance', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('filter')
    const ids: Record<string, string> = {}
    for (const status of requestStatuses) {
      const expiresAt = status === 'EXPIRED' ? { expiresAt: new Date(clock + 100).toISOString() } : {}
      const { request } = await requests.create(account, { ...TERMS, ...expiresAt })
      ids[status] = request.requestId
      if (status === 'CANCELLED') await requests.cancel(account, request.paymentReference)
    }
    clock += 1_000
    await insertPayment(account, ids.PARTIALLY_PAID ?? '', { amount: '1', final: true, status: 2 })
    await insertPayment(account, ids.PENDING ?? '', { amount: '151', final: false })
    await insertPayment(account, ids.PAID ?? '', { amount: '150.5', final: true })
    await insertPayment(account, ids.REFUNDED ?? '', { amount: '150.5', final: true, status: 4 })
    for (const status of requestStatuses) {
      const { requests: found } = await requests.list(account, { status: [status] })
      expect(found.map(({ request, balance }) => [request.requestId, balance.status])).toEqual([[ids[status], status]])
    }
    const both = await requests.list(account, { status: ['PAID', 'OPEN'] })
    expect(both.requests.map(({ balance }) => balance.status)).toEqual(['PAID', 'OPEN'])
  })

  it('refuses cursors that were changed, are of another account, or carry another filter', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('cursors')
    for (let i = 0; i < 3; i++) await requests.create(account, TERMS)
    const { nextCursor = '' } = await requests.list(account, { status: ['OPEN'], limit: 1 })
    const reason = async (who: Account, cursor: string, status: readonly 'PAID'[] = []) =>
      (await errorOf(requests.list(who, { status, cursor }))).reason
    for (let i = 0; i < nextCursor.length; i++) {
      const flipped = nextCursor[i] === 'A' ? 'B' : 'A'
      expect(await reason(account, nextCursor.slice(0, i) + flipped + nextCursor.slice(i + 1))).toBe('INVALID_CURSOR')
    }
    expect(await reason(acme, nextCursor)).toBe('INVALID_CURSOR')
    expect(await reason(account, '')).toBe('INVALID_CURSOR')
    expect(await reason(account, nextCursor, ['PAID'])).toBe('CURSOR_MISMATCH')
    expect((await requests.list(account, { status: ['OPEN'], cursor: nextCursor, limit: 50 })).requests).toHaveLength(2)
  })

  it('clamps the limit and refuses a negative one', async () => {
    expect((await requests.list(acme, { limit: 5000 })).limit).toBe(100)
    expect((await requests.list(acme, { limit: 0 })).limit).toBe(20)
    expect((await errorOf(requests.list(acme, { limit: -1 }))).reason).toBe('INVALID_LIMIT')
  })
})
