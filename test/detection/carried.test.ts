import type { ServerResponse } from 'node:http'
import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { encodeListing } from '../../demo/network/demo-contracts.ts'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { createChainReader } from '../../src/detection/read/chain-reader.ts'
import { createCarriedQueue } from '../../src/detection/repair/carried-queue.ts'
import type { Account } from '../../src/domain/account.ts'
import { addressToBytes } from '../../src/domain/address.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { bytesToHex } from '../../src/domain/hex.ts'
import { marksOfBits } from '../../src/domain/payment.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createRpcClient } from '../../src/nodes/rpc-client.ts'
import { createFindTransfer } from '../../src/routing/providers/lifi/find-transfer.ts'
import { createLifiClient } from '../../src/routing/providers/lifi/lifi-client.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { encodeTransfer } from '../support/chains/contract-calls.ts'
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
import { freshAddress } from '../support/routing.ts'
import { answer, done, type Ends, NOT_FOUND, type StatusServer, startStatusServer } from './status-server.ts'

const NEAR_ID = 31_451
const FAR_ID = 31_452
const MAX_ATTEMPTS = 20
/** The timeout for the server that hangs; one that answers has the usual timeout. */
const HANG_MS = 300

/** Payments that a bridge delivered on `far`. Their payer is on `near`, which a server of LI.FI's form knows. */
describe('a payment that a bridge delivered', () => {
  let near: TestChain
  let far: TestChain
  let database: TestDatabase
  let knex: Knex
  let configs: ChainConfig[]
  let detection: Detection
  let account: Account
  let server: StatusServer
  /** The time of the last delivery, or later. */
  let nowMs = 0
  /** The transaction on the source chain, and its sender. */
  let sourceTx: Hex
  let payer: Hex
  beforeAll(async () => {
    ;[database, server, near, far] = await Promise.all([
      createTestDatabase(),
      startStatusServer(),
      startTestChain({ chainId: NEAR_ID }),
      startTestChain({ chainId: FAR_ID, addressSeed: 3 }),
    ])
    knex = database.knex
    const executor = far.wallets[3]
    const screening = { oracle: canonical(far.deployed.screeningOracle) }
    configs = [configOf(near, 'ETHEREUM'), configOf(far, 'BASE', { executors: [canonical(executor)], screening })]
    detection = detect(knex, configs)
    await far.fund(far.tokens.USDC, executor, 10n ** 15n)
    await far.approve(executor, far.tokens.USDC, far.contracts.erc20FeeProxy, 10n ** 15n)
    payer = near.wallets[0]
    await near.fund(near.tokens.USDC, payer, 1_000n)
    const sent = encodeTransfer(near.tokens.USDC.address, freshAddress('escrow'), 100n)
    sourceTx = (await near.send(payer, sent)).transactionHash
    await near.mine({ blocks: 5 })
  })
  afterAll(async () => {
    await Promise.all([near, far, server].map((each) => each?.stop()))
    await database?.drop()
  })
  let accounts = 0
  beforeEach(async () => {
    await knex('carried_payments').delete()
    account = await addAccount(knex, `carried ${accounts++}`)
    server.asked.length = 0
  })
  afterEach(() => server.behave((_, response) => answer(response, 404, NOT_FOUND)))

  async function deliver(
    payee: Hex = freshAddress(`payee of ${account.name}`),
  ): Promise<{ request: PaymentRequest; txHash: Hex }> {
    const request = await storeRequest(knex, account, makeRequest({ payee: canonical(payee), network: 'BASE' }))
    const { transactionHash: txHash } = await far.pay(far.wallets[3], {
      kind: 'ERC20',
      token: far.tokens.USDC.address,
      to: payee,
      amount: 100_000_000n,
      paymentReference: request.paymentReference,
    })
    await detection.scanOnce()
    nowMs = Date.now()
    return { request, txHash }
  }

  /** A queue as a process makes it, with its own breaker and quota. */
  function queueOf(owner = 'one', timeoutMs?: number, followed = configs): ReturnType<typeof createCarriedQueue> {
    const clock = () => nowMs
    const io = { fetch, clock, logger: silentLogger }
    const client = createLifiClient({ url: server.url, ...io, ...(timeoutMs && { timeoutMs }) })
    const readers = followed.map(({ name, chainId, rpcUrls: urls }) => {
      const rpc = createRpcClient({ urls, chainId, clock: () => new Date() })
      return [name, createChainReader(rpc, [])] as const
    })
    return createCarriedQueue({
      knex,
      owner,
      chains: createChainDirectory(configs),
      findSource: createFindTransfer(client, silentLogger),
      readers: new Map(readers),
      logger: silentLogger,
      clock: () => new Date(nowMs),
    })
  }

  const endsOf = (txHash: string): Ends => ({
    sending: { chainId: NEAR_ID, txHash: sourceTx },
    receiving: { chainId: FAR_ID, txHash },
    fromAddress: payer,
  })
  const answerWell = (txHash: string, response: ServerResponse) => answer(response, 200, done(endsOf(txHash)))
  async function paymentOf(request: PaymentRequest) {
    const [payment] = await paymentsOf(knex, account, request)
    return payment
  }
  /** Registers a refund wallet of the account, since 1970. */
  const registerWallet = (address: Hex) =>
    knex('refund_wallets').insert({
      account_id: account.id,
      address: addressToBytes(canonical(address)),
      registration: 1,
      registered_at: new Date(0),
    })
  const queued = () => knex('carried_payments').orderBy('due_at')
  const sourceOf = (payment: Awaited<ReturnType<typeof paymentOf>>) => ({
    payer: payment?.payer,
    network: payment?.source_network,
    txHash: payment?.source_tx_hash && bytesToHex(payment.source_tx_hash),
  })
  const source = () => ({ payer: canonical(payer), network: 'ETHEREUM', txHash: sourceTx })
  const unknown = { payer: null, network: null, txHash: null }

  it('gets its payer, source chain and source transaction once they are known; the waits until then grow', async () => {
    const { request, txHash } = await deliver()
    expect(sourceOf(await paymentOf(request))).toEqual(unknown)
    const waits: number[] = []
    const behaviours: Parameters<StatusServer['behave']>[0][] = [
      (_, response) => answer(response, 404, NOT_FOUND),
      (hash, response) => answer(response, 200, { ...done(endsOf(hash)), status: 'NOT_FOUND' }),
      (hash, response) => answer(response, 200, { ...done(endsOf(hash)), status: 'PENDING' }),
      answerWell,
    ]
    for (const behaviour of behaviours) {
      server.behave(behaviour)
      // Each time in another process, as after a restart.
      await queueOf(`restart ${waits.length}`).drain()
      const [row] = (await queued()) as { due_at: Date }[]
      if (row === undefined) break
      waits.push(row.due_at.getTime() - nowMs)
      await queueOf('too early').drain()
      nowMs = row.due_at.getTime()
    }
    expect([waits, server.asked]).toEqual([[2_000, 4_000, 8_000], Array(4).fill(txHash)])
    const payment = await paymentOf(request)
    expect(sourceOf(payment)).toEqual(source())
    expect(payment).toMatchObject({ type: 'CROSSCHAIN', network: 'BASE', initiator: canonical(far.wallets[3]) })
    const log = await knex('payment_changes').where({ account_id: account.id }).orderBy('change').pluck('kind')
    // The payment, what it makes of its request, and its source.
    expect(log).toEqual([1, 4, 2])
  })

  const changed = (change: (good: ReturnType<typeof done>) => unknown) => (txHash: string, response: ServerResponse) =>
    answer(response, 200, change(done(endsOf(txHash))))
  const faults: [string, Parameters<StatusServer['behave']>[0]][] = [
    ['hangs', () => {}],
    ['fails', (_, response) => answer(response, 500, { message: 'oh', code: 1006 })],
    ['resets', (_, response) => void response.destroy()],
    ['answers half', (_, response) => void response.writeHead(200, { 'content-length': '999' }).end('{"status":"DO')],
    ['answers HTML', (_, response) => void response.writeHead(200).end('<html>')],
    ['answers null', changed(() => null)],
    ['answers a list', changed(() => [])],
    ['refuses the key', (_, response) => answer(response, 401, { message: 'no', code: 1010 })],
    ['answers another delivery', changed((good) => done({ ...endsOf(sourceTx), sending: good.sending }))],
    ['answers another chain', changed((good) => ({ ...good, receiving: { ...good.receiving, chainId: 1 } }))],
    ['answers no delivery', changed((good) => ({ ...good, receiving: { chainId: FAR_ID } }))],
    ['names no payer', changed((good) => ({ ...good, fromAddress: undefined }))],
    ['names the zero address', changed((good) => ({ ...good, fromAddress: `0x${'0'.repeat(40)}` }))],
    ['names no source', changed((good) => ({ ...good, sending: undefined }))],
    ['names the same chain', changed((good) => ({ ...good, sending: { ...good.sending, chainId: FAR_ID } }))],
    ['answers that it failed', changed((good) => ({ ...good, status: 'FAILED' }))],
    ['answers that it was returned', changed((good) => ({ ...good, substatus: 'REFUNDED' }))],
    [
      'names a transaction that does not exist',
      changed((good) => ({ ...good, sending: { ...good.sending, txHash: `0x${'7'.repeat(64)}` } })),
    ],
    ['names another payer', changed((good) => ({ ...good, fromAddress: freshAddress('somebody else') }))],
  ]
  it.each(faults)('stays as it is when the server %s, and is looked up again', async (fault, behaviour) => {
    const { request } = await deliver()
    const before = await paymentOf(request)
    server.behave(behaviour)
    await queueOf('one', fault === 'hangs' ? HANG_MS : undefined).drain()
    expect(await paymentOf(request)).toEqual(before)
    const [row] = (await queued()) as { due_at: Date; attempts: number }[]
    expect([row?.attempts, server.asked.length]).toEqual([1, 1])
    nowMs = row?.due_at.getTime() ?? 0
    server.behave(answerWell)
    await queueOf().drain()
    expect([sourceOf(await paymentOf(request)), await queued()]).toEqual([source(), []])
  })

  it('is not looked up while the quota is used up, which counts no attempt', async () => {
    const { request } = await deliver()
    const headers = { 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }
    server.behave((_, response) => answer(response, 429, { message: 'slow down', code: 1005 }, headers))
    const queue = queueOf()
    await queue.drain()
    server.behave(answerWell)
    for (const waitMs of [3_000, 10_000, 40_000]) {
      nowMs += waitMs
      await queue.drain()
    }
    const [row] = (await queued()) as { attempts: number }[]
    expect([server.asked.length, row?.attempts]).toEqual([1, 1])
    nowMs += 8_000
    await queue.drain()
    expect(sourceOf(await paymentOf(request))).toEqual(source())
  })

  it('is not looked up while the server fails, which counts no attempt', async () => {
    await deliver()
    await deliver()
    server.behave(() => {})
    const queue = queueOf('one', HANG_MS)
    await queue.drain()
    await queue.drain()
    const attempts = await knex('carried_payments').orderBy('attempts').pluck('attempts')
    expect([server.asked.length, attempts]).toEqual([1, [0, 1]])
  })

  it('counts no attempt when a lookup is cut short because the process stops', async () => {
    await deliver()
    const stopping = new AbortController()
    server.behave(() => stopping.abort(new Error('stopping')))
    await expect(queueOf().drain(stopping.signal)).rejects.toThrow('stopping')
    expect(await queued()).toMatchObject([
      { attempts: 0, due_at: expect.toSatisfy((at: Date) => at.getTime() <= nowMs) },
    ])
  })

  it('is given up after the last attempt', async () => {
    const { request } = await deliver()
    for (let attempt = 0; attempt < MAX_ATTEMPTS + 3; attempt++) {
      await queueOf().drain()
      nowMs += 6 * 3_600_000
    }
    expect([server.asked.length, await queued()]).toEqual([MAX_ATTEMPTS, []])
    expect(sourceOf(await paymentOf(request))).toEqual(unknown)
  })

  it('is looked up by one process at a time', async () => {
    const delivered = [await deliver(), await deliver(), await deliver(), await deliver()]
    const answering = Promise.withResolvers<void>()
    server.behave((txHash, response) => void answering.promise.then(() => answerWell(txHash, response)))
    let over = 0
    const draining = ['one', 'two', 'three'].map(async (owner) => {
      await queueOf(owner).drain()
      over++
    })
    await vi.waitFor(() => expect(over).toBe(2), { timeout: 2_000 })
    answering.resolve()
    await Promise.all(draining)
    await queueOf('four').drain()
    expect(server.asked.toSorted()).toEqual(delivered.map(({ txHash }) => txHash as string).toSorted())
    for (const { request } of delivered) expect(sourceOf(await paymentOf(request))).toEqual(source())
  })

  it('has its payer screened once that is known, on the chain where it was received', async () => {
    const listing = (isListed: boolean) => encodeListing(far.deployed.screeningOracle, [payer], isListed)
    await far.send(far.deployer, listing(true))
    const { request } = await deliver()
    await far.send(far.deployer, listing(false))
    expect(await paymentOf(request)).toMatchObject({ payer: null, marks: 0 })
    server.behave(answerWell)
    await queueOf().drain()
    const known = await paymentOf(request)
    expect([known?.payer, marksOfBits(known?.marks)]).toEqual([canonical(payer), ['SCREENING_UNKNOWN']])
    await knex('pending_enrichments').update({ due_at: new Date(0) })
    await detection.enrichOnce()
    const screened = await paymentOf(request)
    expect([screened?.payer, marksOfBits(screened?.marks)]).toEqual([canonical(payer), ['PAYER_SCREENED']])
    expect(await knex('pending_enrichments')).toEqual([])
  })

  it('is looked up again when a reorg removed it and it comes back', async () => {
    const { request, txHash } = await deliver()
    server.behave(answerWell)
    await queueOf().drain()
    await far.reorg(1)
    await detection.scanOnce()
    expect(await paymentsOf(knex, account, request)).toEqual([])
    const again = await far.pay(far.wallets[3], {
      kind: 'ERC20',
      token: far.tokens.USDC.address,
      to: request.payee as Hex,
      amount: 100_000_000n,
      paymentReference: request.paymentReference,
    })
    await detection.scanOnce()
    nowMs = Date.now()
    await queueOf().drain()
    expect(sourceOf(await paymentOf(request))).toEqual(source())
    expect(server.asked).toEqual([txHash, again.transactionHash])
  })

  /** A delivery whose source is on a chain that can still change. */
  async function deliverFromFresh() {
    const { request } = await deliver()
    const sent = encodeTransfer(near.tokens.USDC.address, freshAddress('escrow'), 1n)
    const { transactionHash: freshTx } = await near.send(payer, sent)
    await detection.scanOnce()
    server.behave(changed((good) => ({ ...good, sending: { ...good.sending, txHash: freshTx } })))
    await queueOf().drain()
    expect(sourceOf(await paymentOf(request))).toEqual({ ...source(), txHash: freshTx })
    return { request, freshTx }
  }
  const checkAgain = async () => {
    nowMs += 15_000
    await queueOf().drain()
  }

  it('loses a source that a reorg removes, and gets the one that is there then', async () => {
    const { request } = await deliverFromFresh()
    await near.reorg(1)
    const again = await near.send(payer, encodeTransfer(near.tokens.USDC.address, freshAddress('escrow'), 2n))
    await detection.scanOnce()
    server.behave((_, response) => answer(response, 404, NOT_FOUND))
    await checkAgain()
    expect(sourceOf(await paymentOf(request))).toEqual(unknown)
    server.behave(changed((good) => ({ ...good, sending: { ...good.sending, txHash: again.transactionHash } })))
    await checkAgain()
    expect(sourceOf(await paymentOf(request))).toEqual({ ...source(), txHash: again.transactionHash })
    expect(await queued()).toHaveLength(1)
    await near.mine({ blocks: 5 })
    await detection.scanOnce()
    await checkAgain()
    expect(await queued()).toEqual([])
  })

  it('keeps a source that a reorg moves to another block, also while its service must not be asked', async () => {
    const { request, freshTx } = await deliverFromFresh()
    const [before] = await queued()
    await near.mine({ timestampSec: Math.floor(Date.now() / 1_000) + 100 })
    await near.reorg(2, [{ hash: freshTx, offset: 1 }])
    await detection.scanOnce()
    const asked = server.asked.length
    const headers = { 'ratelimit-remaining': '0', 'ratelimit-reset': '6000' }
    server.behave((_, response) => answer(response, 429, { message: 'slow down', code: 1005 }, headers))
    await checkAgain()
    expect(server.asked.length).toBe(asked)
    const [moved] = await queued()
    expect(Number(moved.source_block_number)).toBe(Number(before.source_block_number) + 1)
    await near.mine({ blocks: 5 })
    await detection.scanOnce()
    await checkAgain()
    expect([await queued(), sourceOf(await paymentOf(request))]).toEqual([[], { ...source(), txHash: freshTx }])
  })

  it('leaves nothing behind if it is gone when the answer comes', async () => {
    const { request } = await deliver()
    server.behave((txHash, response) => {
      void far
        .reorg(1)
        .then(() => detection.scanOnce())
        .then(() => answerWell(txHash, response))
    })
    await queueOf().drain()
    expect([await paymentsOf(knex, account, request), await queued(), server.asked.length]).toEqual([[], [], 1])
  })

  it.each([
    ['a known chain that is not followed', 10, 'OPTIMISM'],
    ['an unknown chain', 987_654_321, null],
  ])('from %s gets its source without a check on that chain', async (_, chainId, network) => {
    const { request } = await deliver()
    server.behave(changed((good) => ({ ...good, sending: { ...good.sending, chainId } })))
    await queueOf().drain()
    expect(sourceOf(await paymentOf(request))).toEqual({ ...source(), network })
  })

  it('from a chain with other addresses is not looked up again', async () => {
    const { request } = await deliver()
    const sending = {
      chainId: 1_151_111_081_099_710,
      txHash: '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW',
    }
    server.behave(changed((good) => ({ ...good, sending: { ...good.sending, ...sending } })))
    await queueOf().drain()
    expect([await queued(), sourceOf(await paymentOf(request))]).toEqual([[], unknown])
  })

  describe('from the payee', () => {
    const standing = async (request: PaymentRequest) => {
      const { status, outstandingAmount } = await balanceOf(knex, account, request)
      return { status, left: outstandingAmount, unmatched: await unmatchedOf(knex, account.id) }
    }
    const uncounted = { status: 'OPEN', left: '100', unmatched: ['SELF_PAYMENT'] }
    const counted = { status: 'PENDING', left: '0', unmatched: [] }

    /** The payee sends to the bridge on `near`. */
    async function fromPayee() {
      const payee = near.wallets[2]
      const sent = await near.send(payee, { to: freshAddress('escrow'), data: '0x', value: 1n } as never)
      const delivered = await deliver(payee)
      const ends = { ...endsOf(delivered.txHash), sending: { chainId: NEAR_ID, txHash: sent.transactionHash } }
      server.behave((_, response) => answer(response, 200, done({ ...ends, fromAddress: payee })))
      return delivered
    }

    it('counts for nothing once its source shows that, and again once a reorg removed the source', async () => {
      const { request } = await fromPayee()
      expect(await standing(request)).toEqual(counted)
      await queueOf().drain()
      await detection.scanOnce()
      expect(await standing(request)).toEqual(uncounted)
      expect(await paymentOf(request)).toBeUndefined()
      await near.reorg(1)
      await near.mine()
      await detection.scanOnce()
      server.behave((_, response) => answer(response, 404, NOT_FOUND))
      await checkAgain()
      await detection.scanOnce()
      expect(await standing(request)).toEqual(counted)
    })

    it('counts for nothing at every later reading, also of another block', async () => {
      const { request, txHash } = await fromPayee()
      await queueOf().drain()
      await detection.scanOnce()
      await far.mine()
      await detection.scanOnce()
      await far.reorg(2, [{ hash: txHash, offset: 1 }])
      await far.mine({ blocks: 2 })
      await detection.scanOnce()
      expect(await standing(request)).toEqual(uncounted)
    })

    it('by the word of the bridge alone counts as before, with its payer', async () => {
      const { request } = await fromPayee()
      await queueOf('one', undefined, configs.slice(1)).drain()
      await detection.scanOnce()
      expect(await standing(request)).toEqual(counted)
      expect((await paymentOf(request))?.payer).toBe(request.payee)
    })
  })

  it('has the refunds of its payer alone, whether they are known before or after the money goes', async () => {
    const rowsOf = async (isKnownBefore: boolean) => {
      const { request } = await deliver()
      const payee = request.payee as Hex
      const learn = async () => {
        server.behave(answerWell)
        await queueOf().drain()
        await detection.scanOnce()
      }
      if (isKnownBefore) await learn()
      await far.setNativeBalance(payee, 10n ** 20n)
      await far.client.rpc.call('anvil_impersonateAccount', [payee])
      for (const [to, amount] of [
        [freshAddress('not the payer'), 30_000_000n],
        [payer, 20_000_000n],
      ] as const) {
        await far.pay(payee, {
          kind: 'ERC20',
          token: far.tokens.USDC.address,
          to,
          amount,
          paymentReference: request.paymentReference,
        })
      }
      await detection.scanOnce()
      const between = await knex('refunds').where({ account_id: account.id }).orderBy('amount').pluck('amount')
      if (!isKnownBefore) await learn()
      const refunds = await knex('refunds').where({ account_id: account.id }).pluck('amount')
      const unmatched = await knex('unmatched_events').where({ account_id: account.id }).pluck('reason')
      await knex('refunds').where({ account_id: account.id }).delete()
      await knex('unmatched_events').where({ account_id: account.id }).delete()
      return { between, refunds, unmatched }
    }
    expect(await rowsOf(true)).toEqual({ between: ['20'], refunds: ['20'], unmatched: ['WRONG_PAYEE'] })
    expect(await rowsOf(false)).toEqual({ between: ['20', '30'], refunds: ['20'], unmatched: ['WRONG_PAYEE'] })
  })

  it.each<[string, isWallet: boolean, before: string]>([
    ['before its payer is known', false, 'REFUNDED'],
    ['once its payer is known, where they are a refund wallet of the account', true, 'CONFIRMED'],
  ])('is refunded by what the payee sends back, %s', async (_, isWallet, before) => {
    const { request } = await deliver()
    if (isWallet) await registerWallet(payer)
    const payee = request.payee as Hex
    await far.setNativeBalance(payee, 10n ** 20n)
    await far.client.rpc.call('anvil_impersonateAccount', [payee])
    await far.pay(payee, {
      kind: 'ERC20',
      token: far.tokens.USDC.address,
      to: payer,
      amount: 100_000_000n,
      paymentReference: request.paymentReference,
    })
    await far.mine({ blocks: 5 })
    await detection.scanOnce()
    expect((await paymentOf(request))?.status).toBe(before)
    server.behave(answerWell)
    await queueOf().drain()
    await detection.scanOnce()
    expect(await paymentOf(request)).toMatchObject({ status: 'REFUNDED', payer: canonical(payer) })
  })
})
