import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Entry } from '../../demo/bridge/book.ts'
import { encodeDelivery, encodeGiveBack } from '../../demo/bridge/deposit.ts'
import { encodeErc20Payment } from '../../demo/network/demo-contracts.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PreparedPayment } from '../../src/domain/route.ts'
import { takeRoute } from '../support/chains/take-route.ts'
import { type EvmAddress, freshAddress } from '../support/routing.ts'
import { startTestBridge, type TestBridge } from './bridge.ts'

const ROUTE = 'ETHEREUM_BSC_USDC_USDC'
const HOUR_SEC = 3_600

describe("the demo's bridge", () => {
  let bridge: TestBridge
  let payer: EvmAddress
  beforeAll(async () => {
    bridge = await startTestBridge({ chainIds: [31_443, 31_444] })
  })
  afterAll(() => bridge?.stop())

  async function prepare(route = ROUTE) {
    payer = await bridge.newPayer()
    const { payee, platform: _, ...question } = bridge.ask(payer, { into: 'USDC', amount: '100' })
    await bridge.setTime()
    const prepared = await bridge.routing.prepare({ ...question, route })
    return { ...prepared, payee, question }
  }
  const spentOf = ({ route }: PreparedPayment) => parseAmount(route.sourceAmount, route.token === 'ETH' ? 18 : 6) ?? 0n
  const held = (of: Hex, token = 'USDC') =>
    token === 'ETH' ? bridge.near.nativeBalance(of) : bridge.near.balanceOf(bridge.near.tokens.USDC, of)
  const received = (by: Hex) => bridge.far.balanceOf(bridge.far.tokens.USDC, by)
  const entryOf = (entries: readonly Entry[], taken: { transactionHash: string }[]) =>
    entries.find(({ deposited }) => deposited.txHash === taken.at(-1)?.transactionHash) as Entry

  async function post(body: unknown) {
    const response = await fetch(`${bridge.url}/v1/quote/contractCalls`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as { message: string; code: number } }
  }

  /** A quote request as the LI.FI provider sends it. */
  function questionOf(wallet: EvmAddress, payee: EvmAddress, amount: bigint) {
    const [near, far] = bridge.chains
    const { data } = encodeErc20Payment(far.feeProxy, bridge.far.tokens.USDC.address, {
      to: payee,
      amount,
      paymentReference: '0x00000000000000aa',
    })
    const call = {
      fromAmount: amount.toString(),
      fromTokenAddress: bridge.far.tokens.USDC.address,
      toContractAddress: far.feeProxy,
      toContractCallData: data,
      toContractGasLimit: '100000',
    }
    return {
      fromChain: near.chainId,
      fromToken: bridge.near.tokens.USDC.address,
      fromAddress: wallet,
      toChain: far.chainId,
      toToken: bridge.far.tokens.USDC.address,
      toAmount: amount.toString(),
      contractCalls: [call],
    }
  }

  it.each(['USDC', 'ETH'])('delivers a deposit in %s once, also after restarts', async (token) => {
    const prepared = await prepare(`ETHEREUM_BSC_${token}_USDC`)
    const taken = await takeRoute(bridge.near, payer, prepared)
    for (let block = 0; block < 3; block++) {
      bridge.restart()
      const { delivered, returned } = entryOf(await bridge.relay(), taken)
      expect([delivered?.isPaid, returned, await received(prepared.payee)]).toEqual([
        true,
        undefined,
        100n * 10n ** 18n,
      ])
    }
  })

  it('delivers again when a reorg removed the delivery', async () => {
    const prepared = await prepare()
    const taken = await takeRoute(bridge.near, payer, prepared)
    await bridge.relay()
    await bridge.far.reorg(1)
    expect(await received(prepared.payee)).toBe(0n)
    const entry = entryOf(await bridge.relay(), taken)
    expect([entry.delivered?.isPaid, await received(prepared.payee)]).toEqual([true, 100n * 10n ** 18n])
  })

  it('refuses a deposit by a quote that has expired, is used, or belongs to another payer', async () => {
    const { near } = bridge
    const prepared = await prepare()
    const [approve, pay] = prepared.transactions as [
      PreparedPayment['transactions'][0],
      PreparedPayment['transactions'][0],
    ]
    await takeRoute(near, payer, { transactions: [approve] })
    const before = await held(payer)
    const { data: deposit } = pay
    const send = (from: EvmAddress, data: string) =>
      takeRoute(near, from, { transactions: [{ ...pay, from, data: data as `0x${string}` }] })
    const other = await bridge.newPayer()
    await expect(send(other, deposit)).rejects.toThrow('was reverted')
    const { timestampSec } = await near.client.head()
    await near.mine({ timestampSec: timestampSec + 61 })
    await expect(send(payer, deposit)).rejects.toThrow('was reverted')
    expect(await held(payer)).toBe(before)

    const again = await prepare()
    await takeRoute(near, payer, again)
    await expect(takeRoute(near, payer, { transactions: again.transactions.slice(-1) })).rejects.toThrow('was reverted')
    await bridge.relay()
  })

  it('answers QUOTE_CHANGED when the gas on the destination chain has become dearer', async () => {
    const { far, routing } = bridge
    const prepared = await prepare()
    await far.setFeed(far.native.feed, { answer: 900n * 10n ** 8n })
    const maxSourceAmount = prepared.maxSourceAmount
    const changed = routing.prepare({ ...prepared.question, maxSourceAmount, route: ROUTE })
    await expect(changed).rejects.toMatchObject({ reason: 'QUOTE_CHANGED' })
    await far.setFeed(far.native.feed, { answer: 600n * 10n ** 8n })
    const { route } = await routing.prepare({ ...prepared.question, maxSourceAmount, route: ROUTE })
    expect(parseAmount(route.sourceAmount, 6)).toBeLessThanOrEqual(spentOf(prepared))
  })

  it('delivers the tokens to the wallet when the payment contract refuses the call', async () => {
    const { near } = bridge
    const wallet = await bridge.newPayer()
    const payee = freshAddress('payee of a call that fails')
    const question = questionOf(wallet, payee, 10n ** 18n)
    // The call takes more from the proxy than is delivered.
    const [call] = question.contractCalls
    const more = questionOf(wallet, payee, 2n * 10n ** 18n).contractCalls[0]?.toContractCallData
    await bridge.setTime()
    const quoted = await post({ ...question, contractCalls: [{ ...call, toContractCallData: more }] })
    const { transactionRequest: sent, estimate } = quoted.body as unknown as {
      transactionRequest: { to: EvmAddress; data: EvmAddress }
      estimate: { fromAmount: string; approvalAddress: EvmAddress }
    }
    await near.approve(wallet, near.tokens.USDC, estimate.approvalAddress, BigInt(estimate.fromAmount))
    const { transactionHash } = await near.send(wallet, { to: sent.to, data: sent.data })
    const entry = entryOf(await bridge.relay(), [{ transactionHash }])
    expect([entry.delivered?.isPaid, await received(payee), await received(wallet)]).toEqual([false, 0n, 10n ** 18n])
    const status = await fetch(`${bridge.url}/v1/status?txHash=${transactionHash}`)
    expect(await status.json()).toMatchObject({ status: 'DONE', substatus: 'PARTIAL' })
  })

  it('refunds a deposit that was not delivered in time, and not earlier', async () => {
    const { near, far, chains } = bridge
    const [{ escrow, relayer }, { executor }] = chains
    const cases = []
    for (const token of ['USDC', 'ETH']) {
      const prepared = await prepare(`ETHEREUM_BSC_${token}_USDC`)
      const taken = await takeRoute(near, payer, prepared)
      cases.push({ token, payer, taken, prepared, left: await held(payer, token) })
    }
    bridge.restart()
    // The relayer does not run for an hour.
    const { timestampSec } = await near.client.head()
    await far.mine({ timestampSec: timestampSec + HOUR_SEC + 60 })
    const stranger = near.wallets[2]
    const late = await bridge.relay()
    for (const { taken } of cases) {
      const { delivered, returned, deposit, id } = entryOf(late, taken)
      expect([delivered, returned]).toEqual([undefined, undefined])
      await expect(near.send(relayer, encodeGiveBack(escrow, deposit))).rejects.toThrow('was reverted')
      await expect(far.send(relayer, encodeDelivery(executor, id, deposit))).rejects.toThrow('was reverted')
    }

    await near.mine({ timestampSec: timestampSec + 2 * HOUR_SEC })
    for (const { taken } of cases) {
      const givenBack = near.send(stranger, encodeGiveBack(escrow, entryOf(late, taken).deposit))
      await expect(givenBack).rejects.toThrow('was reverted')
    }
    const entries = await bridge.relay()
    for (const { token, payer: wallet, taken, prepared, left } of cases) {
      const { returned, deposit } = entryOf(entries, taken)
      const back = left + spentOf(prepared)
      expect([returned !== undefined, await held(wallet, token), await received(prepared.payee)]).toEqual([
        true,
        back,
        0n,
      ])
      await expect(near.send(relayer, encodeGiveBack(escrow, deposit))).rejects.toThrow('was reverted')
      const status = await fetch(`${bridge.url}/v1/status?txHash=${taken.at(-1)?.transactionHash}`)
      expect(await status.json()).toMatchObject({ status: 'DONE', substatus: 'REFUNDED' })
    }
  })

  it.each([
    ['an unknown chain', () => ({ fromChain: 1 }), 404, 1003],
    ['an unknown token', () => ({ fromToken: freshAddress('no token') }), 404, 1003],
    [
      'delivery of a native coin',
      () => ({ toToken: freshAddress('x').replace(/^0x.*/, `0x${'0'.repeat(40)}`) }),
      400,
      1011,
    ],
    ['more than the relayer holds', () => ({ toAmount: `1${'0'.repeat(37)}` }), 404, 1002],
    ['an amount that is not whole', () => ({ toAmount: '1.5' }), 400, 1011],
    ['no call', () => ({ contractCalls: [] }), 400, 1011],
    [
      'a call of a contract other than the proxy',
      () => ({ toContractAddress: bridge.far.tokens.USDC.address }),
      400,
      1011,
    ],
  ])('refuses %s', async (_, change, status, code) => {
    await bridge.setTime()
    const question = questionOf(freshAddress('asks'), freshAddress('is paid'), 10n ** 18n)
    const changes: Record<string, unknown> = change()
    const [call] = question.contractCalls
    const { toContractAddress = call?.toContractAddress, ...rest } = changes
    const amount = (changes.toAmount as string | undefined) ?? question.toAmount
    const asked = { ...question, contractCalls: [{ ...call, toContractAddress, fromAmount: amount }], ...rest }
    const answer = await post(asked)
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })
  it.each(['', '[]', '{"fromChain":', '"x"'])('refuses the body %j', async (body) => {
    const response = await fetch(`${bridge.url}/v1/quote/contractCalls`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(response.ok).toBe(false)
    expect(((await response.json()) as { code: number }).code).toBeLessThan(1_012)
  })
})
