import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { exportPayments } from '../../src/search/export/export-payments.ts'
import { balanceText, findDifferences } from '../support/data/ledger.ts'
import { canonical, makeRequest, storeRequest } from '../support/detection.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

let running: TestService
let shop: Account
beforeAll(async () => {
  running = await startTestService()
  shop = await createApiKeyRepository(running.database.knex).ensureAccount('shop')
})
afterAll(() => running.stop())

/** A transaction in which detection has found nothing. */
const ELSEWHERE = `0x${'e1'.repeat(32)}`

async function runImport(lines: readonly object[]) {
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const { written, unchanged, bad } = await importLines(
    Readable.from([Buffer.from(text)]),
    importPayments(running.database.knex, shop),
  )
  return { written, unchanged, bad }
}

async function exported() {
  const lines: Record<string, unknown>[] = []
  await exportPayments({ knex: running.database.knex, filter: { accountId: shop.id } }, async (page) => {
    lines.push(...page.map((payment) => JSON.parse(formatPaymentLine(payment)) as Record<string, unknown>))
  })
  return lines
}

it('keeps the id of an imported payment when detection finds its event, and takes the values of the chain', async () => {
  const { chain, service } = running
  const [payer, payee] = chain.wallets
  const { USDC } = chain.tokens
  await chain.fund(USDC, payer, 1_000_000000n)
  const { request } = await service.requests.create(shop, {
    payee,
    amount: '20',
    invoiceCurrency: 'USDC',
    paymentCurrency: 'USDC',
    network: 'ETHEREUM',
  })
  const { transactionHash } = await chain.pay(payer, {
    kind: 'ERC20',
    token: USDC.address,
    to: payee,
    amount: 20_000000n,
    paymentReference: request.paymentReference,
  })
  const line = {
    id: '0b7d2a31-6f0e-4c55-9d3b-000000000001',
    timestamp: NOW.toISOString(),
    amount: '19',
    currency: 'USDC-ETHEREUM',
    network: 'ethereum',
    status: 'PENDING',
    txHash: transactionHash,
    eventIndex: 0,
    requestId: request.requestId,
    reference: 'kept',
  }
  expect(await runImport([line])).toEqual({ written: 1, unchanged: 0, bad: 0 })
  const balance = async () => balanceText((await service.requests.get(shop, request.paymentReference)).balance)
  expect(await balance()).toMatchObject({ status: 'PARTIALLY_PAID', pendingAmount: '19' })

  await chain.mine({ blocks: 4 })
  await service.detection.scanOnce()
  const found = await exported()
  const [payment] = found
  expect(found).toHaveLength(1)
  expect(payment).toMatchObject({ id: line.id, status: 'CONFIRMED', amount: '20', reference: 'kept', eventIndex: 0 })
  expect(await balance()).toMatchObject({ status: 'PAID', paidAmount: '20' })

  // detection has changed the row, so it no longer has the hash of the line
  expect(await running.database.knex('payments').where({ account_id: shop.id }).pluck('line_hash')).toEqual([null])
  // neither the old line nor a newer, different one changes a payment that was seen on chain
  const newer = { ...line, amount: '1', updatedAt: '2099-01-01T00:00:00Z' }
  expect(await runImport([line, newer, ...found])).toEqual({ written: 0, unchanged: 3, bad: 0 })
  expect(await runImport([{ ...line, id: '0b7d2a31-6f0e-4c55-9d3b-000000000002' }])).toMatchObject({ bad: 1 })
  expect(await exported()).toEqual(found)
})

it('settles the stored requests of its payments, together with the payments found on chain', async () => {
  const { chain, service } = running
  const [payer, payee] = chain.wallets
  const { USDC } = chain.tokens
  const terms = { payee, amount: '100', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
  const { request } = await service.requests.create(shop, terms)
  const { paymentReference, requestId } = request
  await chain.pay(payer, { kind: 'ERC20', token: USDC.address, to: payee, amount: 40_000000n, paymentReference })
  await chain.mine({ blocks: 4 })
  await service.detection.scanOnce()
  const statuses = async () =>
    (await exported()).filter((line) => line.requestId === requestId).map(({ amount, status }) => [amount, status])
  const balance = async () => balanceText((await service.requests.get(shop, paymentReference)).balance)
  expect(await statuses()).toEqual([['40', 'PARTIAL']])

  const line = {
    id: '0b7d2a31-6f0e-4c55-9d3b-000000000003',
    timestamp: '2099-01-01T00:00:00Z',
    updatedAt: '2026-03-01T12:00:00Z',
    amount: '60',
    currency: 'USDC-ETHEREUM',
    network: 'ethereum',
    status: 'PARTIAL',
    txHash: ELSEWHERE,
    requestId,
  }
  expect(await runImport([line])).toEqual({ written: 1, unchanged: 0, bad: 0 })
  expect(await statuses()).toEqual([
    ['40', 'CONFIRMED'],
    ['60', 'CONFIRMED'],
  ])
  expect(await balance()).toMatchObject({ status: 'PAID', paidAmount: '100' })
  expect(await runImport([line])).toEqual({ written: 0, unchanged: 1, bad: 0 })

  const failed = { ...line, status: 'FAILED', updatedAt: '2099-01-01T00:00:01Z' }
  expect(await runImport([failed])).toEqual({ written: 1, unchanged: 0, bad: 0 })
  expect(await statuses()).toEqual([
    ['40', 'PARTIAL'],
    ['60', 'FAILED'],
  ])
  expect(await balance()).toMatchObject({ status: 'PARTIALLY_PAID', paidAmount: '40' })
  // settling has updated the rows after the times of their lines; the lines are still unchanged
  expect(await runImport([line, failed])).toEqual({ written: 0, unchanged: 2, bad: 0 })
})

it('keeps the status of a line until its request is stored', async () => {
  const { knex } = running.database
  const request = makeRequest({ network: 'ETHEREUM', payee: canonical(running.chain.wallets[1]) })
  const { paymentReference, requestId } = request
  const line = (n: number, more: object) => ({
    id: `0b7d2a31-6f0e-4c55-9d3b-00000000001${n}`,
    timestamp: NOW.toISOString(),
    amount: '50',
    currency: 'USDC-ETHEREUM',
    network: 'ethereum',
    txHash: ELSEWHERE,
    ...more,
  })
  await runImport([line(0, { status: 'CONFIRMED', requestId }), line(1, { status: 'PENDING', paymentReference })])
  const statuses = async () =>
    (await exported()).filter((one) => String(one.id).includes('-00000000001')).map(({ status }) => status)
  expect(await statuses()).toEqual(['CONFIRMED', 'PENDING'])
  await storeRequest(knex, shop, request)
  expect(await statuses()).toEqual(['PARTIAL', 'PENDING'])
  await runImport([line(1, { status: 'PARTIAL', paymentReference, updatedAt: '2099-01-01T00:00:00Z' })])
  expect(await statuses()).toEqual(['CONFIRMED', 'CONFIRMED'])
  expect(await findDifferences(knex)).toEqual([])
})
