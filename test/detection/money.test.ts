import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeApprove, encodeErc20Payment } from '../../demo/network/demo-contracts.ts'
import { composeService } from '../../src/app.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { createDetectionRepository } from '../../src/detection/sql/detection-repository.ts'
import {
  addPendingReplays,
  deleteReplays,
  findReplays,
  nextReplays,
} from '../../src/detection/sql/pending-replays-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { type Address, addressToBytes } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { paymentReferenceOf, topicOfReference } from '../../src/domain/identifiers.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { encodeBatch } from '../support/chains/contract-calls.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  balanceOf,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  unmatchedOf,
} from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'

const TRANSFER_FROM = parseAbi(['function transferFrom(address from, address to, uint256 value)'])

let database: TestDatabase
let knex: Knex
let chain: TestChain
let detection: Detection

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_421, automine: false })])
  knex = database.knex
  detection = detect(knex, [configOf(chain, 'BASE')])
  const { USDC } = chain.tokens
  for (const wallet of chain.wallets.slice(0, 2)) {
    await chain.fund(USDC, wallet, 10n ** 15n)
    await chain.approve(wallet, USDC, chain.contracts.erc20FeeProxy, 10n ** 15n)
  }
  await chain.mine()
})
afterAll(async () => {
  await chain?.stop()
  await database?.drop()
})

let accounts = 0
const newAccount = () => addAccount(knex, `shop ${accounts++}`)

/** Pays whole dollars in USDC under a request's reference; the transaction waits for the next block. */
async function send(request: PaymentRequest, from: Hex, to: Address, dollars: number): Promise<Hex> {
  const paid = await chain.pay(from, {
    kind: 'ERC20',
    token: chain.tokens.USDC.address,
    to: to as Hex,
    amount: BigInt(dollars) * 1_000_000n,
    paymentReference: request.paymentReference,
  })
  return paid.transactionHash
}

async function scan(blocks = 1): Promise<void> {
  await chain.mine({ blocks })
  await detection.scanOnce()
}

/** Stores a payment as importing does. */
async function importPayment(account: Account, request: PaymentRequest, terms: Record<string, unknown>) {
  const row = {
    account_id: account.id,
    id: randomUUID(),
    status: 3,
    final: true,
    imported: true,
    timestamp: new Date(),
    updated_at: new Date(),
    network: 'BASE',
    chain_id: 'eip155:31421',
    currency: 'USDC-BASE',
    currency_symbol: 'USDC',
    amount: '100',
    payee: addressToBytes(request.payee),
    request_id: hexToBytes(request.requestId),
    status_history: JSON.stringify([{ status: 'CONFIRMED', at: new Date().toISOString() }]),
    ...terms,
  }
  await knex('payments').insert(row)
  return row.id
}

describe('money that the payee sends under a request’s reference', () => {
  it.each([
    ['a refund to an earlier payer', -3_600_000, ['REFUNDED'], []],
    ['no refund to somebody who pays later', 3_600_000, ['CONFIRMED'], ['WRONG_PAYEE']],
  ])('is %s', async (_, laterMs, statuses, reasons) => {
    const account = await newAccount()
    const [payee, payer] = chain.wallets
    const request = await storeRequest(knex, account, makeRequest({ payee: canonical(payee), network: 'BASE' }))
    await importPayment(account, request, {
      payer: addressToBytes(canonical(payer)),
      tx_hash: Buffer.alloc(32, 7),
      timestamp: new Date(Date.now() + laterMs),
    })
    await send(request, payee, canonical(payer), 100)
    await scan()
    await scan(5)
    expect((await paymentsOf(knex, account, request)).map(({ status }) => status)).toEqual(statuses)
    expect(await unmatchedOf(knex, account.id)).toEqual(reasons)
  })
})

describe('a payment through a contract', () => {
  it.each([
    ['of its funder where the chains file lists the contract', 'intermediaries', 'DIRECT'],
    ['from another chain where the contract is a bridge’s', 'executors', 'CROSSCHAIN'],
    ['of the contract where nothing lists it', 'nowhere', 'DIRECT'],
  ])('is %s', async (_, list, type) => {
    const { USDC } = chain.tokens
    const { paymentBatch, erc20FeeProxy } = chain.contracts
    const own = await createTestDatabase()
    const account = await addAccount(own.knex, 'batched')
    const [payer, payee] = chain.wallets
    const request = await storeRequest(own.knex, account, makeRequest({ payee: canonical(payee), network: 'BASE' }))
    const data = encodeFunctionData({ abi: TRANSFER_FROM, args: [payer, paymentBatch, 5n] })
    await chain.approve(payer, USDC, paymentBatch, 5n)
    await chain.mine()
    const { paymentReference } = request
    const batch = encodeBatch(paymentBatch, [
      { to: USDC.address, data },
      encodeApprove(USDC.address, erc20FeeProxy, 5n),
      encodeErc20Payment(erc20FeeProxy, USDC.address, { to: payee, amount: 5n, paymentReference }),
    ])
    await chain.send(payer, batch)
    await chain.mine()
    const config = configOf(chain, 'BASE', { [list]: [canonical(paymentBatch)] })
    const options = { knex: own.knex, chains: [config], logger: silentLogger, now: () => new Date() }
    await (await composeService(options)).detection.scanOnce()
    const payers: Record<string, string> = { intermediaries: canonical(payer), nowhere: canonical(paymentBatch) }
    const [payment] = await paymentsOf(own.knex, account, request)
    expect(payment).toMatchObject({ type, initiator: canonical(payer) })
    expect(payment?.payer).toBe(payers[list] ?? null)
    await own.drop()
  })
})

describe('an overpayment', () => {
  it('is reduced by final refunds after it, not by transfers before it', async () => {
    const [payer, payee, refundAddress] = chain.wallets
    const terms = makeRequest({ payee: canonical(payee), network: 'BASE', refundAddress: canonical(refundAddress) })
    const reference = paymentReferenceOf(terms.requestId, terms.salt, canonical(refundAddress))
    const account = await newAccount()
    await storeRequest(knex, account, terms)
    const giveBack = (dollars: number) =>
      send({ ...terms, paymentReference: reference }, payee, canonical(refundAddress), dollars)
    const overpaid = async () => (await balanceOf(knex, account, terms)).overpaidAmount
    await giveBack(30)
    await scan()
    await send(terms, payer, canonical(payee), 150)
    await scan()
    expect(await overpaid()).toBe('50')
    await giveBack(20)
    await scan()
    expect(await overpaid()).toBe('50')
    await scan(5)
    expect(await overpaid()).toBe('30')
  })
})

describe('the topics to replay when a request is stored', () => {
  it.each(['nobody', 'another account'])('outlive the process where they were known to %s', async (who) => {
    const [payer, payee] = chain.wallets
    const terms = makeRequest({ payee: canonical(payee), network: 'BASE' })
    if (who !== 'nobody') await storeRequest(knex, await newAccount(), terms)
    await send(terms, payer, canonical(payee), 100)
    await scan()
    const account = await newAccount()
    const request = await storeRequest(knex, account, terms)
    await scan()
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ amount: '100', status: 'PENDING' }])
    expect(await knex('pending_replays')).toEqual([])
  })

  it('are replayed once, however often the request is stored', async () => {
    const [payer, payee] = chain.wallets
    const terms = makeRequest({ payee: canonical(payee), network: 'BASE' })
    await send(terms, payer, canonical(payee), 100)
    await scan()
    const account = await newAccount()
    const request = await storeRequest(knex, account, terms)
    const config = configOf(chain, 'BASE')
    const limits = createNodeLimits([config])
    const exchanges = () => limits.figures().reduce((sum, { requests }) => sum + requests, 0)
    const second = detect(knex, [config], { limits })
    await second.onRequestsStored(account, [request])
    expect(await paymentsOf(knex, account, request)).toMatchObject([{ amount: '100' }])
    const once = exchanges()
    expect(once).toBeGreaterThan(0)
    await second.onRequestsStored(account, [await storeRequest(knex, account, terms)])
    expect(exchanges()).toBe(once)
  })

  it('stay pending if they are added again while they are replayed', async () => {
    const account = await newAccount()
    const [, payee] = chain.wallets
    const request = await storeRequest(knex, account, makeRequest({ payee: canonical(payee), network: 'BASE' }))
    const topic = topicOfReference(request.paymentReference)
    const first = await findReplays(knex, account.id, [topic])
    await addPendingReplays(knex, [{ accountId: account.id, topic }], false)
    await deleteReplays(knex, first)
    const second = await nextReplays(knex, first[0]?.note ?? 0, 10)
    expect(second).toMatchObject([{ accountId: account.id, topic }])
    await deleteReplays(knex, second)
    expect(await nextReplays(knex, 0, 10)).toEqual([])
  })

  it.each(['requests', 'reference_topics'])(
    'stay pending while a worker does not show the new rows of %s',
    async (table) => {
      const [payer, payee] = chain.wallets
      const terms = makeRequest({ payee: canonical(payee), network: 'BASE' })
      await send(terms, payer, canonical(payee), 100)
      await scan()
      const account = await newAccount()
      const request = await storeRequest(knex, account, terms)
      const rows: object[] = await knex(table).where({ account_id: account.id }).delete().returning('*')
      await scan()
      await knex(table).insert(rows)
      expect(await knex('pending_replays')).toHaveLength(1)
      await scan()
      expect(await paymentsOf(knex, account, request)).toMatchObject([{ amount: '100' }])
      expect(await knex('pending_replays')).toEqual([])
    },
  )

  it('lead to events of other accounts, distinguished from those that are stored for the account', async () => {
    const [payer, payee, refundAddress] = chain.wallets
    const terms = makeRequest({ payee: canonical(payee), network: 'BASE', refundAddress: canonical(refundAddress) })
    const refundReference = paymentReferenceOf(terms.requestId, terms.salt, canonical(refundAddress))
    const account = await newAccount()
    await storeRequest(knex, account, terms)
    const hashes = [
      await send(terms, payer, canonical(payee), 100),
      await send(terms, payer, canonical(refundAddress), 7),
      await send({ ...terms, paymentReference: refundReference }, payee, canonical(refundAddress), 100),
    ]
    await scan()
    const repository = createDetectionRepository(knex)
    const topics = [terms.paymentReference, refundReference].map(topicOfReference)
    const seenBy = async ({ id }: Account, isOwn: boolean) => {
      const [request] = await repository.eventsOfTopics(id, topics)
      return request?.events.filter((event) => event.isOwn === isOwn).map(({ txHash }) => txHash)
    }
    expect((await seenBy(account, true))?.toSorted()).toEqual(hashes.toSorted())
    expect(await seenBy(account, false)).toEqual([])
    const other = await newAccount()
    await storeRequest(knex, other, terms)
    expect((await seenBy(other, false))?.toSorted()).toEqual(hashes.toSorted())
    expect(await seenBy(other, true)).toEqual([])
  })
})

describe('an imported payment that is detected', () => {
  const stateOf = async (account: Account, request: PaymentRequest) =>
    (await paymentsOf(knex, account, request)).map(({ id, status, final, block_number }) => [
      id,
      status,
      final,
      block_number === null ? undefined : Number(block_number),
    ])

  async function payAndImport(terms: Record<string, unknown> = {}) {
    const account = await newAccount()
    const [payer, payee] = chain.wallets
    const request = await storeRequest(knex, account, makeRequest({ payee: canonical(payee), network: 'BASE' }))
    const txHash = await send(request, payer, canonical(payee), 100)
    const id = await importPayment(account, request, { tx_hash: hexToBytes(txHash), event_index: 0, ...terms })
    return { account, request, txHash, id }
  }

  it('becomes final by its block, whatever was imported, and keeps its id through a reorg', async () => {
    const { account, request, txHash, id } = await payAndImport()
    expect(await stateOf(account, request)).toEqual([[id, 'CONFIRMED', true, undefined]])
    await scan()
    const block = Number((await chain.receipt(txHash))?.blockNumber)
    expect(await stateOf(account, request)).toEqual([[id, 'PENDING', false, block]])
    await chain.reorg(1)
    await scan()
    expect(await stateOf(account, request)).toEqual([[id, 'PENDING', false, undefined]])
  })

  it('is the same payment when the reorg mines it again', async () => {
    const { account, request, txHash, id } = await payAndImport({ status: 1, final: false })
    await scan()
    await chain.reorg(1, [{ hash: txHash, offset: 0 }])
    await scan(5)
    const block = Number((await chain.receipt(txHash))?.blockNumber)
    expect(await stateOf(account, request)).toEqual([[id, 'CONFIRMED', true, block]])
  })

  it('is PENDING after a restart from a lower block, until it is read again', async () => {
    const { account, request, txHash, id } = await payAndImport()
    await scan(5)
    const block = Number((await chain.receipt(txHash))?.blockNumber)
    await detection.restartFrom('BASE', block - 1)
    expect(await stateOf(account, request)).toEqual([[id, 'PENDING', false, undefined]])
    await scan()
    expect(await stateOf(account, request)).toEqual([[id, 'CONFIRMED', true, block]])
  })
})
