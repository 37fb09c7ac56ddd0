/**
 * Nodes that lack, refuse or overdo something, and work that takes long: whatever keeps a chain from moving is visible.
 */
import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Detection, DetectionOptions } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  type TestTerms,
  unmatchedOf,
} from '../support/detection.ts'
import { recordLogs } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'

let chain: TestChain
let proxy: RpcProxy
let database: TestDatabase
let knex: Knex
let detection: Detection
let account: Account
let logs: ReturnType<typeof recordLogs>

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_451, automine: false })
  proxy = await startRpcProxy(chain.rpcUrl)
})
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
})
beforeEach(async () => {
  database = await createTestDatabase()
  knex = database.knex
  account = await addAccount(knex, 'shop')
  logs = recordLogs()
  detection = begin()
})
afterEach(async () => {
  proxy.meddle()
  await detection.stop()
  await database.drop()
})

const config = (options = {}) => configOf(chain, 'BASE', { rpcUrls: [proxy.url], ...options })
const scan = () => detection.scanOnce()
const status = () => detection.status()[0]

let runs = 0
function begin(options: Partial<DetectionOptions> = {}, chainOptions = {}): Detection {
  return detect(knex, [config(chainOptions)], { logger: logs, owner: `run ${runs++}`, ...options })
}

/** A clock that advances some seconds each time it is read. */
function fastClock(): () => Date {
  let nowMs = Date.UTC(2026, 0, 1)
  return () => {
    nowMs += 3_000
    return new Date(nowMs)
  }
}

let seeds = 0
function newRequest(terms: TestTerms = {}): PaymentRequest {
  const payee = canonical(`0x${keccak256(new TextEncoder().encode(`faults ${seeds++}`)).slice(-40)}`)
  return makeRequest({ payee, network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1', ...terms })
}

async function send(request: PaymentRequest, options: { proxy?: `0x${string}` } = {}) {
  const payment = {
    kind: 'NATIVE',
    to: request.payee as `0x${string}`,
    amount: 10n ** 18n,
    paymentReference: request.paymentReference,
    ...options,
  } as const
  return (await chain.pay(chain.wallets[0], payment)).transactionHash
}

/** A stored request with a payment in the newest block. */
async function paid(): Promise<PaymentRequest> {
  const request = await storeRequest(knex, account, newRequest())
  await send(request)
  await chain.mine()
  return request
}

const statuses = async (request: PaymentRequest) =>
  (await paymentsOf(knex, account, request)).map((payment) => payment.status)
const refuse = (message: string, code = -32000) => Promise.resolve({ rpcError: { code, message } })

describe('work that takes longer than the lease', () => {
  it('keeps the lease, and its result is written', async () => {
    const request = await paid()
    await chain.mine({ blocks: 4 })
    detection = begin({ leaseTtlMs: 300 })
    const second = createDatabase(database.connection, { poolMax: 1 })
    let asked: Date | undefined
    // The node answers after the time for which the lease was first taken.
    proxy.meddle(({ method }, ask) => {
      if (method !== 'eth_getLogs' || asked !== undefined) return undefined
      const outlasted = async () => {
        const { rows } = await second.raw('select expires_at, clock_timestamp() as now from leases')
        asked ??= rows[0].expires_at
        return rows[0].now > (asked as Date)
      }
      return expect.poll(outlasted, { interval: 20, timeout: 5_000 }).toBe(true).then(ask)
    })
    await scan()
    await second.destroy()
    expect(asked).toBeDefined()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
  })
})

it('trouble of two processes that take the chain from each other lasts until one of them reads blocks, and is an error after ten minutes', async () => {
  let nowMs = Date.UTC(2026, 0, 1)
  const clock = () => {
    nowMs += 100_000
    return new Date(nowMs)
  }
  // After some failures they wait longer than the lease lasts.
  const options = { clock, leaseTtlMs: 1_000, pollIntervalMs: 10 }
  const both = [begin(options), begin(options)]
  const logged = (text: string) => logs.records.filter(({ level, message }) => `${level}: ${message}` === text).length
  await both[0]?.scanOnce()
  proxy.fail(503)
  for (const each of both) each.start()
  await expect.poll(() => logged('info: another process follows the chain now'), PATIENCE).toBeGreaterThan(0)
  await expect.poll(() => logged('error: the chain does not answer; it is tried again'), PATIENCE).toBeGreaterThan(1)
  expect(logged('info: the chain answers again')).toBe(0)
  proxy.fail()
  await chain.mine()
  await expect.poll(() => logged('info: the chain answers again'), PATIENCE).toBe(2)
  await Promise.all(both.map((each) => each.stop()))
})

describe('a step of a back-fill that takes long', () => {
  it('makes the next one smaller', async () => {
    const first = Number((await chain.client.head()).number) + 1
    await chain.mine({ blocks: 40 })
    const contracts = config().contracts.map((contract) => ({ ...contract, fromBlock: first }))
    const ranges: number[] = []
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_getLogs') return undefined
      const [{ fromBlock, toBlock }] = params as [{ fromBlock?: string; toBlock?: string }]
      if (fromBlock === undefined) return undefined
      const blocks = Number(toBlock) - Number(fromBlock) + 1
      if (blocks > 20) return refuse('block range is too wide')
      ranges.push(blocks)
      return undefined
    })
    let nowMs = 0
    const clock = () => {
      nowMs += 11_000
      return new Date(nowMs)
    }
    detection = begin({ clock }, { contracts })
    await scan()
    expect(ranges.slice(0, 4)).toEqual([18, 9, 4, 2])
  })
})

describe('a node that lacks or refuses something', () => {
  it.each<[string, Meddle]>([
    ['has no receipt', ({ method }) => (method === 'eth_getTransactionReceipt' ? Promise.resolve(null) : undefined)],
    [
      'refuses a receipt',
      ({ method }) => (method === 'eth_getTransactionReceipt' ? refuse('receipts are off') : undefined),
    ],
    [
      'refuses the logs of a block',
      ({ method, params }) => {
        const [filter] = params as [{ blockHash?: string }]
        return method === 'eth_getLogs' && filter.blockHash !== undefined ? refuse('logs are off') : undefined
      },
    ],
    [
      'is behind the blocks that were read',
      ({ method, params }, ask) => {
        if (method !== 'eth_getBlockByNumber') return undefined
        if (params[0] === 'latest') return chain.client.rpc.call('eth_getBlockByNumber', ['0x1', false])
        return Number(params[0]) > 1 ? Promise.resolve(null) : ask()
      },
    ],
  ])('is shown in the status and logged every minute: one that %s', async (_, meddle) => {
    await scan()
    const request = await paid()
    detection = begin({ clock: fastClock(), pollIntervalMs: 5 })
    await knex('leases').delete()
    proxy.meddle(meddle)
    detection.start()
    const logged = () => logs.records.filter(({ level }) => level === 'warn' || level === 'error').length
    await expect.poll(logged, { interval: 20, timeout: 5_000 }).toBeGreaterThanOrEqual(3)
    expect(status()).toMatchObject({
      reachable: true,
      failing: {
        since: expect.any(Date),
        reason: expect.stringMatching(/receipt|logs are off|the node is at block 1/),
      },
    })
    expect(await statuses(request)).toEqual([])
    proxy.meddle()
    await expect.poll(() => statuses(request), { interval: 20, timeout: 5_000 }).toEqual(['PENDING'])
    await expect.poll(() => status()?.failing, { interval: 20 }).toBeUndefined()
    expect(logs.records.at(-1)?.message).toBe('the chain moves again')
  })

  it('is left for another when it stays behind, but not when it is behind for a moment', async () => {
    detection = begin({}, { rpcUrls: [proxy.url, chain.rpcUrl] })
    await scan()
    const { number } = await chain.client.head()
    const isAhead = (block: unknown) => block !== 'latest' && BigInt(block as string) >= number
    proxy.meddle(({ method, params: [block] }) => {
      if (method !== 'eth_getBlockByNumber') return undefined
      if (isAhead(block)) return Promise.resolve(null)
      return block === 'latest' ? chain.client.rpc.call(method, [`0x${(number - 1n).toString(16)}`, false]) : undefined
    })
    const left = () => logs.records.filter(({ message }) => message.includes('is left alone')).length
    const seen: number[] = []
    for (let round = 0; round < 3; round++) {
      await scan()
      seen.push(left())
    }
    expect(seen).toEqual([0, 0, 1])
  })

  it.each([
    ['has no receipt', () => Promise.resolve(null), /has no receipt/],
    ['refuses a receipt', () => refuse('receipts are off'), /receipts are off/],
  ])('fails a back-fill at once: one that %s', async (_, answer, message) => {
    const request = await paid()
    await chain.mine({ blocks: 4 })
    proxy.meddle(({ method }) => (method === 'eth_getTransactionReceipt' ? answer() : undefined))
    await expect(scan()).rejects.toThrow(message)
    proxy.meddle()
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
  })

  it('is shown as long as it lasts, as is a database that refuses what was found', async () => {
    await scan()
    await paid()
    await knex.raw('alter table chain_state add constraint stop check (scanned_block < 0) not valid')
    detection = begin({ clock: fastClock(), pollIntervalMs: 5 })
    await knex('leases').delete()
    detection.start()
    await expect.poll(() => status()?.failing?.reason, { interval: 20, timeout: 5_000 }).toMatch(/stop/)
    expect(status()?.reachable).toBe(true)
  })
})

describe('receipts that are too large', () => {
  it('leave their payments unmatched with a reason, are logged, and the chain goes on', async () => {
    const large = await storeRequest(knex, account, newRequest())
    const hash = await send(large)
    const other = await paid()
    await chain.mine({ blocks: 4 })
    const isLarge: Meddle = ({ method, params }) =>
      method === 'eth_getTransactionReceipt' && params[0] === hash ? refuse('response too large', -32003) : undefined
    proxy.meddle(isLarge)
    await scan()
    expect(await statuses(other)).toEqual(['CONFIRMED'])
    expect(await unmatchedOf(knex, 0)).toContain('RECEIPT_TOO_LARGE')
    expect(logs.records.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { txHash: hash } }])
    expect(await statuses(large)).toEqual([])
    proxy.meddle()
    detection = begin()
    await knex('leases').delete()
    await scan()
    expect(await statuses(large)).toEqual(['CONFIRMED'])
    expect(await unmatchedOf(knex, 0)).not.toContain('RECEIPT_TOO_LARGE')
  })
})

describe('a contract that is added later', () => {
  const inUsdc = () =>
    storeRequest(knex, account, newRequest({ paymentCurrency: 'USDC-BASE', invoiceCurrency: 'USDC-BASE' }))

  /** A fee proxy that is not followed yet, and a function that pays through it. */
  async function deployAnother() {
    const added = canonical(await chain.deployErc20FeeProxy())
    const { number } = await chain.client.head()
    await chain.fund(chain.tokens.USDC, chain.wallets[1], 1_000_000_000n)
    await chain.approve(chain.wallets[1], chain.tokens.USDC, added, 2n ** 255n)
    const payThrough = async (request: PaymentRequest) => {
      await chain.pay(chain.wallets[1], {
        kind: 'ERC20',
        token: chain.tokens.USDC.address,
        to: request.payee as `0x${string}`,
        amount: 1_000_000n,
        paymentReference: request.paymentReference,
        proxy: added,
      })
      await chain.mine()
    }
    const contract = { kind: 'ERC20_FEE_PROXY', version: '0.1.0', address: added, fromBlock: Number(number) }
    return { contracts: [...config().contracts, contract], payThrough }
  }

  it('is read from its first block on while the chain goes on', async () => {
    const { contracts, payThrough } = await deployAnother()
    const [old, recent, later] = [await inUsdc(), await inUsdc(), await inUsdc()]
    await payThrough(old)
    await chain.mine({ blocks: 4 })
    await payThrough(recent)
    await scan()
    expect([await statuses(old), await statuses(recent)]).toEqual([[], []])
    detection = begin({}, { contracts })
    await knex('leases').delete()
    await payThrough(later)
    await scan()
    expect([await statuses(old), await statuses(later)]).toEqual([['CONFIRMED'], ['PENDING']])
    await chain.mine({ blocks: 4 })
    await scan()
    expect([await statuses(old), await statuses(recent), await statuses(later)]).toEqual([
      ['CONFIRMED'],
      ['CONFIRMED'],
      ['CONFIRMED'],
    ])
    proxy.calls.length = 0
    detection = begin({}, { contracts })
    await knex('leases').delete()
    await scan()
    expect(proxy.calls.filter(({ method }) => method === 'eth_getLogs')).toEqual([])
  })

  it('is read from another node where the first no longer has its logs', async () => {
    const { contracts, payThrough } = await deployAnother()
    const request = await inUsdc()
    await payThrough(request)
    await chain.mine({ blocks: 4 })
    await scan()
    proxy.meddle(({ method }) => (method === 'eth_getLogs' ? refuse('history was pruned') : undefined))
    detection = begin({}, { contracts, rpcUrls: [proxy.url, chain.rpcUrl] })
    await knex('leases').delete()
    await expect(scan()).rejects.toThrow(/history was pruned/)
    expect(await statuses(request)).toEqual([])
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
  })
})

describe('a node that answers more than it was asked for', () => {
  it('adds no events of contracts that are not followed', async () => {
    const proxyAddress = await chain.deployLookAlikeProxy()
    const payment = { kind: 'ERC20', token: chain.tokens.USDC.address, to: chain.wallets[2], amount: 1n } as const
    await chain.pay(chain.wallets[1], { ...payment, paymentReference: '0x1122334455667788', proxy: proxyAddress })
    const block = await chain.mine({ blocks: 1 })
    await chain.mine({ blocks: 4 })
    const contracts = config().contracts.map((contract) => ({ ...contract, fromBlock: Number(block) }))
    let asked = 0
    proxy.meddle(({ method, params }) => {
      if (method !== 'eth_getLogs') return undefined
      asked++
      const [{ address: _, ...rest }] = params as [{ address: unknown }]
      return chain.client.rpc.call('eth_getLogs', [rest])
    })
    detection = begin({}, { contracts })
    await scan()
    expect(asked).toBeGreaterThan(0)
    expect(await unmatchedOf(knex, 0)).toEqual([])
  })
})

describe('finality', () => {
  it.each([
    ['an error', () => refuse('internal error', -32603)],
    ['nothing', () => Promise.resolve(null)],
  ])(
    'does not go by depth because a node answers %s for the finalized block once, not even after a restart',
    async (_, answer) => {
      const finality = { finality: { useFinalizedTag: true, depth: 3 } }
      const pinned = await chain.client.head()
      const tag = (give: () => Promise<unknown>) =>
        proxy.meddle(({ params }) => (params[0] === 'finalized' ? give() : undefined))
      tag(() => chain.client.rpc.call('eth_getBlockByNumber', [`0x${pinned.number.toString(16)}`, false]))
      detection = begin({}, finality)
      const request = await paid()
      await chain.mine({ blocks: 10 })
      await scan()
      tag(answer)
      await chain.mine()
      await scan()
      expect(await statuses(request)).toEqual(['PENDING'])
      detection = begin({}, finality)
      await knex('leases').delete()
      await chain.mine()
      await scan()
      expect(await statuses(request)).toEqual(['PENDING'])
      expect(status()?.final).toBe(Number(pinned.number))
    },
  )
})

describe('reading a chain anew', () => {
  it('above the last final block lets payments below it become final', async () => {
    const request = await paid()
    await chain.mine()
    await scan()
    expect(await statuses(request)).toEqual(['PENDING'])
    const { number } = await chain.client.head()
    await detection.restartFrom('BASE', Number(number))
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await statuses(request)).toEqual(['CONFIRMED'])
  })

  it('is refused from a block that was not read yet or was replaced', async () => {
    await paid()
    await scan()
    const head = Number((await chain.client.head()).number)
    await chain.mine()
    await expect(detection.restartFrom('BASE', head + 1)).rejects.toThrow(/was not read yet/)
    await chain.reorg(2)
    await expect(detection.restartFrom('BASE', head)).rejects.toThrow(/was replaced/)
  })
})

describe('replaying topics', () => {
  it('attaches payments of other chains while one chain does not answer', async () => {
    const other = await startTestChain({ chainId: 31_452 })
    const configs = [config(), configOf(other, 'POLYGON')]
    detection = detect(knex, configs, { logger: logs, owner: 'both' })
    const here = newRequest()
    await send(here)
    await chain.mine()
    const there = newRequest({ network: 'POLYGON', paymentCurrency: 'ETH-POLYGON', invoiceCurrency: 'ETH-POLYGON' })
    const to = there.payee as `0x${string}`
    const { paymentReference } = there
    // Transactions are read in the order of their blocks, so the chain that fails comes first.
    await other.client.rpc.call('anvil_mine', [`0x${(await chain.client.head()).number.toString(16)}`])
    await other.pay(other.wallets[0], { kind: 'NATIVE', to, amount: 10n ** 18n, paymentReference })
    await scan()
    for (const request of [here, there]) await storeRequest(knex, account, request)
    proxy.fail(503)
    await detection.onRequestsStored(account, [here, there])
    await other.stop()
    proxy.fail()
    expect(await statuses(there)).toEqual(['PENDING'])
    expect(await statuses(here)).toEqual([])
  })

  it('delays neither new blocks nor the stop of the process', async () => {
    const late = newRequest()
    const hash = await send(late)
    await chain.mine()
    await scan()
    await storeRequest(knex, account, late)
    const held = Promise.withResolvers<unknown>()
    proxy.meddle(({ method, params }) =>
      method === 'eth_getTransactionReceipt' && params[0] === hash ? held.promise : undefined,
    )
    detection = begin({ pollIntervalMs: 10 })
    await knex('leases').delete()
    const fresh = await paid()
    detection.start()
    await expect.poll(() => statuses(fresh), { interval: 20, timeout: 2_000 }).toEqual(['PENDING'])
    const asked = () => proxy.calls.some(({ method, params }) => method.endsWith('Receipt') && params[0] === hash)
    await expect.poll(asked, { interval: 20 }).toBe(true)
    await detection.stop()
    expect(await statuses(late)).toEqual([])
    held.resolve(null)
  })
})

describe('a chain without contracts', () => {
  it('is not followed', async () => {
    detection = begin({}, { contracts: [] })
    proxy.calls.length = 0
    await scan()
    detection.start()
    await detection.stop()
    expect(detection.status()).toEqual([])
    expect(proxy.calls).toEqual([])
  })
})
