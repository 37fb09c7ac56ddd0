import type { Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  connectWallet,
  createWaybill,
  type PaymentCalldata,
  type PayOptions,
  pay,
  Route_StepKind,
  type Waybill,
} from '../../clients/typescript/src/public.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { createTestWallet, type Meddle } from './test-wallet.ts'

// Every error at every step of pay(): a provider throws it once at that step, and otherwise really sends.

let running: TestService
let waybill: Waybill
beforeAll(async () => {
  running = await startTestService()
  waybill = createWaybill({ baseUrl: running.url, apiKey: running.keys.shop })
})
afterAll(() => running?.stop())

type End = 'REFUSED' | 'FAILED' | 'UNKNOWN' | 'MINED'

interface ThrownError {
  readonly name: string
  readonly thrown: unknown
  /** How it ends where the wallet was asked for the payment. */
  readonly atPayment: End
  /** How it ends where that was a batch, if otherwise. */
  readonly atBatch?: End
}

const withCode = (code: number | string, message = `the wallet says ${code}`, more: object = {}) =>
  Object.assign(new Error(message), { code, ...more })

const errors: readonly ThrownError[] = [
  ...[4001, 5000, 5002, '4001', 'ACTION_REJECTED'].map((code) => ({
    name: `${typeof code === 'string' ? `"${code}"` : code}`,
    thrown: withCode(code),
    atPayment: 'REFUSED' as const,
  })),
  {
    name: '4001 inside',
    thrown: withCode(-32603, 'x', { data: { originalError: { code: 4001 } } }),
    atPayment: 'REFUSED',
  },
  { name: '4001 as the cause', thrown: new Error('x', { cause: { code: 4001 } }), atPayment: 'REFUSED' },
  { name: '“User rejected”', thrown: new Error('User rejected'), atPayment: 'REFUSED' },
  { name: '“cancelled”, a string', thrown: 'cancelled', atPayment: 'REFUSED' },
  { name: '“rejected by user” beside -32603', thrown: withCode(-32603, 'rejected by user'), atPayment: 'REFUSED' },
  ...[4100, 4900, 4901, -32602, -32002, -32003, 5700].map((code) => ({
    name: `${code}`,
    thrown: withCode(code),
    atPayment: 'FAILED' as const,
  })),
  // The wallet makes no batch, and is asked step by step.
  ...[4200, -32601, 5750, 5760].map((code) => ({
    name: `${code}`,
    thrown: withCode(code),
    atPayment: 'FAILED' as const,
    atBatch: 'MINED' as const,
  })),
  {
    name: '-32000 too poor',
    thrown: withCode(-32000, 'insufficient funds for gas * price + value'),
    atPayment: 'FAILED',
  },
  { name: '-32002 pending', thrown: withCode(-32002, 'Request already pending'), atPayment: 'FAILED' },
  { name: 'a locked device', thrown: new Error('Ledger device: Locked device (0x5515)'), atPayment: 'FAILED' },
  { name: '-32603 too poor', thrown: withCode(-32603, 'insufficient funds'), atPayment: 'FAILED' },
  { name: '-32603', thrown: withCode(-32603), atPayment: 'UNKNOWN', atBatch: 'MINED' },
  { name: '-32000 already known', thrown: withCode(-32000, 'already known'), atPayment: 'UNKNOWN' },
  { name: 'a lost connection', thrown: new Error('Failed to fetch'), atPayment: 'UNKNOWN' },
  { name: 'undefined', thrown: undefined, atPayment: 'UNKNOWN' },
  { name: 'an empty object', thrown: {}, atPayment: 'UNKNOWN' },
]

const addChain = {
  chainId: '0x7a69',
  chainName: 'Test',
  rpcUrls: ['http://127.0.0.1:1'],
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
}

/** Where the wallet throws: the method, which of its calls, and what brings `pay` there. */
const steps = {
  CONNECT: { method: 'eth_accounts', nth: 1, paid: false },
  SWITCH_CHAIN: { method: 'wallet_switchEthereumChain', nth: 1, paid: false, chainId: '0x1' },
  ADD_CHAIN: { method: 'wallet_addEthereumChain', nth: 1, paid: false, chainId: '0x1', knownChains: ['0x1'] },
  APPROVE: { method: 'eth_sendTransaction', nth: 1, paid: false },
  SWAP: { method: 'eth_sendTransaction', nth: 1, paid: false, isSwap: true },
  PAY: { method: 'eth_sendTransaction', nth: 2, paid: true },
  BATCH: { method: 'wallet_sendCalls', nth: 1, paid: true, atomic: 'supported' },
} as const satisfies Record<string, Place>

interface Place {
  readonly method: string
  readonly nth: number
  /** Whether it is the payment that is asked for. */
  readonly paid: boolean
  readonly chainId?: Hex
  readonly knownChains?: readonly Hex[]
  readonly isSwap?: true
  readonly atomic?: 'supported'
}

let scenes = 0

/** A new request of 5 USDC, and a wallet whose nth call of a method is `meddle`. */
async function arrange(place: Place, meddle: Meddle) {
  const { chain } = running
  const payer = chain.wallets[scenes % 10] as Hex
  const payee = freshAddress(`payee of an error ${++scenes}`)
  const { USDC } = chain.tokens
  const proxy = chain.contracts.erc20FeeProxy
  if ((await chain.balanceOf(USDC, payer)) < 5_000_000n) await chain.fund(USDC, payer, 1_000_000_000n)
  if ((await chain.allowance(USDC, payer, proxy)) > 0n) await chain.approve(payer, USDC, proxy, 0n)
  const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const { paymentReference } = await waybill.createPaymentRequest({ payee, amount: '5', ...currency })
  let calls = 0
  const wallet = createTestWallet(chain, payer, {
    atomic: place.atomic ?? 'unsupported',
    ...(place.chainId !== undefined && { chainId: place.chainId }),
    ...(place.knownChains !== undefined && { knownChains: place.knownChains }),
    meddle: { [place.method]: (params, pass) => (++calls === place.nth ? meddle(params, pass) : undefined) },
  })
  const kept = new Map<string, string>()
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  }
  const options: PayOptions = {
    waybill: place.isSwap === true ? swapping : waybill,
    paymentReference,
    provider: wallet,
    wallet: payer,
    addChain,
    storage,
    pollMs: 5,
  }
  const timesPaid = async () => Number(await chain.balanceOf(USDC, payee)) / 5_000_000
  return { wallet, options, kept, timesPaid, marks: () => [...kept.keys()].filter((name) => name.includes('asked')) }
}

/** The service, with quotes whose approvals count as swaps. */
const swapping: Pick<Waybill, 'getPaymentCalldata'> = {
  async getPaymentCalldata(request, more): Promise<PaymentCalldata> {
    const quote = await waybill.getPaymentCalldata(request, more)
    const [swap, ...others] = quote.steps
    return { ...quote, steps: [...(swap ? [{ ...swap, kind: Route_StepKind.SWAP }] : []), ...others] }
  },
}

function toss(thrown: unknown): never {
  throw thrown
}

describe.each(Object.entries(steps) as [keyof typeof steps, Place][])('at %s', (step, place) => {
  it.each(errors)('$name', async ({ thrown, atPayment, atBatch }) => {
    const { wallet, options, marks, timesPaid } = await arrange(place, () => toss(thrown))
    const end = await pay(options)
    const atThisStep = step === 'BATCH' ? (atBatch ?? atPayment) : atPayment
    const expected = !place.paid && atThisStep === 'UNKNOWN' ? 'FAILED' : atThisStep
    expect(end.outcome).toBe(expected)
    expect(await timesPaid()).toBe(expected === 'MINED' ? 1 : 0)
    // While nothing tells what became of the payment, nobody is asked for it again.
    expect(marks().length).toBe(expected === 'UNKNOWN' ? 1 : 0)
    const prompts = wallet.prompts.length
    if (expected === 'MINED') return
    const again = await pay(options)
    if (expected === 'UNKNOWN') {
      expect([again.outcome, wallet.prompts.length]).toEqual(['ALREADY_ASKED', prompts])
      expect((await pay({ ...options, askAgain: true })).outcome).toBe('MINED')
    } else expect(again.outcome).toBe('MINED')
    expect([await timesPaid(), marks().length]).toEqual([1, 0])
  })
})

it.each(errors)('a wallet that does not open an account: $name', async ({ thrown, atPayment }) => {
  const provider = { request: () => toss(thrown) as Promise<unknown> }
  const expected = atPayment === 'REFUSED' ? 'REFUSED' : 'FAILED'
  expect((await connectWallet({ provider })).outcome).toBe(expected)
})
