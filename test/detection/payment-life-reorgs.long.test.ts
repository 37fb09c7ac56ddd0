import { randomBytes } from 'node:crypto'
import { type Hex, keccak256, toBytes } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  type PaymentJson,
  payAsQuoted,
  type RequestJson,
  startLifeService,
} from '../support/chains/payment-life.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

const FINALITY = 10
/** How often detection replays topics that became known later. */
const SWEEP_EVERY_MS = 300_000

let database: TestDatabase
let chain: TestChain
let proxy: RpcProxy
let service: LifeService
let shop: Caller
let payer: Hex
let friend: Hex

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_531, automine: false })])
  proxy = await startRpcProxy(chain.rpcUrl)
  const config = { ...chain.config({ name: 'BASE', finalityDepth: FINALITY }), rpcUrls: [proxy.url] }
  service = await startLifeService(database.knex, [config])
  shop = await service.caller('shop')
  ;[payer, friend] = chain.wallets
  for (const wallet of [payer, friend]) {
    await chain.fund(chain.tokens.USDC, wallet, 10n ** 15n)
    await chain.approve(wallet, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 10n ** 15n)
  }
})
afterEach(() => proxy.fail())
afterAll(async () => {
  await service?.stop()
  await proxy?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
})

let seeds = 0
const freshPayee = () => freshAddress(`reorged ${seeds++}`)

type Payable = Pick<RequestJson, 'payee' | 'paymentReference'>

/** Pays whole dollars in USDC; the transaction waits for the next block. */
async function send({ payee, paymentReference }: Payable, dollars: number, from = payer): Promise<Hex> {
  const token = chain.tokens.USDC.address
  const amount = BigInt(dollars) * 1_000_000n
  const paid = await chain.pay(from, { kind: 'ERC20', token, to: payee, amount, paymentReference })
  return paid.transactionHash
}

async function scan(blocks = 1): Promise<void> {
  await chain.mine({ blocks })
  await service.scan()
}

/** What a client knows before it stores the request: the terms, and the reference that results from them. */
function drawRequest({ payee = freshPayee() } = {}) {
  const requestId = `01${randomBytes(32).toString('hex')}`
  const salt = randomBytes(8).toString('hex')
  const digest = keccak256(toBytes((requestId + salt + payee).toLowerCase()))
  return {
    terms: { requestId, salt, payee, amount: '100' },
    payee,
    paymentReference: `0x${digest.slice(-16)}` as const,
  }
}

describe('a reorg', () => {
  it('removes a PENDING payment, and its request is OPEN again', async () => {
    const request = await shop.createRequest({ payee: freshPayee(), amount: '100' })
    await scan()
    await send(request, 100)
    await scan()
    const [payment] = (await shop.paymentsOf(request)) as [PaymentJson]
    expect(payment.status).toBe('PENDING')
    await chain.reorg(1)
    await scan()
    expect(await shop.reasonOf(`/v1/payments/${payment.id}`)).toEqual([404, 'PAYMENT_NOT_FOUND'])
    expect((await shop.search({ txHash: payment.txHash })).payments).toEqual([])
    expect(await shop.request(request.paymentReference)).toEqual(request)
    const { routes, amount } = await shop.routes(request.paymentReference, { wallet: payer })
    expect([routes.length, amount]).toEqual([1, '100'])
  })

  it('that mines a payment again keeps its id, in its new block', async () => {
    const request = await shop.createRequest({ payee: freshPayee(), amount: '100' })
    await scan()
    const first = await send(request, 60)
    await chain.mine()
    const second = await send(request, 40, friend)
    await scan()
    const before = await shop.paymentsOf(request)
    expect(before.map(({ txHash }) => txHash)).toEqual([first, second])
    // In the other order: the second one first.
    await chain.reorg(2, [
      { hash: second, offset: 0 },
      { hash: first, offset: 1 },
    ])
    await service.scan()
    const after = await shop.paymentsOf(request)
    expect(after.map(({ id, txHash, status }) => [id, txHash, status])).toEqual([
      [before[1]?.id, second, 'PENDING'],
      [before[0]?.id, first, 'PENDING'],
    ])
    for (const { txHash, blockNumber } of after) {
      expect(blockNumber).toBe(String((await chain.receipt(txHash))?.blockNumber))
    }
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'PENDING', pendingAmount: '100' })
    await scan(FINALITY)
    expect((await shop.paymentsOf(request)).map(({ status }) => status)).toEqual(['CONFIRMED', 'CONFIRMED'])
  })

  it('removes one part of a payment in parts, and routes ask for it again', async () => {
    const request = await shop.createRequest({ payee: freshPayee(), amount: '100' })
    await send(request, 60)
    await scan(FINALITY + 1)
    await send(request, 40)
    await scan()
    expect((await shop.request(request.paymentReference)).outstandingAmount).toBe('0')
    await chain.reorg(1)
    await service.scan()
    expect((await shop.paymentsOf(request)).map(({ amount, status }) => [amount, status])).toEqual([['60', 'PARTIAL']])
    const quoted = await shop.routes(request.paymentReference, { wallet: payer })
    expect(quoted.amount).toBe('40')
    await payAsQuoted({ chain, wallet: payer, request, quoted, token: chain.tokens.USDC })
    await scan(FINALITY + 1)
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'PAID', paidAmount: '100' })
  })
})

describe('a payment that came before its request', () => {
  it.each([
    ['final', FINALITY + 1, 'PAID', 'CONFIRMED'],
    ['not final', 1, 'PENDING', 'PENDING'],
  ] as const)('and is %s is attached when it is stored', async (_, blocks, requestStatus, status) => {
    const drawn = drawRequest()
    const txHash = await send(drawn, 100)
    await scan(blocks)
    expect((await shop.search({ txHash })).payments).toEqual([])
    const request = await shop.createRequest(drawn.terms)
    expect(request).toMatchObject({ paymentReference: drawn.paymentReference, status: requestStatus })
    expect(await shop.paymentsOf(request)).toMatchObject([{ txHash, status, confirmations: blocks }])
    expect((await database.knex('unmatched_events').where({ reason: 'UNKNOWN_TOPIC' })).length).toBe(0)
    expect(await shop.createRequest(drawn.terms)).toEqual(request)
    expect(await shop.paymentsOf(request)).toHaveLength(1)
    await scan(FINALITY)
    expect((await shop.request(request.paymentReference)).status).toBe('PAID')
  })

  it.each(['in a later block', 'in the same block'])(
    'is attached with the refund that followed it %s',
    async (where) => {
      const other = await service.caller('other')
      for (let round = 0; round < 6; round++) {
        const drawn = drawRequest({ payee: friend })
        await send(drawn, 100)
        if (where === 'in a later block') await chain.mine()
        await send({ ...drawn, payee: payer }, 100, friend)
        await scan(FINALITY + 1)
        const request = await shop.createRequest(drawn.terms)
        expect(await shop.paymentsOf(request)).toMatchObject([{ status: 'REFUNDED', refundedAmount: '100' }])
        expect(request).toMatchObject({ status: 'REFUNDED', outstandingAmount: '0' })
        // A third account, later still, gets it by way of what the first account has stored.
        expect(await other.createRequest(drawn.terms)).toMatchObject({ status: 'REFUNDED' })
      }
    },
  )

  it('is attached exactly once when both are seen at the same time', async () => {
    for (let round = 0; round < 25; round++) {
      const drawn = drawRequest()
      await send(drawn, 100)
      await chain.mine()
      const [request] = await Promise.all([shop.createRequest(drawn.terms), service.scan()])
      expect((await shop.paymentsOf(request)).map(({ amount }) => amount)).toEqual(['100'])
      expect((await shop.request(request.paymentReference)).status).toBe('PENDING')
    }
  })

  it('is removed by a reorg like any other', async () => {
    await scan()
    const drawn = drawRequest()
    await send(drawn, 100)
    await scan()
    const request = await shop.createRequest(drawn.terms)
    expect(await shop.paymentsOf(request)).toHaveLength(1)
    await chain.reorg(1)
    await scan()
    expect(await shop.request(request.paymentReference)).toMatchObject({ status: 'OPEN', outstandingAmount: '100' })
  })
})

describe('a chain that is down', () => {
  it('makes routes degraded, and detection goes on where it was', async () => {
    const request = await shop.createRequest({ payee: freshPayee(), amount: '100' })
    await scan()
    const { asOf } = await shop.search({})
    await send(request, 30)
    await chain.mine()
    proxy.fail(503, 'down for repairs')
    const answer = await shop.routes(request.paymentReference, { wallet: payer })
    expect(answer).toMatchObject({ routes: [], degraded: true, amount: '100' })
    expect(answer.unavailable).toMatchObject([{ chain: 'BASE', reason: 'CHAIN_UNREACHABLE' }])
    expect(answer.unavailable[0]).not.toHaveProperty('token')
    await expect(service.scan()).rejects.toThrow(/503/)
    expect((await shop.search({})).asOf).toEqual(asOf)
    expect(await shop.request(request.paymentReference)).toEqual(request)

    await send(request, 70)
    await chain.mine()
    proxy.fail()
    await service.scan()
    expect((await shop.paymentsOf(request)).map(({ amount }) => amount)).toEqual(['30', '70'])
    const head = (await chain.client.head()).number
    expect((await shop.search({})).asOf).toMatchObject([{ network: 'BASE', block: String(head) }])
    const { degraded, warnings } = await shop.routes(request.paymentReference, { wallet: payer })
    expect([degraded, warnings[0]?.reason]).toEqual([false, 'PAYMENT_PENDING'])
  })

  it('gets earlier payments of a new request attached when it answers again', async () => {
    const drawn = drawRequest()
    await send(drawn, 100)
    await scan()
    proxy.fail(503)
    const request = await shop.createRequest(drawn.terms)
    expect(request.status).toBe('OPEN')
    proxy.fail()
    service.passTime(SWEEP_EVERY_MS)
    await service.scan()
    expect((await shop.request(request.paymentReference)).status).toBe('PENDING')
  })
})
