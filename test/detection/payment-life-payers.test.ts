/** Who may pay: what others pay is found and counted as ever, and marked. */
import type { Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let database: TestDatabase
let chain: TestChain
let service: LifeService
let shop: Caller

beforeAll(async () => {
  ;[database, chain] = await Promise.all([createTestDatabase(), startTestChain({ chainId: 31_521 })])
  service = await startLifeService(database.knex, [chain.config({ name: 'BASE', finalityDepth: 20 })])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop()])
})

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
