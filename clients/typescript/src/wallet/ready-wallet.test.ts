import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { canBatch } from './batch.ts'
import { connectWallet } from './connect.ts'
import { askOf } from './provider.ts'
import { readyWallet } from './ready-wallet.ts'

// Wallets that are silent or late, by a clock of the test.

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const WALLET = '0x00000000000000000000000000000000000000a1'
const CHAIN = '0x2105'

type Answers = Readonly<Record<string, () => unknown>>

const never = () => new Promise(() => {})

/** A wallet on another chain, which goes where it is asked to. */
function createWallet(answers: Answers = {}) {
  let chainId = '0x1'
  const asked: string[] = []
  const goOver = () => {
    chainId = CHAIN
    return null
  }
  const own: Answers = {
    eth_accounts: () => [WALLET],
    eth_requestAccounts: () => [WALLET],
    eth_chainId: () => chainId,
    wallet_switchEthereumChain: goOver,
  }
  const provider = {
    request: async ({ method }: { method: string }) => {
      asked.push(method)
      return (answers[method] ?? own[method])?.()
    },
  }
  return { provider, asked, goOver }
}

const PATIENCE = { signal: undefined, answerWithinMs: 60_000 }

/** @returns how it ends, and after how many milliseconds */
async function ready({ provider }: Pick<ReturnType<typeof createWallet>, 'provider'>, signal?: AbortSignal) {
  const patience = { ...PATIENCE, signal }
  const terms = { ask: askOf(provider, patience), wallet: WALLET, chainId: CHAIN, pollMs: 1_000, dropAfterMs: 1_000 }
  const beganAt = Date.now()
  const end = readyWallet({ ...terms, ...patience, addChain: undefined, onProgress: () => {} })
  const ended = end.then(
    (outcome) => ({ outcome, ms: Date.now() - beganAt }),
    (error: unknown) => ({ error, ms: Date.now() - beganAt }),
  )
  await vi.advanceTimersByTimeAsync(120_000)
  return ended
}

describe('a wallet that never answers', () => {
  it.each([
    ['eth_accounts', 'NO_ANSWER', 10_000],
    ['eth_chainId', 'NO_ANSWER', 10_000],
    ['wallet_switchEthereumChain', 'WRONG_CHAIN', 60_000],
  ])('%s ends as FAILED %s after %i ms, with words', async (method, reason, ms) => {
    const end = await ready(createWallet({ [method]: never }))
    const message = `the wallet has not answered ${method} within ${ms / 1_000} seconds`
    expect(end).toEqual({ outcome: { outcome: 'FAILED', reason, code: undefined, message }, ms })
  })

  it('wallet_switchEthereumChain is no trouble where the chain has changed', async () => {
    const wallet = createWallet({ wallet_switchEthereumChain: () => wallet.goOver() ?? never() })
    expect(await ready(wallet)).toEqual({ outcome: undefined, ms: 1_000 })
  })

  it('eth_requestAccounts ends as FAILED, or when the payer chooses another wallet', async () => {
    const { provider } = createWallet({ eth_requestAccounts: never })
    const silent = connectWallet({ provider, answerWithinMs: 30_000 })
    await vi.advanceTimersByTimeAsync(30_000)
    expect(await silent).toMatchObject({ outcome: 'FAILED', reason: 'NO_ANSWER' })
    const left = new AbortController()
    const other = connectWallet({ provider, signal: left.signal })
    left.abort(new Error('another wallet'))
    await expect(other).rejects.toThrow('another wallet')
  })

  it('wallet_getCapabilities makes no batches after one second', async () => {
    const { provider } = createWallet({ wallet_getCapabilities: never })
    const able = canBatch(askOf(provider, PATIENCE), WALLET, CHAIN)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await able).toBe(false)
  })

  it('is left when the signal is aborted', async () => {
    const left = new AbortController()
    setTimeout(() => left.abort(new Error('left')), 500)
    expect(await ready(createWallet({ eth_chainId: never }), left.signal)).toMatchObject({ error: new Error('left') })
  })
})

describe('a chain that lags behind its change', () => {
  /** Tells the chain of before for a while, or fails. */
  const lagging = (lagMs: number, meanwhile: () => unknown) => {
    let changedAt = Number.POSITIVE_INFINITY
    return createWallet({
      wallet_switchEthereumChain: () => {
        changedAt = Date.now()
        return null
      },
      eth_chainId: () =>
        changedAt === Number.POSITIVE_INFINITY ? '0x1' : Date.now() - changedAt >= lagMs ? CHAIN : meanwhile(),
    })
  }
  const fail = () => {
    throw new Error('network changed')
  }
  it.each([
    ['400 ms late', 400, () => '0x1', undefined],
    ['1,900 ms late', 1_900, () => '0x1', undefined],
    ['failing meanwhile', 400, fail, undefined],
    ['3,000 ms late', 3_000, () => '0x1', { outcome: 'FAILED', reason: 'WRONG_CHAIN' }],
    ['failing for ever', 1e9, fail, { outcome: 'FAILED', reason: 'WRONG_CHAIN', message: 'network changed' }],
  ])('%s', async (_, lagMs, meanwhile, outcome) => {
    const wallet = lagging(lagMs, meanwhile)
    const end = await ready(wallet)
    if (outcome === undefined) expect(end).toMatchObject({ outcome: undefined })
    else expect(end).toMatchObject({ outcome })
    expect(wallet.asked.filter((method) => method === 'wallet_switchEthereumChain').length).toBe(1)
  })
})

describe('an answer that says nothing', () => {
  it.each([
    ['eth_accounts', undefined, 'the wallet answered eth_accounts with undefined instead of a list of addresses'],
    ['eth_accounts', {}, 'the wallet answered eth_accounts with {} instead of a list of addresses'],
    ['eth_chainId', undefined, 'the wallet answered eth_chainId with undefined instead of the number of a chain'],
    ['eth_chainId', null, 'the wallet answered eth_chainId with null instead of the number of a chain'],
    ['eth_chainId', 'base', 'the wallet answered eth_chainId with base instead of the number of a chain'],
  ])('%s: %o', async (method, answer, message) => {
    expect(await ready(createWallet({ [method]: () => answer }))).toMatchObject({
      outcome: { outcome: 'FAILED', message },
    })
  })

  it.each([[undefined], [null], ['0x1']])('eth_requestAccounts: %o', async (answer) => {
    const { provider } = createWallet({ eth_requestAccounts: () => answer })
    expect(await connectWallet({ provider })).toMatchObject({
      outcome: 'FAILED',
      message: expect.stringContaining('the wallet answered eth_requestAccounts with'),
    })
  })

  it.each([[[]], [[null]]])('eth_requestAccounts: %o opens no account, as a refusal does', async (answer) => {
    const { provider } = createWallet({ eth_requestAccounts: () => answer })
    expect(await connectWallet({ provider })).toEqual({ outcome: 'REFUSED' })
  })

  it('eth_accounts: null among addresses', async () => {
    expect(await ready(createWallet({ eth_accounts: () => [null, WALLET] }))).toMatchObject({ outcome: undefined })
  })
})

it.each([['0x2105'], [8453], ['8453']])('takes the chain %o as it is written', async (chainId) => {
  const { provider, asked } = createWallet({ eth_chainId: () => chainId })
  expect(await ready({ provider })).toMatchObject({ outcome: undefined })
  expect(asked).toEqual(['eth_accounts', 'eth_chainId'])
})
