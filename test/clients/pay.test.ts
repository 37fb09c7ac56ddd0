import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { BrowserProvider } from 'ethers'
import { providers } from 'ethers5'
import { createWalletClient, custom, type Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createWaybill,
  type PayOptions,
  type PayProgress,
  pay,
  Route_StepKind,
  resumePay,
  type WalletProvider,
  type Waybill,
} from '../../clients/typescript/src/public.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { createTestWallet, failWith, type Meddle, type TestWallet, type TestWalletOptions } from './test-wallet.ts'

// pay() against a service and a chain, by wallets that really send, refuse and fail.

let running: TestService
let waybill: Waybill
beforeAll(async () => {
  running = await startTestService()
  waybill = createWaybill({ baseUrl: running.url, apiKey: running.keys.shop })
})
afterAll(() => running?.stop())

const AMOUNT = 5_000_000n
let scenes = 0

interface Scene {
  readonly wallet: TestWallet
  readonly payer: Hex
  readonly progress: PayProgress[]
  readonly options: PayOptions
  /** How often the payee was paid in full. */
  readonly timesPaid: () => Promise<number>
}

/** A new request of 5 USDC, and a wallet with enough for many payments and no approval. */
async function arrange(walletOptions: TestWalletOptions = {}): Promise<Scene> {
  const { chain } = running
  const payee = freshAddress(`payee ${++scenes}`)
  const payer = chain.wallets[scenes % 10] as Hex
  const { USDC } = chain.tokens
  if ((await chain.balanceOf(USDC, payer)) < AMOUNT) await chain.fund(USDC, payer, 20n * AMOUNT)
  // What a scene approved and did not spend.
  const left = await chain.allowance(USDC, payer, chain.contracts.erc20FeeProxy)
  if (left > 0n) await chain.approve(payer, USDC, chain.contracts.erc20FeeProxy, 0n)
  const { paymentReference } = await waybill.createPaymentRequest({
    payee,
    amount: '5',
    invoiceCurrency: 'USDC-ETHEREUM',
    paymentCurrency: 'USDC-ETHEREUM',
  })
  const wallet = createTestWallet(chain, payer, walletOptions)
  const progress: PayProgress[] = []
  const onProgress = (event: PayProgress) => progress.push(event)
  return {
    wallet,
    payer,
    progress,
    options: { waybill, paymentReference, provider: wallet, wallet: payer, onProgress, pollMs: 5 },
    timesPaid: async () => Number(await chain.balanceOf(chain.tokens.USDC, payee)) / Number(AMOUNT),
  }
}

const viemOf = (wallet: TestWallet): WalletProvider =>
  createWalletClient({ transport: custom(wallet as Parameters<typeof custom>[0], { retryDelay: 1 }) })
const ethers5Of = (wallet: TestWallet): WalletProvider => new providers.Web3Provider(wallet as never)
const ethers6Of = (wallet: TestWallet): WalletProvider => new BrowserProvider(wallet)
const bare = (wallet: TestWallet): WalletProvider => wallet

describe.each([
  ['a bare provider', bare],
  ['viem', viemOf],
  ['ethers 5', ethers5Of],
  ['ethers 6', ethers6Of],
])('with %s', (_, wrap) => {
  it('approval and payment are sent one after the other', async () => {
    const { wallet, options, progress, timesPaid } = await arrange({ atomic: 'unsupported' })
    const end = await pay({ ...options, provider: wrap(wallet) })
    expect(end).toMatchObject({ outcome: 'MINED', transactionHashes: [expect.any(String), expect.any(String)] })
    expect(wallet.prompts).toEqual(['eth_sendTransaction', 'eth_sendTransaction'])
    const once = ['ASKING', 'SENT', 'STEP_MINED']
    expect(progress.map(({ type }) => type)).toEqual(['QUOTED', ...once, ...once])
    expect(await timesPaid()).toBe(1)
  })

  it('a wallet that carries out batches is asked once', async () => {
    const { wallet, options, timesPaid } = await arrange({ atomic: 'supported' })
    const end = await pay({ ...options, provider: wrap(wallet) })
    expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual(['MINED', ['wallet_sendCalls'], 1])
  })

  const methods = ['eth_sendTransaction', 'wallet_sendCalls']
  const ends: readonly (readonly [number, string, string])[] = [
    [4001, 'no', 'REFUSED'],
    [5000, 'no', 'REFUSED'],
    [5002, 'no', 'REFUSED'],
    [-32603, 'User rejected the request', 'REFUSED'],
    [-32000, 'insufficient funds for intrinsic transaction cost', 'FAILED'],
    [-32002, 'Request already pending', 'FAILED'],
    [4100, 'not authorized', 'FAILED'],
  ]
  it.each(methods.flatMap((method) => ends.map(([code, message, outcome]) => ({ method, code, message, outcome }))))(
    '$method that fails with $code “$message” is $outcome, and not asked again',
    async (fault) => {
      const { method, code, message, outcome } = fault
      const atomic = method === 'wallet_sendCalls' ? 'supported' : 'unsupported'
      const meddle = { [method]: () => failWith(code, { message }) }
      const { wallet, options, timesPaid } = await arrange({ atomic, meddle })
      const end = await pay({ ...options, provider: wrap(wallet) })
      expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual([outcome, [method], 0])
      if (end.outcome === 'FAILED') expect(end.message).toBe(message)
    },
  )

  it('a payment that was sent although the wallet fails is not sent again', async () => {
    let sent = 0
    const { wallet, options, timesPaid } = await arrange({
      meddle: {
        async eth_sendTransaction(_params, pass) {
          const hash = await pass()
          return ++sent === 2 ? failWith(-32603) : hash
        },
      },
    })
    const end = await pay({ ...options, provider: wrap(wallet) })
    expect([end.outcome, wallet.prompts.length, await timesPaid()]).toEqual(['UNKNOWN', 2, 1])
  })
})

/** The service, with quotes whose approvals count as swaps. */
const swapping: Pick<Waybill, 'getPaymentCalldata'> = {
  async getPaymentCalldata(request, more) {
    const quote = await waybill.getPaymentCalldata(request, more)
    const [swap, ...others] = quote.steps
    return { ...quote, steps: [...(swap ? [{ ...swap, kind: Route_StepKind.SWAP }] : []), ...others] }
  },
}

function storageIn(kept: Map<string, string>) {
  return {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  }
}

describe('after a reload of the page', () => {
  /** Sends the payment, and leaves before it is mined for the page. */
  async function leave() {
    const kept = new Map<string, string>()
    const storage = storageIn(kept)
    const aborter = new AbortController()
    const scene = await arrange()
    const onProgress = (event: PayProgress) => event.type === 'SENT' && event.step === 2 && aborter.abort()
    const end = await pay({ ...scene.options, storage, onProgress, signal: aborter.signal })
    expect([end.outcome, kept.size]).toEqual(['SENT', 1])
    const [, transactionHash] = end.outcome === 'SENT' ? end.transactionHashes : []
    return { ...scene, kept, transactionHash, options: { ...scene.options, storage } }
  }

  it('a payment that is still waited for is not made again', async () => {
    const { wallet, options, progress, timesPaid, kept } = await leave()
    const prompts = wallet.prompts.length
    const end = await pay(options)
    expect([end.outcome, wallet.prompts.length, await timesPaid(), kept.size]).toEqual(['MINED', prompts, 1, 1])
    expect(progress.map(({ type }) => type)).toEqual(['WAITING_FOR_EARLIER'])
  })

  it('it is waited for on its chain, where the wallet is on another', async () => {
    const { options, payer, timesPaid, kept } = await leave()
    const elsewhere = createTestWallet(running.chain, payer, { chainId: '0x1' })
    const end = await pay({ ...options, provider: elsewhere })
    expect([end.outcome, await timesPaid(), kept.size]).toEqual(['MINED', 1, 1])
    expect(elsewhere.prompts).toEqual(['wallet_switchEthereumChain'])
  })

  it('it is still remembered, where the payer does not go to its chain', async () => {
    const { options, payer, transactionHash, timesPaid, kept } = await leave()
    const meddle = { wallet_switchEthereumChain: () => failWith(4001) }
    const elsewhere = createTestWallet(running.chain, payer, { chainId: '0x1', meddle })
    const end = await pay({ ...options, provider: elsewhere })
    expect(end).toEqual({ outcome: 'SENT', transactionHashes: [transactionHash] })
    expect([elsewhere.prompts, await timesPaid(), kept.size]).toEqual([['wallet_switchEthereumChain'], 1, 1])
  })
})

describe('a payment that is mined, and may count later', () => {
  async function pays(more: Partial<PayOptions> = {}) {
    const kept = new Map<string, string>()
    const scene = await arrange()
    const options = { ...scene.options, ...more, storage: storageIn(kept) }
    const end = await pay(options)
    expect(end.outcome).toBe('MINED')
    // The service knows of nothing that was paid, as while a bridge has not delivered.
    return { ...scene, options, kept, end, prompts: scene.wallet.prompts.length }
  }

  it('is not made again, and ends at once with its hashes', async () => {
    const { wallet, options, end, prompts, timesPaid } = await pays()
    expect([await pay(options), await resumePay(options)]).toEqual([end, end])
    expect([wallet.prompts.length, await timesPaid()]).toEqual([prompts, 1])
  })

  it('is made again when the payer says so', async () => {
    const { options, end, timesPaid } = await pays()
    const again = await pay({ ...options, askAgain: true })
    expect([again.outcome, await timesPaid()]).toEqual(['MINED', 2])
    expect(again).not.toEqual(end)
    expect(await pay(options)).toEqual(again)
  })

  it('is made again after a day', async () => {
    const { options, kept, timesPaid } = await pays()
    for (const [name, value] of kept)
      kept.set(name, JSON.stringify({ ...JSON.parse(value), minedAtMs: Date.now() - 86_400_000 }))
    expect(await resumePay(options)).toBeUndefined()
    expect([(await pay(options)).outcome, await timesPaid()]).toEqual(['MINED', 2])
  })

  it('is forgotten where it was a part: the next part is paid', async () => {
    const { options, kept, timesPaid } = await pays({ amount: '2.5' })
    expect([kept.size, (await pay(options)).outcome, await timesPaid()]).toEqual([0, 'MINED', 1])
  })
})

it('a payment that was left between its swap and itself is reported as not paid, and asked for by nothing', async () => {
  const kept = new Map<string, string>()
  const aborter = new AbortController()
  const { wallet, options, timesPaid } = await arrange({ atomic: 'unsupported' })
  const again = { ...options, waybill: swapping, storage: storageIn(kept) }
  const onProgress = (event: PayProgress) => event.type === 'STEP_MINED' && aborter.abort()
  await expect(pay({ ...again, onProgress, signal: aborter.signal })).rejects.toThrow('abort')
  expect([wallet.prompts.length, kept.size]).toEqual([1, 1])
  expect(await pay(again)).toMatchObject({ outcome: 'FAILED', reason: 'INTERRUPTED' })
  expect([wallet.prompts.length, kept.size, await timesPaid()]).toEqual([1, 0, 0])
})

describe('a batch', () => {
  it.each([4200, -32601, 5750, 5760, -32603])(
    'that fails with %i before anything was sent is sent step by step',
    async (code) => {
      const { wallet, options, progress, timesPaid } = await arrange({
        atomic: 'supported',
        meddle: { wallet_sendCalls: () => failWith(code) },
      })
      const end = await pay(options)
      const prompts = ['wallet_sendCalls', 'eth_sendTransaction', 'eth_sendTransaction']
      expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual(['MINED', prompts, 1])
      expect(progress).toContainEqual({ type: 'FALLING_BACK', code })
    },
  )

  it('that was sent although the wallet says -32603 is not paid again', async () => {
    const { wallet, options, timesPaid } = await arrange({
      atomic: 'supported',
      meddle: { wallet_sendCalls: async (_params, pass) => (await pass()) && failWith(-32603) },
    })
    const end = await pay(options)
    expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual(['UNKNOWN', ['wallet_sendCalls'], 1])
  })

  it('that the wallet sends late, after it has said -32603, is the only payment', async () => {
    let late: (() => Promise<unknown>) | undefined
    const { wallet, options, timesPaid } = await arrange({
      atomic: 'supported',
      meddle: {
        wallet_sendCalls(_params, pass) {
          late = async () => pass()
          return failWith(-32603)
        },
        async eth_sendTransaction(_params, pass) {
          const hash = await pass()
          await late?.()
          return hash
        },
      },
    })
    const end = await pay(options)
    expect(await timesPaid()).toBe(1)
    expect([end.outcome, wallet.prompts.filter((method) => method === 'eth_sendTransaction').length]).toEqual([
      'UNKNOWN',
      1,
    ])
  })

  it('that a private relay holds, unseen by the node, can no longer be mined after it was sent step by step', async () => {
    const { chain } = running
    const held: object[] = []
    const { options, payer, timesPaid } = await arrange({
      atomic: 'supported',
      meddle: {
        async wallet_sendCalls([batch]) {
          const next = Number(await chain.client.rpc.call('eth_getTransactionCount', [payer, 'pending']))
          const { calls } = batch as { calls: readonly object[] }
          held.push(...calls.map((call, nth) => ({ ...call, from: payer, gas: '0x7a120', nonce: next + nth })))
          failWith(-32603)
        },
      },
    })
    expect((await pay(options)).outcome).toBe('MINED')
    expect(held.length).toBe(2)
    for (const late of held) {
      await expect(chain.client.rpc.call('eth_sendTransaction', [late])).rejects.toThrow(/nonce too low/i)
    }
    await chain.mine()
    expect(await timesPaid()).toBe(1)
  })

  it('that begins with a swap is not tried otherwise after -32603', async () => {
    const { wallet, options } = await arrange({
      atomic: 'supported',
      meddle: { wallet_sendCalls: () => failWith(-32603) },
    })
    const end = await pay({ ...options, waybill: swapping })
    expect([end.outcome, wallet.prompts]).toEqual(['UNKNOWN', ['wallet_sendCalls']])
  })

  it('of an account with code is not tried otherwise after -32603, since its nonce tells nothing', async () => {
    const { wallet, options } = await arrange({
      atomic: 'supported',
      meddle: { wallet_sendCalls: () => failWith(-32603), eth_getCode: () => '0xef0100' },
    })
    expect([(await pay(options)).outcome, wallet.prompts]).toEqual(['UNKNOWN', ['wallet_sendCalls']])
  })

  it.each([
    [5700, 'FAILED'],
    [5710, 'FAILED'],
    [5740, 'FAILED'],
    [4100, 'FAILED'],
    [5720, 'UNKNOWN'],
    [-32000, 'UNKNOWN'],
  ])('that fails with %i ends as %s, without another prompt', async (code, outcome) => {
    const { wallet, options } = await arrange({ atomic: 'ready', meddle: { wallet_sendCalls: () => failWith(code) } })
    expect(await pay(options)).toMatchObject({ outcome, code })
    expect(wallet.prompts).toEqual(['wallet_sendCalls'])
  })

  it.each([
    [400, 'FAILED'],
    [500, 'REVERTED'],
    [600, 'UNKNOWN'],
  ])('whose status is %i ends as %s', async (status, outcome) => {
    const { options } = await arrange({ atomic: 'ready', meddle: { wallet_getCallsStatus: () => ({ status }) } })
    expect(await pay(options)).toMatchObject({ outcome })
  })

  it('of a wallet that says its status in words is waited for', async () => {
    const words: unknown[] = [{ status: 'PENDING' }, { status: 'PENDING', receipts: null }]
    const { wallet, options, timesPaid } = await arrange({
      atomic: 'supported',
      meddle: {
        wallet_sendCalls: async (_params, pass) => ((await pass()) as { id: string }).id,
        wallet_getCallsStatus: async (_params, pass) =>
          words.shift() ?? { status: 'CONFIRMED', receipts: ((await pass()) as { receipts: unknown }).receipts },
      },
    })
    const end = await pay(options)
    expect(end).toMatchObject({ outcome: 'MINED', transactionHashes: [expect.any(String), expect.any(String)] })
    expect([wallet.prompts, words, await timesPaid()]).toEqual([['wallet_sendCalls'], [], 1])
  })

  const [good, bad] = [
    { status: '0x1', transactionHash: '0x01' },
    { status: '0x0', transactionHash: '0x02' },
  ]
  it.each([
    ['CONFIRMED', [bad], { outcome: 'REVERTED', transactionHash: '0x02' }],
    ['CONFIRMED', [good, bad], { outcome: 'UNKNOWN', reason: 'BATCH_IN_PART' }],
    [200, [bad, good], { outcome: 'UNKNOWN', reason: 'BATCH_IN_PART' }],
    ['200', [good], { outcome: 'MINED', transactionHashes: ['0x01'] }],
    [200, [{ transactionHash: '0x01' }], { outcome: 'MINED', transactionHashes: ['0x01'] }],
    [
      200,
      [{ status: null, transactionHash: '0x01' }, { status: '' }],
      { outcome: 'MINED', transactionHashes: ['0x01'] },
    ],
    [200, [{ status: 'success', transactionHash: '0x01' }], { outcome: 'MINED', transactionHashes: ['0x01'] }],
    [200, [{ status: 1, transactionHash: '0x01' }], { outcome: 'MINED', transactionHashes: ['0x01'] }],
    [200, undefined, { outcome: 'MINED', transactionHashes: [] }],
    ['success', [{ transactionHash: '0x01' }], { outcome: 'MINED', transactionHashes: ['0x01'] }],
    ['0xc8', [good], { outcome: 'MINED' }],
    [200, [{ status: 'reverted', transactionHash: '0x02' }], { outcome: 'REVERTED', transactionHash: '0x02' }],
    [200, [{ status: 0, transactionHash: '0x02' }], { outcome: 'REVERTED', transactionHash: '0x02' }],
    [200, [{ transactionHash: '0x01' }, bad], { outcome: 'UNKNOWN', reason: 'BATCH_IN_PART' }],
    ['FAILED', [], { outcome: 'UNKNOWN', reason: 'BATCH_LOST', message: expect.stringContaining('"FAILED"') }],
    [undefined, [], { outcome: 'UNKNOWN', reason: 'BATCH_LOST' }],
    [7, [], { outcome: 'UNKNOWN', reason: 'BATCH_LOST' }],
  ])('whose status is %j with receipts %j ends as %j', async (status, receipts, end) => {
    const meddle = { wallet_getCallsStatus: () => ({ status, receipts }) }
    const { wallet, options } = await arrange({ atomic: 'ready', meddle })
    expect(await pay({ ...options, pollMs: 1 })).toMatchObject(end)
    expect(wallet.prompts).toEqual(['wallet_sendCalls'])
  })

  it('whose id the wallet has never known is made again only when the payer gives it up', async () => {
    let batches = 0
    const { wallet, options, timesPaid } = await arrange({
      atomic: 'ready',
      meddle: { wallet_sendCalls: () => (++batches === 1 ? { id: 'batch-0' } : undefined) },
    })
    const kept = { ...options, storage: storageIn(new Map()) }
    for (let times = 0; times < 2; times++) expect((await pay(kept)).outcome).toBe('UNKNOWN')
    expect([wallet.prompts.length, await timesPaid()]).toEqual([1, 0])
    expect((await pay({ ...kept, askAgain: true })).outcome).toBe('MINED')
    expect([wallet.prompts.length, await timesPaid()]).toEqual([2, 1])
  })

  it('whose id the wallet no longer knows may have been sent', async () => {
    const meddle = { wallet_getCallsStatus: () => failWith(5730) }
    const { wallet, options } = await arrange({ atomic: 'ready', meddle })
    expect(await pay(options)).toMatchObject({ outcome: 'UNKNOWN', reason: 'BATCH_LOST', batchId: 'batch-1' })
    expect(wallet.prompts).toEqual(['wallet_sendCalls'])
  })

  it('of one call is sent as a transaction', async () => {
    const { wallet, payer, options, timesPaid } = await arrange({ atomic: 'supported' })
    const { chain } = running
    await chain.approve(payer, chain.tokens.USDC, chain.contracts.erc20FeeProxy, AMOUNT)
    const end = await pay(options)
    expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual(['MINED', ['eth_sendTransaction'], 1])
  })
})

describe('the chain of the wallet', () => {
  const addChain = {
    chainId: '0x7a69',
    chainName: 'Test',
    rpcUrls: ['http://127.0.0.1:1'],
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  }
  const [change, add] = ['wallet_switchEthereumChain', 'wallet_addEthereumChain']
  const sends = ['eth_sendTransaction', 'eth_sendTransaction']

  it('is changed', async () => {
    const { wallet, options, timesPaid } = await arrange({ chainId: '0x1' })
    const end = await pay(options)
    expect([end.outcome, wallet.prompts, await timesPaid()]).toEqual(['MINED', [change, ...sends], 1])
  })

  it.each([
    ['4902', {}],
    [
      '4902 within -32603',
      {
        wallet_switchEthereumChain: (_: unknown, pass: () => Promise<unknown>) =>
          pass().catch(() => failWith(-32603, { data: { originalError: { code: 4902 } } })),
      },
    ],
  ])('is added after %s where its parameters were given', async (_, meddle) => {
    const { wallet, options } = await arrange({ chainId: '0x1', knownChains: ['0x1'], meddle })
    expect((await pay({ ...options, addChain })).outcome).toBe('MINED')
    expect(wallet.prompts).toEqual([change, add, change, ...sends])
  })

  it('ends the payment where it stays unknown', async () => {
    const { wallet, options } = await arrange({ chainId: '0x1', knownChains: ['0x1'] })
    expect(await pay(options)).toMatchObject({ outcome: 'FAILED', reason: 'WRONG_CHAIN', code: 4902 })
    expect(wallet.prompts).toEqual([change])
  })

  it('ends the payment where the payer refuses to change it', async () => {
    const meddle = { wallet_switchEthereumChain: () => failWith(4001) }
    const { wallet, options } = await arrange({ chainId: '0x1', meddle })
    expect([(await pay(options)).outcome, wallet.prompts]).toEqual(['REFUSED', [change]])
  })

  it('ends the payment where the wallet only says that it has changed it', async () => {
    const { options } = await arrange({ chainId: '0x1', meddle: { eth_chainId: () => '0x1' } })
    expect(await pay(options)).toMatchObject({ outcome: 'FAILED', reason: 'WRONG_CHAIN' })
  })
})

describe('a payment', () => {
  it('from an account that the wallet has not opened is not asked for', async () => {
    const { wallet, options } = await arrange({ meddle: { eth_accounts: () => [] } })
    expect(await pay(options)).toMatchObject({ outcome: 'FAILED', reason: 'WRONG_ACCOUNT' })
    expect(wallet.prompts).toEqual([])
  })

  it('that is reverted is reported as such', async () => {
    let sent = 0
    const { options, timesPaid } = await arrange({
      meddle: {
        eth_sendTransaction: ([transaction]) =>
          // Without the tokens' approval, which the first transaction would have given.
          ++sent === 1
            ? running.chain.client.rpc.call('eth_sendTransaction', [cancelOf(transaction)]).then(mined)
            : undefined,
      },
    })
    expect([(await pay(options)).outcome, await timesPaid()]).toEqual(['REVERTED', 0])
  })

  it('is quoted anew, at no higher price, when the quote expires before it is sent', async () => {
    const asked: unknown[] = []
    const short: Pick<Waybill, 'getPaymentCalldata'> = {
      async getPaymentCalldata(request, more) {
        asked.push((request as { maxSourceAmount?: string }).maxSourceAmount)
        // Without the date of the answer the clock of this machine counts.
        const quote = await waybill.getPaymentCalldata(request, { signal: more?.signal })
        return asked.length === 1 ? { ...quote, expiresAt: timestampFromMs(Date.now() + 40) } : quote
      },
    }
    const { wallet, options, progress, timesPaid } = await arrange({
      meddle: { eth_sendTransaction: () => new Promise((resolve) => setTimeout(resolve, 60)) },
    })
    const end = await pay({ ...options, waybill: short })
    expect([end.outcome, wallet.prompts.length, await timesPaid(), asked]).toEqual(['MINED', 2, 1, [undefined, '5']])
    expect(progress.map(({ type }) => type)).toContain('QUOTE_EXPIRED')
  })

  it('that would cost more than allowed is not asked for', async () => {
    const { wallet, options } = await arrange()
    const end = await pay({ ...options, maxSourceAmount: '4.9' })
    expect(end).toMatchObject({ outcome: 'QUOTE_CHANGED', newQuote: { sourceAmount: '5' } })
    expect(wallet.prompts).toEqual([])
  })

  it('that would cost more than the payer was shown is not asked for', async () => {
    const { wallet, options } = await arrange()
    const end = await pay({ ...options, route: { id: 'REQUEST_NETWORK_PAYMENT', sourceAmount: '4.95' } })
    expect(end).toMatchObject({ outcome: 'QUOTE_CHANGED', newQuote: { sourceAmount: '5' } })
    expect(wallet.prompts).toEqual([])
    if (end.outcome !== 'QUOTE_CHANGED') return
    expect((await pay({ ...options, route: end.newQuote })).outcome).toBe('MINED')
  })

  it('may cost as much more than the payer was shown as slippage allows', async () => {
    const { options } = await arrange()
    const route = { id: 'REQUEST_NETWORK_PAYMENT', sourceAmount: '4.98' }
    expect(await pay({ ...options, route, slippage: '0.1' })).toMatchObject({ outcome: 'QUOTE_CHANGED' })
    expect(await pay({ ...options, route })).toMatchObject({ outcome: 'MINED' })
  })

  it('is under way only once', async () => {
    const { options, timesPaid } = await arrange()
    const [first, second] = await Promise.allSettled([pay(options), pay(options)])
    expect(first).toMatchObject({ value: { outcome: 'MINED' } })
    expect(second).toMatchObject({ reason: { message: expect.stringContaining('already under way') } })
    expect(await timesPaid()).toBe(1)
  })

  it('that is sent when the signal comes is reported with its hash', async () => {
    const aborter = new AbortController()
    const { options } = await arrange({
      meddle: { eth_getTransactionReceipt: () => aborter.signal.reason && failWith(-32000) },
    })
    const onProgress = (event: PayProgress) => event.type === 'SENT' && event.step === 2 && aborter.abort()
    const end = await pay({ ...options, signal: aborter.signal, onProgress })
    expect(end).toMatchObject({ outcome: 'SENT', transactionHashes: [expect.any(String), expect.any(String)] })
  })

  it('that the payer cancels in the wallet is not paid again', async () => {
    const { wallet, options, timesPaid } = await arrange({ meddle: replace(2, cancelOf) })
    expect(await pay(options)).toMatchObject({ outcome: 'UNKNOWN', reason: 'REPLACED' })
    expect([wallet.prompts.length, await timesPaid()]).toEqual([2, 0])
  })

  it('whose approval the payer cancels in the wallet is refused', async () => {
    const { wallet, options, timesPaid } = await arrange({ meddle: replace(1, cancelOf) })
    const end = await pay(options)
    expect([end, wallet.prompts.length, await timesPaid()]).toEqual([{ outcome: 'REFUSED' }, 1, 0])
  })

  it('whose approval the payer speeds up in the wallet goes on', async () => {
    const { wallet, options, timesPaid } = await arrange({ meddle: replace(1, (transaction) => transaction as object) })
    const end = await pay(options)
    expect([end.outcome, wallet.prompts.length, await timesPaid()]).toEqual(['MINED', 2, 1])
  })

  it.each([
    [1, { outcome: 'FAILED', reason: 'WALLET_ERROR' }],
    [2, { outcome: 'UNKNOWN', reason: 'DROPPED', transactionHash: expect.any(String) }],
  ])('whose transaction %i the pool drops ends', async (nth, expected) => {
    const { rpc } = running.chain.client
    let sent = 0
    const { wallet, options, timesPaid } = await arrange({
      meddle: {
        async eth_sendTransaction([transaction]) {
          if (++sent !== nth) return undefined
          const hash = await rpc.call('eth_sendTransaction', [transaction])
          return rpc.call('anvil_dropTransaction', [hash]).then(() => hash)
        },
      },
    })
    expect(await pay({ ...options, dropAfterMs: 30 })).toMatchObject(expected)
    expect([wallet.prompts.length, await timesPaid()]).toEqual([nth, 0])
  })

  it('that the pool has dropped is made again only when the payer gives it up', async () => {
    const { rpc } = running.chain.client
    let sent = 0
    const { wallet, options, timesPaid } = await arrange({
      meddle: {
        async eth_sendTransaction([transaction]) {
          if (++sent !== 2) return undefined
          const hash = await rpc.call('eth_sendTransaction', [transaction])
          return rpc.call('anvil_dropTransaction', [hash]).then(() => hash)
        },
      },
    })
    const kept = { ...options, storage: storageIn(new Map()) }
    // Nobody waits a second time for what the node does not know.
    for (const dropAfterMs of [30, 60_000]) expect((await pay({ ...kept, dropAfterMs })).outcome).toBe('UNKNOWN')
    expect([wallet.prompts.length, await timesPaid()]).toEqual([2, 0])
    expect((await pay({ ...kept, dropAfterMs: 60_000, askAgain: true })).outcome).toBe('MINED')
    expect([wallet.prompts.length, await timesPaid()]).toEqual([3, 1])
  })

  it('is waited for as long as the node fails', async () => {
    let failures = 20
    const fail = () => (failures-- > 0 ? failWith(-32000) : undefined)
    const { options, timesPaid } = await arrange({
      meddle: { eth_getTransactionReceipt: fail, eth_getTransactionByHash: fail },
    })
    expect([(await pay({ ...options, dropAfterMs: 10 })).outcome, await timesPaid()]).toEqual(['MINED', 1])
  })

  it('of an unknown request is refused by the service', async () => {
    const { options } = await arrange()
    const unknown = pay({ ...options, paymentReference: '0x00000000000000ff' })
    await expect(unknown).rejects.toMatchObject({ name: 'WaybillCallError', reason: 'REQUEST_NOT_FOUND' })
  })
})

/** Lets the payer put another transaction in the place of the nth, as soon as the node has shown that one. */
function replace(nth: number, by: (transaction: unknown) => object): Readonly<Record<string, Meddle>> {
  const { rpc } = running.chain.client
  let sent = 0
  let waiting: { readonly hash: unknown; readonly transaction: unknown } | undefined
  return {
    async eth_sendTransaction([transaction]) {
      if (++sent !== nth) return undefined
      const hash = await rpc.call('eth_sendTransaction', [transaction])
      waiting = { hash, transaction }
      return hash
    },
    async eth_getTransactionByHash([hash], pass) {
      if (waiting === undefined || hash !== waiting.hash) return undefined
      const { transaction } = waiting
      const found = (await pass()) as { readonly nonce: string }
      const other = { ...by(transaction), nonce: found.nonce, gasPrice: '0x174876e800' }
      waiting = undefined
      await mined(await rpc.call('eth_sendTransaction', [other]))
      return found
    },
  }
}

/** A transaction that does nothing, in place of another. */
function cancelOf(transaction: unknown) {
  const { from } = transaction as { from: string }
  return { from, to: from, value: '0x0' }
}

async function mined<T>(hash: T): Promise<T> {
  await running.chain.mine()
  return hash
}
