import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { encodeFunctionData, getAddress, type Hex, keccak256, parseAbi, toBytes, toHex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEMO_CHAINS } from '../../demo/network/chain-specs.ts'
import { encodeApprove } from '../../demo/network/demo-contracts.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { programsOf } from '../clients/run-examples.ts'
import { startTestChain, type TestChain, type TestPayment } from '../support/chains/chain.ts'
import { encodeBatch } from '../support/chains/contract-calls.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type PaymentJson,
  type RequestJson,
  startLifeService,
} from '../support/chains/payment-life.ts'
import { startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { watchBy } from '../support/clients/watch-clients.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const COIN = 10n ** 18n
const USD = 10n ** 8n
const HUNDRED = 100_000000n

const TRANSFER_FROM = parseAbi(['function transferFrom(address from, address to, uint256 value)'])
const SWAP_TO_PAY = parseAbi([
  'function swapTransferWithReference(address paymentProxy, address to, uint256 amount, uint256 amountInMax, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 deadline)',
])

let database: TestDatabase
let chain: TestChain
let service: LifeService
let folder: string
let environment: Record<string, string>
let shop: Caller

beforeAll(async () => {
  ;[database, chain] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_531, spec: { pools: DEMO_CHAINS[0]?.pools ?? [] } }),
  ])
  const config = chain.config({ name: 'BASE', finalityDepth: 1 })
  folder = await makeTempFolder('refunds')
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: [config] }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  service = await startLifeService(database.knex, [config])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop(), rm(folder, { recursive: true, force: true })])
})

let seeds = 0
const freshWallet = () => newWallet(chain, `refunds ${seeds++}`)

/** Reads the chain after everything on it is final. */
async function scan(): Promise<void> {
  await chain.mine({ blocks: 2 })
  await service.scan()
}

/** A request that was paid in full, and all addresses that its refunds concern. */
interface Paid {
  readonly request: RequestJson
  readonly payer: Hex
  readonly payee: Hex
  readonly stranger: Hex
  readonly refundAddress: Hex
  /** The reference of the refund address. */
  readonly refundReference: Hex
  readonly isNative: boolean
}

async function paidRequest(currency: 'USDC' | 'ETH', ownPayee?: Hex): Promise<Paid> {
  const [payer, payee, stranger] = [await freshWallet(), ownPayee ?? (await freshWallet()), await freshWallet()]
  const refundAddress = freshAddress(`refund ${seeds++}`)
  const isNative = currency === 'ETH'
  const amount = isNative ? '1' : '100'
  const request = await shop.createRequest({ payee, amount, paymentCurrency: currency, refundAddress })
  const text = (request.requestId + request.salt + refundAddress).toLowerCase()
  const refundReference: Hex = `0x${keccak256(toBytes(text)).slice(-16)}`
  const paid = { request, payer, payee, stranger, refundAddress, refundReference, isNative }
  await move(paid, { from: payer, to: payee })
  await scan()
  expect(await stateOf(paid)).toEqual({ status: 'PAID', payments: [['CONFIRMED', '0']], unmatched: [] })
  return paid
}

/** Pays the whole amount through the proxy, under the request's own reference unless given another. */
async function move(paid: Paid, terms: { from: Hex; to: Hex; paymentReference?: Hex }): Promise<void> {
  const { from, ...rest } = terms
  const { USDC } = chain.tokens
  const common = { paymentReference: paid.request.paymentReference, ...rest }
  const payment: TestPayment = paid.isNative
    ? { kind: 'NATIVE', amount: COIN, ...common }
    : { kind: 'ERC20', token: USDC.address, amount: HUNDRED, ...common }
  if (!paid.isNative) await chain.fund(USDC, from, HUNDRED)
  await chain.pay(from, payment)
}

async function stateOf({ request, refundReference }: Paid) {
  const payments = await shop.paymentsOf(request)
  const references = [request.paymentReference, refundReference]
  const unmatched = await Promise.all(
    references.map((paymentReference) => service.unmatchedOf(shop, { paymentReference })),
  )
  return {
    status: (await shop.request(request.paymentReference)).status,
    payments: payments.map(({ status, refundedAmount }) => [status, refundedAmount]),
    unmatched: unmatched.flat(),
  }
}

/** Does something while the service's clock is between the last block and the next one. */
async function atChainTime(act: () => Promise<unknown>): Promise<void> {
  const { timestampSec } = await chain.client.head()
  const aheadMs = timestampSec * 1_000 + 500 - Date.now()
  await chain.mine({ timestampSec: timestampSec + 60 })
  service.passTime(aheadMs - passedMs)
  passedMs = aheadMs
  await act()
}
let passedMs = 0

const waybill = (...words: string[]) => runCommand(environment, words)

/** The columns of the newest unmatched event. */
async function unmatchedLine(): Promise<string[]> {
  const { stdout } = await waybill('unmatched', 'list', '--account', 'shop', '--chain', 'base', '--limit', '1')
  return rowsOf(stdout)[0] ?? []
}

type Attack = (paid: Paid) => Promise<unknown>

/** Transfers by the payer themselves, by a stranger, and by a stranger through a contract. */
const underRefundReference: readonly Attack[] = [
  (paid) => move(paid, { from: paid.payer, to: paid.refundAddress, paymentReference: paid.refundReference }),
  (paid) => move(paid, { from: paid.stranger, to: paid.refundAddress, paymentReference: paid.refundReference }),
  ({ stranger, refundAddress, refundReference, isNative }) => {
    const common = { to: refundAddress, paymentReference: refundReference }
    const payment: TestPayment = isNative
      ? { kind: 'NATIVE', amount: COIN, ...common }
      : { kind: 'ERC20', token: chain.tokens.USDC.address, amount: HUNDRED, ...common }
    return chain.payInOneTransaction(stranger, [payment])
  },
]

/** Swaps for USDC that goes to the payer, in a transaction with a Transfer of 0 from the payee to the swap contract. */
async function swapToOneself({ payer, payee, request }: Paid): Promise<void> {
  const { DAI, USDC } = chain.tokens
  const { paymentBatch } = chain.contracts
  const swapToPay = chain.deployed.exchange?.swapToPay
  if (swapToPay === undefined) throw new Error('the chain has no exchange')
  await chain.fund(DAI, paymentBatch, 200n * COIN)
  const nothing = encodeFunctionData({ abi: TRANSFER_FROM, args: [payee, swapToPay, 0n] })
  const noFee = { amount: 0n, address: freshAddress('nobody') }
  const swap = encodeFunctionData({
    abi: SWAP_TO_PAY,
    args: [
      chain.contracts.erc20FeeProxy,
      payer,
      HUNDRED,
      200n * COIN,
      [DAI.address, USDC.address],
      request.paymentReference,
      noFee.amount,
      noFee.address,
      10n ** 12n,
    ],
  })
  const calls = [
    { to: USDC.address, data: nothing },
    encodeApprove(DAI.address, swapToPay, 200n * COIN),
    { to: swapToPay, data: swap },
  ]
  await chain.send(payer, encodeBatch(paymentBatch, calls), { gas: 2_000_000n })
}

describe.each(['USDC', 'ETH'] as const)('what somebody else than the payee sends, in %s', (currency) => {
  it('is no refund, neither under the refund reference nor under the request’s own to the payer', async () => {
    const paid = await paidRequest(currency)
    for (const attack of underRefundReference) await attack(paid)
    await move(paid, { from: paid.stranger, to: paid.payer })
    await scan()
    expect(await stateOf(paid)).toEqual({
      status: 'PAID',
      payments: [['CONFIRMED', '0']],
      unmatched: ['WRONG_PAYEE', ...underRefundReference.map(() => 'NOT_FROM_PAYEE')],
    })
  })
})

it('a swap to oneself beside a Transfer of 0 from the payee is no refund', async () => {
  const paid = await paidRequest('USDC')
  await swapToOneself(paid)
  await scan()
  expect(await stateOf(paid)).toEqual({
    status: 'PAID',
    payments: [['CONFIRMED', '0']],
    unmatched: ['WRONG_PAYEE'],
  })
})

describe.each(['USDC', 'ETH'] as const)('what the payee sends back, in %s', (currency) => {
  const whole = currency === 'ETH' ? '1' : '100'

  it.each([
    ['to the refund address under its reference', ({ refundAddress }: Paid) => refundAddress],
    ['to the payer under the request’s own', ({ payer }: Paid) => payer],
  ])('is a refund %s', async (_, addressOf) => {
    const paid = await paidRequest(currency)
    const to = addressOf(paid)
    const isOwn = to === paid.payer
    await move(paid, { from: paid.payee, to, ...(isOwn ? {} : { paymentReference: paid.refundReference }) })
    await scan()
    expect(await stateOf(paid)).toEqual({ status: 'REFUNDED', payments: [['REFUNDED', whole]], unmatched: [] })
  })
})

const isRefunded = (payment: unknown) => ((payment as PaymentJson | undefined)?.refunds.length ?? 0) > 0

describe.each(['USDC', 'ETH'] as const)('a refund of what was overpaid, in %s', (currency) => {
  it('is sent to whoever watches, and found by its hash', async () => {
    const paid = await paidRequest(currency)
    await move(paid, { from: paid.payer, to: paid.payee })
    await scan()
    const whole = currency === 'ETH' ? '1' : '100'
    expect(await shop.request(paid.request.paymentReference)).toMatchObject({ status: 'PAID', overpaidAmount: whole })

    const { key } = await issueApiKey(createApiKeyRepository(database.knex), {
      account: 'shop',
      scopes: ['payments:read'],
      now: new Date(),
    })
    const refund = async () => {
      await move(paid, { from: paid.payee, to: paid.payer })
      await scan()
    }
    const { messages } = await watchBy('JSON lines', {
      url: service.baseUrl,
      request: { paymentReference: [paid.request.paymentReference] },
      headers: { 'x-api-key': key },
      onMessage({ type, payment }) {
        if (type === 'HEARTBEAT') void refund()
        return isRefunded(payment) ? 'hang up' : 'go on'
      },
    })
    const sent = messages.at(-1)?.payment as unknown as PaymentJson
    expect(sent).toMatchObject({
      refundedAmount: whole,
      refunds: [{ amount: whole, currency: expect.stringMatching(currency) }],
    })
    const txHash = sent.refunds[0]?.txHash ?? ''
    for (const query of [{ txHash }, { q: txHash }]) {
      const { payments } = await shop.search(query)
      expect(payments.map(({ id }) => id)).toEqual([sent.id])
    }
    expect(await shop.request(paid.request.paymentReference)).toMatchObject({ status: 'PAID', overpaidAmount: '0' })
  })
})

describe('a hot wallet', () => {
  const state = async (paid: Paid) => {
    const { status, unmatched } = await stateOf(paid)
    return [status, ...unmatched]
  }
  const refundFrom = async (paid: Paid, from: Hex) => {
    await move(paid, { from, to: paid.refundAddress, paymentReference: paid.refundReference })
    await scan()
  }
  const register = (address: Hex) => shop.call('POST', '/v1/wallets', { body: { address, note: 'hot' } })

  it('refunds from its registration until its removal', async () => {
    const [hot, first, second, third] = [
      await freshWallet(),
      await paidRequest('USDC'),
      await paidRequest('ETH'),
      await paidRequest('USDC'),
    ]
    await refundFrom(first, hot)
    expect(await state(first)).toEqual(['PAID', 'NOT_FROM_PAYEE'])
    // After the blocks that exist, whatever their timestamps.
    await atChainTime(() => register(hot))
    await service.scan()
    await refundFrom(second, hot)
    expect([await state(first), await state(second)]).toEqual([['PAID', 'NOT_FROM_PAYEE'], ['REFUNDED']])
    await atChainTime(() => shop.call('DELETE', `/v1/wallets/${hot}`))
    await refundFrom(third, hot)
    expect([await state(second), await state(third)]).toEqual([['REFUNDED'], ['PAID', 'NOT_FROM_PAYEE']])
  })

  it('of another account refunds nothing', async () => {
    const [hot, paid] = [await freshWallet(), await paidRequest('USDC')]
    const other = await service.caller('other')
    await atChainTime(() => other.call('POST', '/v1/wallets', { body: { address: hot } }))
    await refundFrom(paid, hot)
    expect(await state(paid)).toEqual(['PAID', 'NOT_FROM_PAYEE'])
  })

  it('that refunded before its registration counts while an operator accepts it, also when its chain is read anew', async () => {
    const [hot, paid] = [await freshWallet(), await paidRequest('USDC')]
    const before = Number((await chain.client.head()).number)
    await refundFrom(paid, hot)
    const [, , txHash = '', event = '', , , ...said] = await unmatchedLine()
    const addresses = [paid.refundAddress, chain.tokens.USDC.address, hot].map((each) => getAddress(each))
    expect(said).toEqual([addresses[0], String(HUNDRED), ...addresses.slice(1)])
    const words = [
      '--chain',
      'base',
      '--tx',
      txHash,
      '--event',
      event,
      '--account',
      'shop',
      '--reason',
      'our support wallet',
    ]
    expect(await waybill('unmatched', 'accept', ...words, '--as', 'payment')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NOT_FROM_PAYEE, which cannot be accepted as a payment'),
    })
    expect(await state(paid)).toEqual(['PAID', 'NOT_FROM_PAYEE'])
    expect(await waybill('unmatched', 'accept', ...words, '--as', 'refund')).toMatchObject({ code: 0, stdout: '' })
    expect(await state(paid)).toEqual(['REFUNDED'])
    expect(await waybill('unmatched', 'accept', ...words, '--as', 'refund')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is accepted already, as a refund'),
    })

    await service.detection.restartFrom('BASE', before)
    expect((await state(paid)).slice(0, 1)).toEqual(['PAID'])
    await service.scan()
    expect(await state(paid)).toEqual(['REFUNDED'])

    const unaccept = () => waybill('unmatched', 'accept', '--undo', ...words)
    expect(await unaccept()).toMatchObject({ code: 0 })
    expect(await state(paid)).toEqual(['PAID', 'NOT_FROM_PAYEE'])
    expect((await stateOf(paid)).payments).toEqual([['CONFIRMED', '0']])
    expect(await unaccept()).toMatchObject({ code: 1, stderr: expect.stringContaining('has accepted no event') })

    const lines = rowsOf((await waybill('audit', '--account', 'shop')).stdout)
    const ofEvents = lines.filter(([, , action]) => action?.endsWith('ACCEPT_EVENT'))
    expect(ofEvents.map(([, actor, action, , , details]) => [actor, action, JSON.parse(details ?? '')])).toEqual([
      [
        'ann@host',
        'ACCEPT_EVENT',
        { chain: 'BASE', txHash, eventIndex: 0, as: 'REFUND', was: 'NOT_FROM_PAYEE', reason: 'our support wallet' },
      ],
      [
        'ann@host',
        'UNACCEPT_EVENT',
        { chain: 'BASE', txHash, eventIndex: 0, as: 'REFUND', reason: 'our support wallet' },
      ],
    ])
  })

  it('that paid the payer under the request’s own reference can be accepted, but not with another token', async () => {
    const [hot, paid] = [await freshWallet(), await paidRequest('USDC')]
    await move(paid, { from: hot, to: paid.payer })
    await scan()
    const accept = async () => {
      const [, , txHash = '', event = ''] = await unmatchedLine()
      const words = ['--chain', 'BASE', '--tx', txHash, '--event', event, '--account', 'shop']
      return waybill('unmatched', 'accept', ...words, '--as', 'refund', '--reason', 'reported by the shop')
    }
    expect((await accept()).code).toBe(0)
    expect(await state(paid)).toEqual(['REFUNDED'])
    const { DAI } = chain.tokens
    await chain.fund(DAI, hot, COIN)
    const { refundAddress: to, refundReference: paymentReference } = paid
    await chain.pay(hot, { kind: 'ERC20', token: DAI.address, amount: COIN, to, paymentReference })
    await scan()
    expect(await accept()).toMatchObject({ code: 1, stderr: expect.stringContaining('unmatched by WRONG_TOKEN') })
  })
})

describe('a conversion at a feed that has stopped', () => {
  async function payByStoppedFeed() {
    const [payer, payee] = [await freshWallet(), await freshWallet()]
    const { DAI } = chain.tokens
    const request = await shop.createRequest({ payee, amount: '5', invoiceCurrency: 'USD', paymentCurrency: 'DAI' })
    const { timestampSec } = await chain.client.head()
    await chain.fund(DAI, payer, 10n * COIN)
    await chain.setFeed(DAI.feed, { answer: USD, updatedAtSec: timestampSec - 3 * 3_600 })
    const { paymentReference } = request
    const terms = { to: payee, amount: 5n * USD, paymentReference, maxRateTimespanSec: 0n, maxToSpend: 10n * COIN }
    await chain.pay(payer, { kind: 'ERC20_CONVERSION', token: DAI.address, ...terms })
    await chain.setFeed(DAI.feed, { answer: USD })
    await scan()
    const state = async () => [
      (await shop.request(paymentReference)).status,
      ...(await service.unmatchedOf(shop, { paymentReference })),
    ]
    const [, , txHash = '', event = ''] = await unmatchedLine()
    const refund = async () => {
      await chain.fund(DAI, payee, 5n * COIN)
      await chain.pay(payee, { kind: 'ERC20', token: DAI.address, to: payer, amount: 5n * COIN, paymentReference })
      await scan()
    }
    return {
      state,
      refund,
      words: ['--chain', 'BASE', '--tx', txHash, '--event', event, '--account', 'shop', '--reason', 'checked'],
    }
  }

  it('counts as a payment while an operator accepts it, and stays counted if it was before rates were checked', async () => {
    const { state, words } = await payByStoppedFeed()
    const accept = (as: string) => waybill('unmatched', 'accept', ...words, '--as', as)
    expect(await state()).toEqual(['OPEN', 'STALE_RATE'])
    const asRefund = await accept('refund')
    expect(asRefund).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be accepted as a refund') })
    expect(await accept('payment')).toMatchObject({ code: 0 })
    expect(await state()).toEqual(['PAID'])
    expect(await waybill('unmatched', 'accept', '--undo', ...words)).toMatchObject({ code: 0 })
    expect(await state()).toEqual(['OPEN', 'STALE_RATE'])

    await accept('payment')
    await database.knex('accepted_events').delete()
    const again = await waybill('verify', '--repair', '--account', 'shop')
    expect(again.code).toBe(3)
    expect(again.stderr).toContain('its rate is not proved (STALE_RATE), so the stored verdict on it stands')
    expect(await state()).toEqual(['PAID'])
  })

  it('that stays counted keeps the refunds to its payer', async () => {
    const { state, refund, words } = await payByStoppedFeed()
    await waybill('unmatched', 'accept', ...words, '--as', 'payment')
    await refund()
    expect(await state()).toEqual(['REFUNDED'])
    await database.knex('accepted_events').delete()
    expect((await waybill('verify', '--repair', '--account', 'shop')).code).toBe(3)
    expect(await state()).toEqual(['REFUNDED'])
  })

  it('stays accepted while its transaction cannot be read', async () => {
    const { state, words } = await payByStoppedFeed()
    await waybill('unmatched', 'accept', ...words, '--as', 'payment')
    const node = await startRpcProxy(chain.rpcUrl)
    node.meddle(({ method }) => (method === 'eth_getTransactionReceipt' ? Promise.resolve(null) : undefined))
    const file = join(folder, 'pruned.json')
    const config = { ...chain.config({ name: 'BASE', finalityDepth: 1 }), rpcUrls: [node.url] }
    await writeFile(file, JSON.stringify({ chains: [config] }))
    const answer = await runCommand({ ...environment, CHAINS_FILE: file }, ['unmatched', 'accept', '--undo', ...words])
    await node.stop()
    expect(answer).toMatchObject({ code: 1, stderr: expect.stringContaining('could not be read') })
    expect(await state()).toEqual(['PAID'])
    expect(await waybill('unmatched', 'accept', '--undo', ...words)).toMatchObject({ code: 0 })
    expect(await state()).toEqual(['OPEN', 'STALE_RATE'])
  })
})

it('a refund that only a trace proves stays one while no trace can be read', async () => {
  // A wallet with code: the trace proves that what it sends back is its own money.
  const payee = chain.contracts.paymentBatch
  const paid = await paidRequest('ETH', payee)
  const { payer, request } = paid
  const { paymentReference } = request
  const back: TestPayment = { kind: 'NATIVE', amount: COIN, to: payer, paymentReference }
  const { transactionHash } = await chain.payInOneTransaction(await freshWallet(), [back])
  await scan()
  const refunded = [['REFUNDED', '1']]
  expect((await stateOf(paid)).payments).toEqual(refunded)

  const node = await startRpcProxy(chain.rpcUrl)
  const file = join(folder, 'slow.json')
  const config = { ...chain.config({ name: 'BASE', finalityDepth: 1 }), rpcUrls: [node.url] }
  await writeFile(file, JSON.stringify({ chains: [config] }))
  const repair = () => runCommand({ ...environment, CHAINS_FILE: file }, ['verify', '--repair'])
  const slow = { rpcError: { code: -32000, message: 'execution timeout' } }
  node.meddle(({ method }) => (method === 'debug_traceTransaction' ? Promise.resolve(slow) : undefined))
  const untraced = await repair()
  expect(untraced).toMatchObject({ code: 3, stderr: expect.stringContaining(transactionHash) })
  expect((await stateOf(paid)).payments).toEqual(refunded)
  node.meddle()
  expect((await repair()).code).toBe(3)
  expect((await stateOf(paid)).payments).toEqual(refunded)
  await node.stop()
})

it('the program of docs/guides/refund-a-payment.md refunds a payment', async () => {
  const program = programsOf('docs/guides/refund-a-payment.md').get('refund.ts') ?? ''
  const payee = mnemonicToAccount('test test test test test test test test test test test junk', { addressIndex: 1 })
  expect(payee.address).toBe(chain.wallets[0])
  const paid = await paidRequest('USDC', payee.address)
  const { key } = await issueApiKey(createApiKeyRepository(database.knex), {
    account: 'shop',
    scopes: ['payments:read', 'requests:read'],
    now: new Date(),
  })
  const [payment] = await shop.paymentsOf(paid.request)
  const running = promisify(execFile)(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    cwd: join(import.meta.dirname, '../..'),
    env: {
      WAYBILL_URL: service.baseUrl,
      WAYBILL_KEY: key,
      PAYMENT_ID: payment?.id,
      RPC_URL: chain.rpcUrl,
      FEE_PROXY: chain.contracts.erc20FeeProxy,
      PRIVATE_KEY: toHex(payee.getHdKey().privateKey ?? ''),
    },
  })
  const ended = Promise.allSettled([running])
  // The program waits for blocks, and this chain mines only when asked.
  for (let isOver = false; !isOver; ) {
    await chain.mine()
    isOver = await Promise.race([ended.then(() => true), sleep(20, false)])
  }
  const { stdout } = await running
  await scan()
  expect(await stateOf(paid)).toEqual({ status: 'REFUNDED', payments: [['REFUNDED', '100']], unmatched: [] })
  expect((await shop.paymentsOf(paid.request))[0]?.refunds).toMatchObject([{ txHash: stdout.trim() }])
})
