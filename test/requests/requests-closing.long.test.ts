/** Requests that are cancelled or expire, on a chain and in the database, and warnings for requests that cannot be paid. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import type { TermsInput } from '../../src/domain/request-line.ts'
import { createRequestImport } from '../../src/requests/import-requests.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { createRouting } from '../../src/routing/routing.ts'
import { findDifferences } from '../support/data/ledger.ts'
import { silentLogger } from '../support/logs.ts'
import { addressOf, sampleChainDirectory } from '../support/sample-chains.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

let running: TestService
let shop: Account
let terms: TermsInput

beforeAll(async () => {
  running = await startTestService()
  shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
  const [, payee] = running.chain.wallets
  terms = { payee, amount: '10', invoiceCurrency: 'USDC', paymentCurrency: 'USDC-ETHEREUM' }
  const { USDC } = running.chain.tokens
  await running.chain.fund(USDC, running.chain.wallets[0], 1_000_000_000n)
})
afterAll(() => running?.stop())

async function ask(path: string, init: RequestInit = {}): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(running.url + path, { ...init, headers: { 'x-api-key': running.keys.shop } })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

const routesOf = ({ paymentReference }: Pick<PaymentRequest, 'paymentReference'>, more = '') =>
  ask(`/v1/request/${paymentReference}/routes?wallet=${running.chain.wallets[0]}${more}`)

const cancel = (paymentReference: string) => ask(`/v1/request/${paymentReference}:cancel`, { method: 'POST' })

function pay(paymentReference: string, amount: bigint) {
  const [payer, payee] = running.chain.wallets
  const token = running.chain.tokens.USDC.address
  return running.chain.pay(payer, {
    kind: 'ERC20',
    token,
    to: payee,
    amount,
    paymentReference: paymentReference as Hex,
  })
}

describe('a request that was cancelled', () => {
  it('has no routes in any kind of call, and its payments are still found and counted', async () => {
    const { request } = await running.service.requests.create(shop, terms)
    expect((await routesOf(request)).body['routes']).toHaveLength(1)
    const cancelled = await cancel(request.paymentReference)
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'CANCELLED', cancelledAt: '2026-03-01T12:00:00Z' } })

    const closed = { routes: [], amount: '10', warnings: [{ reason: 'REQUEST_CANCELLED' }], degraded: false }
    expect((await routesOf(request)).body).toMatchObject(closed)
    expect((await routesOf(request, '&amount=3')).body).toMatchObject({ ...closed, amount: '3' })
    const path = `/v1/request/${request.paymentReference}`
    const streamed = await fetch(`${running.url}${path}/routes:stream?wallet=${running.chain.wallets[0]}`, {
      headers: { 'x-api-key': running.keys.shop },
    })
    expect(JSON.parse(await streamed.text())).toMatchObject({ result: { answer: closed } })
    const paid = await ask(`${path}/pay?wallet=${running.chain.wallets[0]}&route=REQUEST_NETWORK_PAYMENT`)
    expect(paid).toMatchObject({ status: 400, body: { code: 'failed_precondition' } })

    await pay(request.paymentReference, 10_000_000n)
    await running.chain.mine({ blocks: 4 })
    await running.service.detection.scanOnce()
    expect((await ask(path)).body).toMatchObject({
      status: 'PAID',
      paidAmount: '10',
      cancelledAt: cancelled.body['cancelledAt'],
    })
    expect((await ask(`/payments?requestId=${request.requestId}`)).body).toMatchObject({
      payments: [{ status: 'CONFIRMED' }],
    })
    // The warning that the request is paid comes before the one that it was cancelled.
    expect((await routesOf(request)).body).toMatchObject({ routes: [], warnings: [{ reason: 'REQUEST_ALREADY_PAID' }] })
    expect(await findDifferences(running.database.knex)).toEqual([])
  })

  it('does not change when it is cancelled again', async () => {
    const { request } = await running.service.requests.create(shop, terms)
    const at = new Date(NOW.getTime() - 86_400_000)
    const { knex } = running.database
    await knex('requests')
      .where({ request_id: Buffer.from(request.requestId, 'hex') })
      .update({ cancelled_at: at })
    expect((await cancel(request.paymentReference)).body).toMatchObject({ cancelledAt: '2026-02-28T12:00:00Z' })
  })

  it('is cancelled only for the account that cancels it', async () => {
    const other = await createApiKeyRepository(running.database.knex).ensureAccount('other')
    const mine = await running.service.requests.create(shop, terms)
    const { requestId, salt, paymentReference } = mine.request
    const theirs = await running.service.requests.create(other, { ...terms, requestId, salt })
    expect(theirs.request.paymentReference).toBe(paymentReference)
    await running.service.requests.cancel(other, paymentReference)
    expect((await ask(`/v1/request/${paymentReference}`)).body['cancelledAt']).toBeUndefined()
  })

  it('is cancelled once, also while other calls create, import and pay it', async () => {
    const { knex } = running.database
    const repository = createRequestRepository(knex)
    const known = { chains: createChainDirectory([]), tokens: createTokenDirectory([]) }
    for (let round = 0; round < 3; round++) {
      const { request } = await running.service.requests.create(shop, terms)
      const { requestId, salt, paymentReference } = request
      const again: TermsInput = { ...terms, requestId, salt }
      await pay(paymentReference, 4_000_000n)
      const imports = createRequestImport({ repository, known, now: () => NOW })
      const line = { terms: request, request: { ...request, cancelledAt: new Date(NOW.getTime() + round) } }
      const cancelling = Promise.all(Array.from({ length: 4 }, () => cancel(paymentReference)))
      await Promise.all([
        cancelling,
        ...Array.from({ length: 4 }, () => running.service.requests.create(shop, again)),
        imports.write(shop, [line, line]),
        imports.write(shop, [{ ...line, request }]),
        running.service.detection.scanOnce(),
      ])
      const answers = await cancelling
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      const reported = new Set(answers.map(({ body }) => body['cancelledAt']))
      expect(reported.size).toBe(1)
      await running.chain.mine({ blocks: 4 })
      await running.service.detection.scanOnce()
      const { body } = await ask(`/v1/request/${paymentReference}`)
      expect(body).toMatchObject({ status: 'CANCELLED', paidAmount: '4', cancelledAt: [...reported][0] })
    }
    expect(await findDifferences(knex)).toEqual([])
  })
})

describe('a request that expires', () => {
  it('has no quotes that expire later than the request', async () => {
    const expiresAt = new Date(NOW.getTime() + 10_000).toISOString()
    const { request } = await running.service.requests.create(shop, { ...terms, expiresAt })
    const { body } = await routesOf(request)
    expect(body).toMatchObject({ routes: [{ expiresAt: '2026-03-01T12:00:10Z' }], warnings: [] })
    const path = `/v1/request/${request.paymentReference}/pay?wallet=${running.chain.wallets[0]}&route=REQUEST_NETWORK_PAYMENT`
    expect((await ask(path)).body).toMatchObject({ expiresAt: '2026-03-01T12:00:10Z' })
  })

  it('has no routes from its expiry on, and its payments are still found and counted', async () => {
    const requestId = `01${'ea'.repeat(32)}`
    const entry = {
      terms: { ...terms, requestId, expiresAt: NOW.toISOString() },
      createdAt: new Date(NOW.getTime() - 1),
    }
    await running.service.requests.storeAll(shop, [entry])
    const { requests } = await running.service.requests.list(shop, { requestId: [requestId] })
    const { paymentReference } = requests[0]?.request ?? { paymentReference: '0x' }
    expect((await routesOf({ paymentReference })).body).toMatchObject({
      routes: [],
      warnings: [{ reason: 'REQUEST_EXPIRED' }],
    })
    await pay(paymentReference, 10_000_000n)
    await running.chain.mine({ blocks: 4 })
    await running.service.detection.scanOnce()
    expect((await ask(`/v1/request/${paymentReference}`)).body).toMatchObject({
      status: 'PAID',
      expiresAt: '2026-03-01T12:00:00Z',
    })
    await cancel(paymentReference)
    expect((await routesOf({ paymentReference })).body).toMatchObject({
      warnings: [{ reason: 'REQUEST_ALREADY_PAID' }],
    })
  })

  it('and was cancelled is reported as cancelled', async () => {
    const requestId = `01${'eb'.repeat(32)}`
    const entry = { terms: { ...terms, requestId, expiresAt: '2026-01-01' }, createdAt: NOW }
    await running.service.requests.storeAll(shop, [entry])
    const { requests } = await running.service.requests.list(shop, { requestId: [requestId] })
    const { paymentReference } = requests[0]?.request ?? { paymentReference: '0x' }
    await cancel(paymentReference)
    expect((await routesOf({ paymentReference })).body).toMatchObject({ warnings: [{ reason: 'REQUEST_CANCELLED' }] })
  })
})

describe('the warnings of a request', () => {
  const [base, polygon] = sampleChainDirectory.configured as [ChainConfig, ChainConfig]
  const proxies = [
    { kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: addressOf(0x31), fromBlock: 0 },
    { kind: 'ERC20_CONVERSION_PROXY', version: '0.2.0', address: addressOf(0x32), fromBlock: 0 },
  ] as const
  const usd = { from: 'USD', token: 'USDC', via: [], heartbeatSeconds: 60 }
  const conversion = { path: addressOf(0x33), paths: [usd] }

  function reasonsOf(chains: readonly ChainConfig[], request: Partial<PaymentRequest>): string[] {
    const { warningsOf } = createRouting({
      chains: createChainDirectory(chains),
      tokens: createTokenDirectory(chains),
      clock: () => 0,
      logger: silentLogger,
      loadRequest: async () => undefined,
    })
    const usdc = { network: 'BASE', paymentCurrency: 'USDC-BASE', invoiceCurrency: 'USDC-BASE', payee: addressOf(0x77) }
    const asked = { ...usdc, paymentReference: '0x1122334455667788', ...request } as PaymentRequest
    expect(warningsOf(asked)).toBe(warningsOf(asked))
    return warningsOf(asked).map(({ reason }) => reason)
  }

  const paid = { ...base, contracts: proxies, conversion }
  const native = { paymentCurrency: 'ETH-BASE', invoiceCurrency: 'ETH-BASE' }

  it.each<[string, readonly ChainConfig[], Partial<PaymentRequest>, readonly string[]]>([
    ['a chain with all it takes', [paid], {}, []],
    ['a fiat currency with a path', [paid], { invoiceCurrency: 'USD' }, []],
    ['a fiat currency without a path', [paid], { invoiceCurrency: 'EUR' }, ['NO_CONVERSION_PATH']],
    [
      'a path to another token',
      [paid],
      { paymentCurrency: 'DAI-BASE', invoiceCurrency: 'USD' },
      ['NO_CONVERSION_PATH'],
    ],
    ['no conversion at all', [{ ...base, contracts: proxies }], { invoiceCurrency: 'USD' }, ['NO_CONVERSION_PATH']],
    [
      'no conversion proxy',
      [{ ...paid, contracts: [proxies[0]] }],
      { invoiceCurrency: 'USD' },
      ['NO_PAYMENT_CONTRACT'],
    ],
    ['no fee proxy', [base], {}, ['NO_PAYMENT_CONTRACT']],
    ['a fee proxy of the other kind', [paid], native, ['NO_PAYMENT_CONTRACT']],
    ['a chain that is no longer served', [polygon], {}, ['CHAIN_NOT_SUPPORTED']],
    ['a token that is no longer served', [{ ...paid, tokens: [] }], {}, ['CURRENCY_NOT_SUPPORTED']],
    ['Tron', [paid], { network: 'TRON', paymentCurrency: 'USDT-TRON' }, ['CHAIN_NOT_SUPPORTED']],
  ])('%s', (_, chains, request, reasons) => {
    expect(reasonsOf(chains, request)).toEqual(reasons)
  })
})
