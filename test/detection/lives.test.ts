import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
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
} from '../support/detection.ts'

let chain: TestChain
let database: TestDatabase
let knex: Knex
let account: Account

beforeAll(async () => {
  ;[chain, database] = await Promise.all([
    startTestChain({ chainId: 31_441, automine: false }),
    createTestDatabase({ poolMax: 8 }),
  ])
  knex = database.knex
  account = await addAccount(knex, 'shop')
})
afterAll(async () => {
  await chain?.stop()
  await database?.drop()
})

/** Pseudo-random numbers, the same in every run. */
function createDice(seed: number) {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

function newRequest(seed: string): PaymentRequest {
  const payee = canonical(`0x${keccak256(new TextEncoder().encode(seed)).slice(-40)}`)
  return makeRequest({ payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '10' })
}

interface Sent {
  readonly request: PaymentRequest
  readonly hash: `0x${string}`
  readonly amount: bigint
}

async function send(request: PaymentRequest, amount: bigint): Promise<Sent> {
  const to = request.payee as `0x${string}`
  const payment = { kind: 'NATIVE', to, amount, paymentReference: request.paymentReference } as const
  const { transactionHash } = await chain.pay(chain.wallets[0], payment)
  return { request, hash: transactionHash, amount }
}

/** The payments that are on the chain in the end, read transaction by transaction. */
async function expectedHashes(sent: readonly Sent[], request: PaymentRequest): Promise<string[]> {
  const own = sent.filter((each) => each.request === request)
  const receipts = await Promise.all(own.map(({ hash }) => chain.receipt(hash).catch(() => undefined)))
  return own.filter((_, index) => receipts[index] !== undefined).map(({ hash }) => hash)
}

describe('a life of payments, reorgs and restarts', () => {
  it.each([1, 2, 3])('ends with exactly the payments that are on the chain (seed %i)', async (seed) => {
    const dice = createDice(seed)
    const requests = Array.from({ length: 5 }, (_, index) => newRequest(`life ${seed} ${index}`))
    const stored = new Set<PaymentRequest>()
    let sent: Sent[] = []
    let run = 0
    const begin = () => detect(knex, [configOf(chain, 'BASE')], { owner: `${seed} ${run++}` })
    let detection: Detection = begin()
    await knex('leases').delete()
    await chain.mine({ blocks: 4 })
    await detection.scanOnce()
    let unsafe: Sent[] = []
    for (let step = 0; step < 120; step++) {
      const request = requests[dice(requests.length)] as PaymentRequest
      const what = dice(10)
      if (what < 4) unsafe.push(await send(request, BigInt(dice(5) + 1) * 10n ** 18n))
      else if (what < 6) await chain.mine()
      else if (what < 8) await detection.scanOnce()
      else if (what === 8) {
        await chain.mine()
        sent.push(...unsafe)
        unsafe = []
        const fresh = sent.slice(-2)
        const mined = await Promise.all(fresh.map(({ hash }) => chain.receipt(hash)))
        const head = (await chain.client.head()).number
        const last = fresh.filter((_, index) => mined[index]?.blockNumber === head)
        await chain.reorg(1, dice(2) === 0 ? last.map(({ hash }) => ({ hash })) : [])
      } else if (dice(2) === 0) {
        await knex('leases').delete()
        detection = begin()
      } else if (!stored.has(request)) {
        stored.add(request)
        await storeRequest(knex, account, request)
        await detection.onRequestsStored(account, [request])
      }
    }
    sent.push(...unsafe)
    // A payment that was dropped and sent again with the same nonce is the same transaction.
    sent = [...new Map(sent.map((each) => [each.hash, each])).values()]
    await chain.mine({ blocks: 5 })
    await detection.scanOnce()
    expect(stored.size).toBeGreaterThan(2)
    expect(sent.length).toBeGreaterThan(20)
    for (const request of stored) {
      const payments = await paymentsOf(knex, account, request)
      const hashes = payments.map(({ txHash }) => txHash)
      expect(hashes).toHaveLength(new Set(hashes).size)
      expect(new Set(hashes)).toEqual(new Set(await expectedHashes(sent, request)))
      expect(payments.every(({ final }) => final)).toBe(true)
      const standing = sent.filter(({ hash }) => hashes.includes(hash))
      const total = standing.reduce((sum, { amount }) => sum + amount, 0n) / 10n ** 18n
      const { paidAmount, status } = await balanceOf(knex, account, request)
      expect(paidAmount).toBe(String(total))
      expect(status).toBe(total >= 10n ? 'PAID' : total > 0n ? 'PARTIALLY_PAID' : 'OPEN')
      const expected = total >= 10n ? 'CONFIRMED' : 'PARTIAL'
      expect(payments.every((payment) => payment.status === expected)).toBe(true)
    }
  })
})

describe('two processes on one database', () => {
  it('store every payment once, also when one of them is gone and the other goes on', async () => {
    await knex('leases').delete()
    const request = await storeRequest(knex, account, newRequest('two processes'))
    const options = { pollIntervalMs: 10, leaseTtlMs: 1_000 }
    const first = detect(knex, [configOf(chain, 'BASE')], { ...options, owner: 'first' })
    const second = detect(knex, [configOf(chain, 'BASE')], { ...options, owner: 'second' })
    first.start()
    second.start()
    const hashes: string[] = []
    const paid = async () => {
      hashes.push((await send(request, 10n ** 18n)).hash)
      await chain.mine()
      const stored = async () => (await paymentsOf(knex, account, request)).map(({ txHash }) => txHash)
      await expect.poll(stored, { interval: 20, timeout: 15_000 }).toEqual(hashes)
    }
    await paid()
    await paid()
    const leader = [first, second].find((each) => each.status()[0]?.following)
    await leader?.stop()
    await paid()
    await Promise.all([first.stop(), second.stop()])
    expect(leader).toBeDefined()
    expect(await knex('leases').where('name', 'like', 'follow:%')).toEqual([])
  })
})
