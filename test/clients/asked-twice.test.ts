import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  createWaybill,
  findAsked,
  type PayOptions,
  pay,
  resumePay,
  type Waybill,
} from '../../clients/typescript/src/public.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { createTestWallet, failWith, type Meddle, type TestWallet } from './test-wallet.ts'

// Two tabs, and a page before and after a reload: modules that are loaded twice, over one storage and the locks of one process.

let running: TestService
let waybill: Waybill
beforeAll(async () => {
  running = await startTestService()
  waybill = createWaybill({ baseUrl: running.url, apiKey: running.keys.shop })
})
afterAll(() => running?.stop())
afterEach(() => vi.unstubAllGlobals())

type Page = typeof import('../../clients/typescript/src/wallet/pay.ts')

/** `pay` as another page has it: the module once more, which knows nothing of the first. */
async function openPage(): Promise<Page> {
  const address = '../../clients/typescript/src/wallet/pay.ts?another-page'
  return (await import(address)) as Page
}

let scenes = 0

/** A request of 0.02 coins: one question alone. @param meddle - what the wallet does with it */
async function arrange(meddle: Readonly<Record<string, Meddle>> = {}, currency = 'ETH-ETHEREUM') {
  const { chain } = running
  const payer = chain.wallets[scenes % 10] as Hex
  const payee = freshAddress(`payee of tabs ${++scenes}`)
  const { USDC } = chain.tokens
  await chain.fund(USDC, payer, 1_000_000n)
  await chain.approve(payer, USDC, chain.contracts.erc20FeeProxy, 0n)
  const { paymentReference } = await waybill.createPaymentRequest({
    payee,
    amount: '0.02',
    invoiceCurrency: currency,
    paymentCurrency: currency,
  })
  const kept = new Map<string, string>()
  const wallet = createTestWallet(chain, payer, { meddle })
  const options: PayOptions = {
    waybill,
    paymentReference,
    provider: wallet,
    wallet: payer,
    storage: storageIn(kept),
    pollMs: 5,
  }
  const received = async () =>
    currency === 'ETH-ETHEREUM'
      ? BigInt(await chain.client.rpc.call<Hex>('eth_getBalance', [payee, 'latest']))
      : await chain.balanceOf(USDC, payee)
  return { wallet, options, kept, payer, received }
}

function storageIn(kept: Map<string, string>) {
  return {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  }
}

const ONCE = 20_000_000_000_000_000n

/** The question of a wallet, open until somebody answers it. */
function openQuestion() {
  const { promise: isOpen, resolve: opened } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<'CONFIRM' | 'REFUSE'>()
  let questions = 0
  const ask: Meddle = async (_, pass) => {
    // Later questions are confirmed at once.
    if (++questions > 1) return pass()
    opened()
    return (await answered) === 'CONFIRM' ? pass() : failWith(4001)
  }
  return { isOpen, answer, ask }
}

describe('while the wallet of one tab shows its question', () => {
  it('another tab asks for nothing, and says what is open', async () => {
    const question = openQuestion()
    const { wallet, options, payer, received } = await arrange({ eth_sendTransaction: question.ask })
    const first = pay(options)
    await question.isOpen
    const tab = await openPage()
    const askedAt = expect.any(Date)
    const asked = { wallet: payer, askedAt }
    expect(findAsked(options.paymentReference, options.storage)).toEqual({ ...asked, isOtherTab: false })
    expect(await tab.pay(options)).toEqual({ outcome: 'ALREADY_ASKED', ...asked, isOtherTab: true })
    // Another wallet would pay a second time as well.
    const other = createTestWallet(running.chain, running.chain.wallets[9] as string)
    const again = await tab.pay({ ...options, provider: other, wallet: running.chain.wallets[9] as string })
    expect([again.outcome, other.prompts, wallet.prompts.length]).toEqual(['ALREADY_ASKED', [], 1])
    question.answer('CONFIRM')
    expect([(await first).outcome, await received()]).toEqual(['MINED', ONCE])
    expect(findAsked(options.paymentReference, options.storage)).toBeUndefined()
  })

  it('another tab pays where the payer refuses the question of the first', async () => {
    const question = openQuestion()
    const { options, kept, received } = await arrange({ eth_sendTransaction: question.ask })
    const first = pay(options)
    await question.isOpen
    question.answer('REFUSE')
    expect([(await first).outcome, kept.size]).toEqual(['REFUSED', 0])
    expect([(await (await openPage()).pay(options)).outcome, await received()]).toEqual(['MINED', ONCE])
  })

  it('another tab pays where the payer says so, and the first asks for nothing more', async () => {
    const question = openQuestion()
    const { wallet, options, received } = await arrange({ eth_sendTransaction: question.ask }, 'USDC-ETHEREUM')
    // The first tab has asked for the approval.
    const first = pay(options)
    await question.isOpen
    const tab = await openPage()
    expect(await tab.pay(options)).toEqual({
      outcome: 'ALREADY_ASKED',
      wallet: undefined,
      askedAt: undefined,
      isOtherTab: true,
    })
    expect((await tab.pay({ ...options, askAgain: true })).outcome).toBe('MINED')
    question.answer('CONFIRM')
    expect(await first).toMatchObject({ outcome: 'ALREADY_ASKED', isOtherTab: true })
    expect([wallet.prompts.length, await received()]).toEqual([3, 20_000n])
  })
})

describe('after a reload while the question stands open', () => {
  /** A page that is gone, as far as the next one can tell: its lock is free, its wallet may still be answered. */
  async function leave(end: 'CONFIRM' | 'REFUSE') {
    const question = openQuestion()
    const scene = await arrange({ eth_sendTransaction: question.ask })
    const left = new AbortController()
    const first = pay({ ...scene.options, signal: left.signal })
    await question.isOpen
    left.abort()
    expect(await first).toMatchObject({ outcome: 'UNKNOWN', reason: 'NO_ANSWER' })
    return { ...scene, page: await openPage(), answer: () => question.answer(end) }
  }

  it('the wallet is asked again only when the payer says so', async () => {
    const { wallet, options, page, kept, received } = await leave('REFUSE')
    expect(await page.pay(options)).toMatchObject({ outcome: 'ALREADY_ASKED', isOtherTab: false })
    expect(wallet.prompts.length).toBe(1)
    expect((await page.pay({ ...options, askAgain: true })).outcome).toBe('MINED')
    expect([wallet.prompts.length, await received(), kept.size]).toEqual([2, ONCE, 1])
  })

  it('a late yes is waited for, and nothing is asked', async () => {
    const { wallet, options, page, answer, kept, received } = await leave('CONFIRM')
    answer()
    await vi.waitFor(() => expect([...kept.keys()].join()).toMatch(/^waybill:pay:/))
    expect([(await page.pay(options)).outcome, wallet.prompts.length]).toEqual(['MINED', 1])
    expect([await received(), kept.size]).toEqual([ONCE, 1])
  })

  it('a late no clears the mark', async () => {
    const { options, page, answer, kept, received } = await leave('REFUSE')
    answer()
    await vi.waitFor(() => expect(kept.size).toBe(0))
    expect([(await page.pay(options)).outcome, await received()]).toEqual(['MINED', ONCE])
  })

  it('a late no to a question that was taken over leaves the mark of the next', async () => {
    const second = openQuestion()
    const { options, page, answer, kept, payer } = await leave('REFUSE')
    const other = createTestWallet(running.chain, payer, { meddle: { eth_sendTransaction: second.ask } })
    const paying = page.pay({ ...options, provider: other, askAgain: true })
    await second.isOpen
    const mark = [...kept.values()]
    answer()
    await new Promise((resolve) => setImmediate(resolve))
    expect([...kept.values()]).toEqual(mark)
    second.answer('CONFIRM')
    expect((await paying).outcome).toBe('MINED')
  })
})

describe('a wallet that does not answer in time', () => {
  it('the payment: nothing tells, and it is not asked for again', async () => {
    const { wallet, options, kept } = await arrange({ eth_sendTransaction: openQuestion().ask })
    const end = await pay({ ...options, answerWithinMs: 30 })
    expect(end).toMatchObject({ outcome: 'UNKNOWN', reason: 'NO_ANSWER' })
    expect([(await pay(options)).outcome, wallet.prompts.length, kept.size]).toEqual(['ALREADY_ASKED', 1, 1])
  })

  it('the approval: nothing was paid, and the payer may go on', async () => {
    const { options, kept } = await arrange({ eth_sendTransaction: openQuestion().ask }, 'USDC-ETHEREUM')
    const end = await pay({ ...options, answerWithinMs: 30 })
    expect([end, kept.size]).toMatchObject([{ outcome: 'FAILED', reason: 'NO_ANSWER' }, 0])
    expect((await pay(options)).outcome).toBe('MINED')
  })

  it('a batch that failed without a word: who stops waiting then learns that it may be sent', async () => {
    const left = new AbortController()
    const fail = () => {
      left.abort()
      return failWith(-32603)
    }
    const { wallet, options, kept, payer } = await arrange({}, 'USDC-ETHEREUM')
    const batching = createTestWallet(running.chain, payer, { atomic: 'supported', meddle: { wallet_sendCalls: fail } })
    const end = await pay({ ...options, provider: batching, signal: left.signal })
    expect([end.outcome, kept.size, wallet.prompts]).toEqual(['UNKNOWN', 1, []])
  })

  it('a payment of before a reload: who stops waiting while the wallet is silent learns that it was sent', async () => {
    const { options, kept, payer } = await arrange()
    const transactionHash = `0x${'ab'.repeat(32)}`
    const name = `waybill:pay:${options.paymentReference.slice(2)}:${payer.toLowerCase()}`
    kept.set(name, JSON.stringify({ transactionHash, chainId: '0x7a69' }))
    const provider = { request: () => new Promise<unknown>(() => {}) }
    const end = await resumePay({ ...options, provider, signal: AbortSignal.timeout(30) })
    expect([end, kept.size]).toEqual([{ outcome: 'SENT', transactionHashes: [transactionHash] }, 1])
    expect(await resumePay({ ...options, paymentReference: '0x00000000000000ff' })).toBeUndefined()
  })

  it('the approval: who stops waiting has paid nothing', async () => {
    const question = openQuestion()
    const { options, kept } = await arrange({ eth_sendTransaction: question.ask }, 'USDC-ETHEREUM')
    const left = new AbortController()
    const paying = pay({ ...options, signal: left.signal })
    await question.isOpen
    left.abort(new Error('left'))
    await expect(paying).rejects.toThrow('left')
    expect(kept.size).toBe(0)
  })
})

describe('an answer that says nothing', () => {
  const answering = (wallet: TestWallet, method: string, nth: number, answer: unknown) => {
    let calls = 0
    return {
      request: async (call: { method: string; params?: unknown }) => {
        const own = await wallet.request(call)
        return call.method === method && ++calls === nth ? answer : own
      },
    }
  }

  it.each([[undefined], [null], [''], ['0x'], [{}], [true]])('%o to the payment: it may be sent', async (answer) => {
    const { wallet, options, kept } = await arrange()
    const end = await pay({ ...options, provider: answering(wallet, 'eth_sendTransaction', 1, answer) })
    expect(end).toMatchObject({
      outcome: 'UNKNOWN',
      message: expect.stringContaining('the wallet answered eth_sendTransaction with'),
    })
    expect(kept.size).toBe(1)
  })

  it.each([[undefined], [null], ['0x']])('%o to the approval: nothing was paid', async (answer) => {
    const { wallet, options } = await arrange({}, 'USDC-ETHEREUM')
    const end = await pay({ ...options, provider: answering(wallet, 'eth_sendTransaction', 1, answer) })
    expect(end).toMatchObject({
      outcome: 'FAILED',
      message: expect.stringContaining('the wallet answered eth_sendTransaction with'),
    })
    expect((await pay(options)).outcome).toBe('MINED')
  })

  it('a refusal as the answer, instead of an error, is a refusal', async () => {
    const { wallet, options } = await arrange({ eth_sendTransaction: () => ({ error: { code: 4001 } }) })
    expect([(await pay(options)).outcome, wallet.prompts.length]).toEqual(['REFUSED', 1])
  })
})

describe('what must not break paying', () => {
  const refuse = () => {
    throw new Error('denied')
  }

  it.each<[string, object]>([
    ['a storage that fails', { getItem: refuse, setItem: refuse, removeItem: refuse }],
    ['a storage that is full', { getItem: () => null, setItem: refuse, removeItem: () => undefined }],
    ['a storage that answers undefined', { getItem: () => undefined, setItem: () => undefined, removeItem: refuse }],
  ])('%s', async (_, storage) => {
    const { options, received } = await arrange()
    const end = await pay({ ...options, storage: storage as unknown as Storage })
    expect([end.outcome, await received()]).toEqual(['MINED', ONCE])
  })

  it.each([
    ['a browser that denies its storage', 'localStorage', undefined],
    ['a browser without locks', 'navigator', {}],
    ['no browser at all', 'navigator', undefined],
    ['a page that may have no locks', 'navigator', { locks: { request: () => Promise.reject(new Error('denied')) } }],
    ['locks that throw', 'navigator', { locks: { request: refuse } }],
  ])('%s', async (_, name, value) => {
    vi.stubGlobal(name, value)
    const { storage: _own, ...options } = (await arrange()).options
    expect((await pay(options)).outcome).toBe('MINED')
  })

  it.each([
    ['that is no JSON', '{'],
    ['that is null', 'null'],
    ['without a time', '{"id":"1","wallet":"0x1"}'],
    ['of yesterday', JSON.stringify({ id: '1', wallet: '0x1', askedAtMs: Date.now() - 86_400_001 })],
    ['of a clock that was wrong', JSON.stringify({ id: '1', wallet: '0x1', askedAtMs: Date.now() + 2 * 86_400_000 })],
  ])('a mark %s', async (_, mark) => {
    const { options, kept } = await arrange()
    kept.set(`waybill:asked:${options.paymentReference.slice(2)}`, mark)
    expect(findAsked(options.paymentReference, options.storage)).toBeUndefined()
    expect((await pay(options)).outcome).toBe('MINED')
  })
})
