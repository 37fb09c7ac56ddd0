import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account } from '../../src/domain/account.ts'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { forgetChain } from '../../src/store/forget-chain.ts'
import { dropLeases } from '../../src/store/leases-repository.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addAccount, canonical, configOf, detect, makeRequest, paymentsOf, storeRequest } from '../support/detection.ts'

type Rows = Record<string, { id?: string; network?: string; chain_id?: string; imported?: boolean; n?: bigint }[]>

const forgotten = { name: 'POLYGON', chainId: 'eip155:31432' }

let chains: { BASE: TestChain; POLYGON: TestChain }
let database: TestDatabase
let knex: Knex
let account: Account
let polygonRequest: PaymentRequest
let before: Rows

beforeAll(async () => {
  const [base, polygon] = await Promise.all([
    startTestChain({ chainId: 31_431 }),
    startTestChain({ chainId: 31_432, addressSeed: 1 }),
  ])
  chains = { BASE: base, POLYGON: polygon }
  database = await createTestDatabase()
  knex = database.knex
  account = await addAccount(knex, 'shop')
  for (const network of ['BASE', 'POLYGON'] as const) {
    const request = await payAndRefund(network)
    if (network === 'POLYGON') polygonRequest = request
    await payNobody(network)
  }
  await detect(knex, [configOf(base, 'BASE'), configOf(polygon, 'POLYGON')]).scanOnce()
  await importPayment()
  before = await readAll()
})
afterAll(async () => {
  await Promise.all([chains?.BASE.stop(), chains?.POLYGON.stop(), database?.drop()])
})

/** A request that is paid and refunded in part. */
async function payAndRefund(network: 'BASE' | 'POLYGON'): Promise<PaymentRequest> {
  const chain = chains[network]
  const [payer, payee, refunds] = chain.wallets
  const terms = { payee: canonical(payee), refundAddress: canonical(refunds), network }
  const request = await storeRequest(knex, account, makeRequest(terms))
  await chain.fund(chain.tokens.USDC, payer, 100_000000n)
  await pay(chain, payer, payee, request.paymentReference)
  await pay(chain, payee, refunds, paymentReferenceOf(request.requestId, request.salt, canonical(refunds)))
  return request
}

/** A payment under a reference that no account knows. */
async function payNobody(network: 'BASE' | 'POLYGON'): Promise<void> {
  const chain = chains[network]
  const [, , , payer, payee] = chain.wallets
  await chain.fund(chain.tokens.USDC, payer, 100_000000n)
  await pay(chain, payer, payee, '0x00000000000000ff')
}

function pay(chain: TestChain, payer: `0x${string}`, to: `0x${string}`, paymentReference: `0x${string}`) {
  const token = chain.tokens.USDC.address
  return chain.pay(payer, { kind: 'ERC20', token, to, amount: 40_000000n, paymentReference })
}

/** A payment that was imported: no followed chain can bring it back. */
async function importPayment(): Promise<void> {
  await knex('payments').insert({
    account_id: account.id,
    id: crypto.randomUUID(),
    imported: true,
    final: true,
    status: 3,
    timestamp: new Date(),
    updated_at: new Date(),
    network: 'POLYGON',
    currency: 'USDC-POLYGON',
    currency_symbol: 'USDC',
    amount: '5',
  })
}

/** Every table with rows of a chain, also tables that are added after this test is written. */
async function readAll(): Promise<Rows> {
  const named: string[] = await knex('information_schema.columns')
    .distinct()
    .where({ table_schema: 'public' })
    .whereIn('column_name', ['network', 'chain_id'])
    .pluck('table_name')
  const tables = [...named, 'reference_topics'].map(async (table) => [table, await knex(table)])
  return Object.fromEntries(await Promise.all(tables)) as Rows
}

describe('forgetting a chain', () => {
  let rows: number
  let after: Rows

  beforeAll(async () => {
    rows = await forgetChain(knex, forgotten, new Date())
    after = await readAll()
  })

  it('deletes what was detected there, and its requests', () => {
    // A payment, its refund, their request.
    expect(rows).toBe(3)
    const counted = ['payments', 'refunds', 'requests', 'reference_topics', 'unmatched_events', 'chain_state']
    const counts = (all: Rows) => counted.map((table) => all[table]?.length)
    expect(counts(before)).toEqual([3, 2, 2, 4, 2, 2])
    expect(counts(after)).toEqual([2, 1, 1, 2, 1, 1])
  })

  it('leaves other chains and imported payments as they were', () => {
    const kept = (row: Rows[string][number]) =>
      row.imported === true || (row.network !== forgotten.name && row.chain_id !== forgotten.chainId)
    // Statistics count what is left.
    const whole = Object.keys(before).filter((table) => !['reference_topics', 'payment_statistics'].includes(table))
    expect(whole).toContain('chain_blocks')
    expect(whole.map((table) => [table, after[table]])).toEqual(
      whole.map((table) => [table, before[table]?.filter(kept)]),
    )
  })

  it('counts what is left', () => {
    const counted = (rows: Rows) =>
      rows.payment_statistics?.map(({ network, n }) => [network, n]).toSorted(([a], [b]) => (`${a}` < `${b}` ? -1 : 1))
    expect(counted(before)).toEqual([
      ['BASE', 1n],
      ['POLYGON', 1n],
    ])
    expect(counted(after)).toEqual([
      ['BASE', 1n],
      ['POLYGON', 0n],
    ])
  })

  it('is undone by storing the request and reading the chain again', async () => {
    await storeRequest(knex, account, polygonRequest)
    await dropLeases(knex)
    await detect(knex, [configOf(chains.POLYGON, 'POLYGON')]).scanOnce()
    const detected = before.payments?.find((row) => row.network === 'POLYGON' && row.imported === false)
    expect((await paymentsOf(knex, account, polygonRequest)).map(({ id }) => id)).toEqual([detected?.id])
    expect(await knex('refunds')).toHaveLength(2)
  })
})
