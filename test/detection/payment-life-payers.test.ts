/** Who may pay: what others pay is found and counted as ever, and marked. */
import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { encodeListing } from '../../demo/network/demo-contracts.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type RequestJson,
  startLifeService,
  type Terms,
} from '../support/chains/payment-life.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let database: TestDatabase
let chain: TestChain
let node: RpcProxy
let service: LifeService
let shop: Caller

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_521 })])
  node = await startRpcProxy(chain.rpcUrl)
  const config = { ...chain.config({ name: 'BASE', finalityDepth: 20 }), rpcUrls: [node.url] }
  service = await startLifeService(database.knex, [config])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([node?.stop(), chain?.stop(), database?.drop()])
})
afterEach(() => node.meddle())

let seeds = 0
const freshSeed = () => `payers ${seeds++}`

async function createRequest(terms: Partial<Terms> = {}): Promise<RequestJson> {
  return shop.createRequest({ payee: freshAddress(freshSeed()), amount: '100', ...terms })
}

async function pay({ payee, paymentReference }: RequestJson, from: Hex, amount = 10_000_000n) {
  const token = chain.tokens.USDC.address
  await chain.fund({ address: token }, from, amount)
  return chain.pay(from, { kind: 'ERC20', token, to: payee, amount, paymentReference })
}

const marksOf = async (request: RequestJson) =>
  (await shop.paymentsOf(request)).map(({ payer, marks }) => [payer, marks])

describe('a payment of a request with allowed payers', () => {
  it('is counted whoever paid, and marked where it was somebody else, also after a reorg', async () => {
    const [ann, bob] = [await newWallet(chain, freshSeed()), await newWallet(chain, freshSeed())]
    const request = await createRequest({ allowedPayers: [ann, freshAddress(freshSeed())] })
    await pay(request, ann)
    await pay(request, bob)
    await service.scan()
    const expected = [
      [ann, []],
      [bob, ['PAYER_NOT_ALLOWED']],
    ]
    expect(await marksOf(request)).toEqual(expected)
    expect(await shop.request(request.paymentReference)).toMatchObject({ pendingAmount: '20', outstandingAmount: '80' })
    // Its block is gone, and it is paid again.
    await chain.reorg(1)
    await service.scan()
    expect(await marksOf(request)).toEqual(expected.slice(0, 1))
    await pay(request, bob)
    await service.scan()
    expect(await marksOf(request)).toEqual(expected)
  })

  it('is marked when the request is stored after it, and in the other account not', async () => {
    const other = await service.caller('other')
    const bob = await newWallet(chain, freshSeed())
    const request = await createRequest()
    await pay(request, bob)
    await service.scan()
    expect(await marksOf(request)).toEqual([[bob, []]])
    const { requestId, salt, payee, amount } = request
    const allowedPayers = [freshAddress(freshSeed())]
    await other.createRequest({ requestId, salt, payee, amount, allowedPayers })
    await service.scan()
    const [payment] = await other.paymentsOf(request)
    expect(payment).toMatchObject({ payer: bob, marks: ['PAYER_NOT_ALLOWED'] })
    expect(await marksOf(request)).toEqual([[bob, []]])
  })
})

const list = (wallet: Hex, isListed: boolean) =>
  chain.send(chain.deployer, encodeListing(chain.deployed.screeningOracle, [wallet], isListed))

/** Answers questions to the oracle in place of the node. */
const answering = (answer: () => Promise<unknown>) =>
  node.meddle(({ method, params: [call] }) =>
    method === 'eth_call' && JSON.stringify(call).includes('df592f7d') ? answer() : undefined,
  )

describe('a payment of a wallet that the oracle lists', () => {
  // First: later tests move the service's clock, beside which the chain seems to hang.
  it('comes with the age of the list: the time of its last change that was read', async () => {
    const bob = await newWallet(chain, freshSeed())
    const request = await createRequest()
    const changedAt = async (isListed: boolean) => {
      await list(bob, isListed)
      const { timestampSec } = await chain.client.head()
      await chain.mine({ blocks: 3 })
      await service.scan()
      const at = new Date(timestampSec * 1_000)
      expect(await service.detection.listChangedAt(chain.chainId)).toEqual(at)
      return at.toISOString()
    }
    await changedAt(true)
    await changedAt(false)
    const last = await changedAt(true)
    const { warnings } = await shop.routes(request.paymentReference, { wallet: bob })
    expect(warnings).toMatchObject([{ reason: 'PAYER_SCREENED', metadata: { chain: 'BASE', changedAt: last } }])
    const path = `/v1/request/${request.paymentReference}/pay`
    expect(await shop.reasonOf(path, { wallet: bob })).toEqual([400, 'PAYER_SCREENED'])
    await list(bob, false)
  })

  it('is counted and marked where it was listed at that block, also after a reorg and at every later reading', async () => {
    const bob = await newWallet(chain, freshSeed())
    const request = await createRequest({ allowedPayers: [freshAddress(freshSeed())] })
    await pay(request, bob)
    await list(bob, true)
    await pay(request, bob)
    await list(bob, false)
    await pay(request, bob)
    await service.scan()
    const expected = [
      [bob, ['PAYER_NOT_ALLOWED']],
      [bob, ['PAYER_NOT_ALLOWED', 'PAYER_SCREENED']],
      [bob, ['PAYER_NOT_ALLOWED']],
    ]
    expect(await marksOf(request)).toEqual(expected)
    expect(await shop.request(request.paymentReference)).toMatchObject({ pendingAmount: '30', outstandingAmount: '70' })
    const before = await shop.paymentsOf(request)
    // Another account that comes to know the request has the same events read again.
    const other = await service.caller('other of the listed')
    const { requestId, salt, payee, amount } = request
    await other.createRequest({ requestId, salt, payee, amount })
    await service.scan()
    const screened = expected.map(([payer, marks]) => [payer, marks?.slice(1)])
    expect((await other.paymentsOf(request)).map(({ payer, marks }) => [payer, marks])).toEqual(screened)
    expect(await shop.paymentsOf(request)).toEqual(before)
    await list(bob, true)
    await chain.reorg(2)
    await service.scan()
    await pay(request, bob)
    await service.scan()
    expect(await marksOf(request)).toEqual(expected)
  })

  const refusals: readonly [string, () => Promise<unknown>][] = [
    ['fails', async () => ({ rpcError: { code: -32_000, message: 'missing trie node' } })],
    ['reverts', async () => ({ rpcError: { code: 3, message: 'execution reverted' } })],
    ['answers nothing', async () => '0x'],
    ['answers 2', async () => `0x${'2'.padStart(64, '0')}`],
    ['answers a list', async () => []],
    ['answers null', async () => null],
  ]
  it.each(refusals)('is found all the same where the oracle %s, and screened later', async (_, refuse) => {
    const bob = await newWallet(chain, freshSeed())
    const ann = await newWallet(chain, freshSeed())
    const request = await createRequest()
    await list(bob, true)
    await pay(request, bob)
    await pay(request, ann)
    await list(bob, false)
    answering(refuse)
    await service.scan()
    const unknown = [
      [bob, ['SCREENING_UNKNOWN']],
      [ann, ['SCREENING_UNKNOWN']],
    ]
    expect(await marksOf(request)).toEqual(unknown)
    service.passTime(6_000)
    await service.detection.enrichOnce()
    expect(await marksOf(request)).toEqual(unknown)
    node.meddle()
    service.passTime(60_000)
    await service.detection.enrichOnce()
    expect(await marksOf(request)).toEqual([
      [bob, ['PAYER_SCREENED']],
      [ann, []],
    ])
    // What was read is not lost when it cannot be read again.
    answering(refuse)
    const other = await service.caller(`other ${freshSeed()}`)
    const { requestId, salt, payee, amount } = request
    await other.createRequest({ requestId, salt, payee, amount })
    await service.scan()
    expect((await marksOf(request)).map(([, marks]) => marks)).toEqual([['PAYER_SCREENED'], []])
  })

  it('waits no longer for an oracle that hangs than for prices', async () => {
    const bob = await newWallet(chain, freshSeed())
    const request = await createRequest()
    await pay(request, bob)
    const hanging = Promise.withResolvers<unknown>()
    answering(() => hanging.promise)
    const startedMs = performance.now()
    await service.scan()
    expect(performance.now() - startedMs).toBeLessThan(6_000)
    expect(await marksOf(request)).toEqual([[bob, ['SCREENING_UNKNOWN']]])
    hanging.resolve(undefined)
  })
})
