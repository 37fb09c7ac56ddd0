import type { Knex } from 'knex'
import { encodeFunctionData, type Hex, parseAbi, zeroAddress } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { eventTopics } from '../../src/contracts/decode-events.ts'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { chainProgressOf, chainProgressStatement } from '../../src/search/sql/chain-progress.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
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
import { freshAddress } from '../support/routing.ts'
import { deployRequestProxyFactory } from './request-contracts.ts'

const FACTORY = parseAbi([
  'function createEthereumSingleRequestProxy(address payee, bytes paymentReference, address feeAddress, uint256 feeAmount)',
])
const PATIENCE = { interval: 10, timeout: 10_000 }

let chain: TestChain
let proxy: RpcProxy
let factory: Hex
const views: View[] = []
const holders: Knex.Transaction[] = []

/** One database, and a detection that reads the chain into it. */
interface View {
  readonly database: TestDatabase
  readonly knex: Knex
  readonly account: Account
  readonly config: ChainConfig
  detection: Detection
}

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_451, automine: false })
  proxy = await startRpcProxy(chain.rpcUrl)
  factory = await deployRequestProxyFactory(chain)
  for (const wallet of chain.wallets.slice(0, 4)) {
    await chain.fund(chain.tokens.USDC, wallet, 1_000_000_000000n)
    await chain.approve(wallet, chain.tokens.USDC, chain.contracts.erc20FeeProxy, 2n ** 255n)
  }
})
afterEach(async () => {
  proxy.meddle()
  for (const holder of holders.splice(0)) if (!holder.isCompleted()) await holder.rollback()
  for (const { detection, database } of views.splice(0)) {
    await detection.stop()
    await database.drop()
  }
})
afterAll(async () => {
  await proxy?.stop()
  await chain?.stop()
})

async function openView(options: Partial<ChainConfig> = {}): Promise<View> {
  const database = await createTestDatabase({ poolMax: 6 })
  const { knex } = database
  const usual = configOf(chain, 'BASE')
  const config = {
    ...usual,
    rpcUrls: [proxy.url],
    contracts: [
      ...usual.contracts,
      { kind: 'SINGLE_REQUEST_PROXY_FACTORY', version: '0.1.0', address: canonical(factory), fromBlock: 0 } as const,
    ],
    ...options,
  }
  const view = { database, knex, account: await addAccount(knex, 'shop'), config, detection: detect(knex, [config]) }
  views.push(view)
  return view
}

/** Another process in place of the one that was abandoned. */
async function takeOver(view: View, options: Partial<ChainConfig> = {}): Promise<void> {
  view.detection = detect(view.knex, [{ ...view.config, ...options }], { pollIntervalMs: 20 })
  await view.knex('leases').delete()
}

const newRequest = (terms: TestTerms = {}) =>
  makeRequest({ payee: freshAddress(`payee of back-fill ${made++}`), network: 'BASE', ...terms })
let made = 0

/** A payment in USDC that waits for the next block. */
async function pay(from: Hex, { paymentReference, payee }: PaymentRequest, dollars: number, to: string = payee) {
  const amount = BigInt(dollars) * 1_000_000n
  await chain.pay(from, { kind: 'ERC20', token: chain.tokens.USDC.address, to: to as Hex, amount, paymentReference })
}

/** Has the factory create a SingleRequestProxy, in a block of its own. @returns its address */
async function createProxy({ payee, paymentReference }: PaymentRequest): Promise<Hex> {
  const args = [payee as Hex, paymentReference, zeroAddress, 0n] as const
  const data = encodeFunctionData({ abi: FACTORY, functionName: 'createEthereumSingleRequestProxy', args })
  const { transactionHash } = await chain.send(chain.wallets[5], { to: factory, data }, { gas: 5_000_000n })
  await chain.mine()
  const created = (await chain.receipt(transactionHash))?.logs.find(
    ({ topics }) => topics[0] === eventTopics.nativeRequestProxy,
  )
  return `0x${created?.data.slice(26, 66)}`
}

/** Narrow ranges only. */
const inRangesOf =
  (blocks: number): Meddle =>
  ({ method, params: [filter] }) => {
    const { fromBlock, toBlock } = (method === 'eth_getLogs' ? filter : {}) as { fromBlock?: Hex; toBlock?: Hex }
    if (fromBlock === undefined || toBlock === undefined || Number(toBlock) - Number(fromBlock) < blocks)
      return undefined
    return Promise.resolve({ rpcError: { code: -32_602, message: `exceed maximum block range ${blocks}` } })
  }

/** Everything that detection stored but the times of writing and what was frozen at them. */
async function stored({ knex }: View) {
  const untimed = { updated_at: undefined, changed_at: undefined, status_history: undefined, confirmations: undefined }
  const payments = await knex('payments').orderBy(['account_id', 'id'])
  return {
    payments: payments.map((row) => ({ ...row, ...untimed })),
    refunds: await knex('refunds').orderBy(['tx_hash', 'event_index']),
    requests: await knex('requests').select('request_id', 'status', 'paid', 'pending', 'held').orderBy('request_id'),
    unmatched: await knex('unmatched_events').orderBy(['tx_hash', 'event_index', 'account_id']),
    proxies: await knex('single_request_proxies').orderBy('address'),
  }
}

/** Up to which block a search says that all is read. */
async function asOf({ knex }: View): Promise<number | undefined> {
  const [[row] = []] = await runNamed(knex, [chainProgressStatement], undefined)
  const block = row && chainProgressOf(row).readBlock
  return block === undefined ? undefined : Number(block)
}

const spansOf = async ({ knex }: View) => Number((await knex('chain_spans').count({ n: '*' }))[0]?.['n'])

describe('following beside back-fill', () => {
  it('finds a payment while the node is still to answer for old blocks, and asOf claims none of them', async () => {
    const view = await openView()
    const { knex, account } = view
    const [old, live] = [
      await storeRequest(knex, account, newRequest()),
      await storeRequest(knex, account, newRequest()),
    ]
    await pay(chain.wallets[0], old, 100)
    await chain.mine({ blocks: 5 })
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    proxy.meddle(({ method, params: [filter] }, ask) =>
      method === 'eth_getLogs' && 'fromBlock' in (filter as object) ? released.then(ask) : undefined,
    )
    await takeOver(view)
    view.detection.start()
    await expect
      .poll(() => view.detection.status()[0]?.scanned, PATIENCE)
      .toBe(Number((await chain.client.head()).number))
    await pay(chain.wallets[0], live, 100)
    await chain.mine()
    await expect.poll(async () => (await paymentsOf(knex, account, live)).length, PATIENCE).toBe(1)
    expect(await paymentsOf(knex, account, old)).toEqual([])
    expect(await asOf(view)).toBeUndefined()
    expect(view.detection.status()[0]?.backfill).toMatchObject({ done: 0 })
    release()
    await expect.poll(async () => (await paymentsOf(knex, account, old)).length, PATIENCE).toBe(1)
    await expect.poll(() => asOf(view), PATIENCE).toBe(Number((await chain.client.head()).number))
    await expect.poll(() => view.detection.status()[0]?.backfill, PATIENCE).toBeUndefined()
  })
})

describe('the first block that is read', () => {
  it.each<[string, (block: number, timeSec: number) => Partial<ChainConfig>, isFound: boolean]>([
    ['startBlock at the payment', (startBlock) => ({ startBlock }), true],
    ['startBlock above it', (block) => ({ startBlock: block + 1 }), false],
    ['since at its second', (_, timeSec) => ({ startBlock: undefined, since: new Date(timeSec * 1_000) }), true],
    [
      'since a second later',
      (_, timeSec) => ({ startBlock: undefined, since: new Date((timeSec + 1) * 1_000) }),
      false,
    ],
    ['a contract’s fromBlock above startBlock', (block) => onlyFrom(block + 1), false],
  ])('is that of %s', async (_, options, isFound) => {
    const request = newRequest()
    await pay(chain.wallets[0], request, 1)
    const timestampSec = (await chain.client.head()).timestampSec + 100
    const block = Number(await chain.mine({ timestampSec }))
    await chain.mine({ timestampSec: timestampSec + 10 })
    await chain.mine({ blocks: 4 })
    const view = await openView(options(block, timestampSec))
    await storeRequest(view.knex, view.account, request)
    await view.detection.scanOnce()
    expect((await paymentsOf(view.knex, view.account, request)).length).toBe(isFound ? 1 : 0)
  })

  const onlyFrom = (fromBlock: number): Partial<ChainConfig> => ({
    contracts: configOf(chain, 'BASE').contracts.map((contract) => ({ ...contract, fromBlock })),
  })

  it('is by default that of a day before the oldest request, and moves down with an older request', async () => {
    const [older, old] = [newRequest(), newRequest()]
    const day = 86_400
    const startSec = (await chain.client.head()).timestampSec
    await pay(chain.wallets[0], older, 100)
    await chain.mine({ timestampSec: startSec + day })
    await pay(chain.wallets[0], old, 100)
    const oldBlock = Number(await chain.mine({ timestampSec: startSec + 10 * day }))
    await chain.mine({ timestampSec: startSec + 20 * day })
    await chain.mine({ blocks: 5 })
    const view = await openView({ startBlock: undefined })
    const { knex, account, detection } = view
    await detection.scanOnce()
    expect(proxy.calls.filter(({ method }) => method === 'eth_getLogs').length).toBeGreaterThan(0)
    expect(await unmatchedOf(knex, 0)).toEqual([])
    await storeRequest(knex, account, { ...old, createdAt: new Date((startSec + 10 * day) * 1_000) })
    await detection.onRequestsStored(account, [old])
    await detection.scanOnce()
    expect((await knex('chain_state').first()).start_block).toBe(BigInt(oldBlock))
    await storeRequest(knex, account, { ...older, createdAt: new Date((startSec + 2 * day) * 1_000) })
    await detection.onRequestsStored(account, [older])
    await detection.scanOnce()
    for (const request of [old, older]) {
      expect(await paymentsOf(knex, account, request)).toMatchObject([{ status: 'CONFIRMED' }])
    }
  })

  it('can be raised and lowered again while blocks are left to read', async () => {
    const request = newRequest()
    await pay(chain.wallets[0], request, 100)
    const block = Number(await chain.mine())
    await chain.mine({ blocks: 5 })
    const view = await openView()
    await storeRequest(view.knex, view.account, request)
    proxy.meddle(({ method }) => (method === 'eth_getLogs' ? Promise.reject(new Error('down')) : undefined))
    await expect(view.detection.scanOnce()).rejects.toThrow(/\w/)
    proxy.meddle()
    await takeOver(view, { startBlock: block + 1 })
    await view.detection.scanOnce()
    expect([await paymentsOf(view.knex, view.account, request), await spansOf(view)]).toEqual([[], 0])
    await takeOver(view, { startBlock: block })
    await view.detection.scanOnce()
    expect(await paymentsOf(view.knex, view.account, request)).toMatchObject([{ status: 'CONFIRMED' }])
  })
})

describe('the order of reading', () => {
  it('does not matter to a refund that is seen before its payment', async () => {
    const view = await openView()
    const [payer, , payee] = chain.wallets
    const request = await storeRequest(view.knex, view.account, newRequest({ payee: canonical(payee) }))
    await pay(payer, request, 100)
    await chain.mine({ blocks: 5 })
    await pay(payee, request, 40, payer)
    await chain.mine()
    proxy.meddle(inRangesOf(2))
    await view.detection.scanOnce()
    expect(await unmatchedOf(view.knex, view.account.id)).toEqual([])
    expect(await paymentsOf(view.knex, view.account, request)).toMatchObject([{ refunded_amount: '40' }])
  })

  it('does not matter to the payer behind a SingleRequestProxy that is paid through before its creation is read', async () => {
    const view = await openView()
    const [sender] = chain.wallets
    const request = await storeRequest(
      view.knex,
      view.account,
      newRequest({ paymentCurrency: 'ETH-BASE', amount: '1' }),
    )
    const created = await createProxy(request)
    await chain.mine({ blocks: 5 })
    await chain.send(sender, { to: created, data: '0x', value: 10n ** 18n })
    await chain.mine()
    const seen: unknown[] = []
    proxy.meddle((call, ask) => {
      if (call.method !== 'eth_getLogs' || !('fromBlock' in (call.params[0] as object))) return undefined
      return paymentsOf(view.knex, view.account, request).then((payments) => {
        seen.push(payments[0]?.payer)
        return ask()
      })
    })
    await view.detection.scanOnce()
    expect(seen[0]).toBe(canonical(created))
    expect(await paymentsOf(view.knex, view.account, request)).toMatchObject([{ payer: canonical(sender) }])
  })

  /** Pseudo-random numbers, the same in every run. */
  function createDice(seed: number) {
    let state = seed
    return (sides: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * sides)
    }
  }

  it.each([1, 2])('gives the rows that reading forward gives, with kills on the way (seed %i)', async (seed) => {
    const dice = createDice(seed)
    // Not the blocks of other tests, which would be read again after each kill.
    const own = { startBlock: Number((await chain.client.head()).number) }
    const [forward, late] = [await openView(own), await openView(own)]
    const [one, two, payee, stranger] = chain.wallets
    const requests: PaymentRequest[] = []
    const proxies = new Map<PaymentRequest, Hex>()
    for (let n = 0; n < 6; n++) {
      const isCoin = n < 2
      const terms = isCoin ? ({ paymentCurrency: 'ETH-BASE', amount: '1' } as const) : { payee: canonical(payee) }
      const request = newRequest(terms)
      for (const { knex, account } of [forward, late]) await storeRequest(knex, account, request)
      requests.push(request)
    }
    const act = async () => {
      const request = requests[dice(requests.length)] as PaymentRequest
      const payer = [one, two][dice(2)] as Hex
      const what = dice(8)
      if (request.paymentCurrency === 'ETH-BASE') {
        const through = proxies.get(request)
        if (through === undefined) proxies.set(request, await createProxy(request))
        else await chain.send(payer, { to: through, data: '0x', value: BigInt(dice(9) + 1) * 10n ** 17n })
      } else if (what < 3) await pay(payer, request, dice(70) + 10)
      else if (what < 6) await pay(payee, request, dice(30) + 5, payer)
      else await pay(stranger, request, 3, what === 6 ? stranger : payer)
      if (dice(2) === 0) await chain.mine()
      if (dice(3) === 0) await forward.detection.scanOnce()
    }
    for (let step = 0; step < 15; step++) await act()
    await chain.mine({ blocks: 2 })
    // The late one begins in the middle, and dies at every other range of the old blocks.
    let ranges = 0
    const narrow = inRangesOf(3)
    proxy.meddle((call, ask) => {
      const refused = narrow(call, ask)
      const isRange = call.method === 'eth_getLogs' && 'fromBlock' in (call.params[0] as object)
      if (refused !== undefined || !isRange || ++ranges % 2 === 1) return refused
      return Promise.resolve({ rpcError: { code: -32_000, message: 'the node went away' } })
    })
    await expect(late.detection.scanOnce()).rejects.toThrow(/went away/)
    for (let step = 0; step < 8; step++) {
      proxy.meddle()
      await act()
      proxy.meddle((call, ask) => {
        const isRange = call.method === 'eth_getLogs' && 'fromBlock' in (call.params[0] as object)
        if (!isRange || ++ranges % 2 === 1) return narrow(call, ask)
        return Promise.resolve({ rpcError: { code: -32_000, message: 'the node went away' } })
      })
      await takeOver(late)
      await late.detection.scanOnce().catch(() => {})
    }
    proxy.meddle()
    await chain.mine({ blocks: 5 })
    for (const { detection } of [forward, late]) await detection.scanOnce()
    await late.detection.scanOnce()
    expect(await stored(late)).toEqual(await stored(forward))
    expect((await stored(late)).refunds.length).toBeGreaterThan(0)
  })
})

describe('a range of old blocks that is read while the one before is written', () => {
  const RANGE = 3

  /** Two payments in ranges that follow one another, and a lock that holds up what is written of them. */
  async function openHeld() {
    const view = await openView({ startBlock: Number((await chain.client.head()).number) + 1 })
    const { knex, account } = view
    const requests: PaymentRequest[] = []
    for (let n = 0; n < 2; n++) {
      requests.push(await storeRequest(knex, account, newRequest()))
      await pay(chain.wallets[0], requests[n] as PaymentRequest, 100)
      await chain.mine({ blocks: RANGE })
    }
    await chain.mine({ blocks: 3 * RANGE })
    const holder = await knex.transaction()
    holders.push(holder)
    await lockAccount(holder, account.id, new Date())
    /** Of each range that the node was asked for, how many blocks before it were not written yet. */
    const unwritten: number[] = []
    const narrow = inRangesOf(RANGE)
    const meddle =
      (answer: Meddle = () => undefined): Meddle =>
      (call, ask) => {
        const { fromBlock } = (call.method === 'eth_getLogs' ? call.params[0] : {}) as { fromBlock?: Hex }
        const refused = narrow(call, ask)
        if (refused !== undefined || fromBlock === undefined) return refused
        return nextOf(view).then((next) => {
          if (next !== undefined) unwritten.push(Number(fromBlock) - next)
          return answer(call, ask) ?? ask()
        })
      }
    proxy.meddle(meddle())
    const paid = () => Promise.all(requests.map(async (each) => (await paymentsOf(knex, account, each)).length))
    return { view, holder, unwritten, paid, meddle }
  }

  /** The lowest block that back-fill has not written. */
  const nextOf = async ({ knex }: View): Promise<number | undefined> => {
    const [row] = await knex('chain_spans').min({ next: 'next_block' })
    return row?.['next'] === null ? undefined : Number(row?.['next'])
  }

  async function readAhead(unwritten: readonly number[]) {
    await expect.poll(() => unwritten.filter((blocks) => blocks > 0).length, PATIENCE).toBeGreaterThan(0)
  }

  it('is one range ahead and no more, and is written after it', async () => {
    const { view, holder, unwritten, paid } = await openHeld()
    const scanned = view.detection.scanOnce()
    await readAhead(unwritten)
    expect(await paid()).toEqual([0, 0])
    await holder.commit()
    await scanned
    expect(await paid()).toEqual([1, 1])
    expect(Math.max(...unwritten)).toBeLessThanOrEqual(RANGE)
    const changes = await view.knex('payment_changes').where({ kind: 1 }).orderBy('change').pluck('payment_id')
    expect(changes).toEqual(await view.knex('payments').orderBy('block_number').pluck('id'))
  })

  it('leaves what is being written to be written when it cannot be read', async () => {
    const { view, holder, unwritten, paid, meddle } = await openHeld()
    proxy.meddle(
      meddle(() => {
        const isAhead = unwritten.some((blocks) => blocks > 0)
        return isAhead ? Promise.resolve({ rpcError: { code: -32_000, message: 'the node went away' } }) : undefined
      }),
    )
    const scanned = view.detection.scanOnce().catch((error: unknown) => String(error))
    await readAhead(unwritten)
    await holder.commit()
    expect(await scanned).toMatch(/went away/)
    expect(await paid()).toEqual([1, 0])
    proxy.meddle()
    await view.detection.scanOnce()
    expect(await paid()).toEqual([1, 1])
  })

  it('is read again with the one before when the connection that writes is lost', async () => {
    const { view, holder, unwritten, paid } = await openHeld()
    const { knex } = view
    const scanned = view.detection.scanOnce().catch((error: unknown) => String(error))
    await readAhead(unwritten)
    const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'active' and query like 'select % for update'` // on Citus a worker waits for the lock
    await expect.poll(async () => (await knex.raw(terminate)).rows.length, PATIENCE).toBe(1)
    expect(await scanned).toMatch(/terminat/)
    await holder.commit()
    expect(await paid()).toEqual([0, 0])
    await view.detection.scanOnce()
    expect(await paid()).toEqual([1, 1])
  })

  it('is read again with the one before after a stop', async () => {
    const { view, holder, unwritten, paid } = await openHeld()
    view.detection.start()
    await readAhead(unwritten)
    await view.detection.stop()
    await holder.commit()
    expect(await paid()).toEqual([0, 0])
    await takeOver(view)
    await view.detection.scanOnce()
    expect(await paid()).toEqual([1, 1])
  })
})

/** Last, since it makes the chain long. */
describe('a long stop', () => {
  it('leaves its blocks to back-fill', async () => {
    const view = await openView()
    const { knex, account } = view
    await view.detection.scanOnce()
    const missed = await storeRequest(knex, account, newRequest())
    await pay(chain.wallets[0], missed, 100)
    await chain.mine()
    const before = await asOf(view)
    await chain.client.rpc.call('anvil_mine', ['0x208'])
    const head = Number((await chain.client.head()).number)
    proxy.meddle(({ method, params: [filter] }) =>
      method === 'eth_getLogs' && 'fromBlock' in (filter as object)
        ? Promise.resolve({ rpcError: { code: -32_000, message: 'history is not ready' } })
        : undefined,
    )
    await takeOver(view)
    await expect(view.detection.scanOnce()).rejects.toThrow(/history is not ready/)
    expect([view.detection.status()[0]?.scanned, await asOf(view)]).toEqual([head, before])
    proxy.meddle()
    await view.detection.scanOnce()
    expect(await paymentsOf(knex, account, missed)).toMatchObject([{ status: 'CONFIRMED' }])
    expect(await asOf(view)).toBe(head)
  })
})
