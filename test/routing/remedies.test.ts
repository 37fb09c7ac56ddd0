import { toHex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { formatAmount, parseAmount } from '../../src/domain/decimal.ts'
import type { PreparedTransaction, RoutesAnswer } from '../../src/domain/route.ts'
import type { missingRouteReasons } from '../../src/errors/reasons/missing-routes.ts'
import { reasons } from '../../src/errors/reasons.ts'
import type { TestChain } from '../support/chains/chain.ts'
import { DIRECT, entryOf, idsOf, inCoins, inFiat, read, SWAPPED, SWAPPED_V3 } from './remedy-acts.ts'
import { ownScenes } from './remedy-scenes.ts'
import { crosschainScenes } from './remedy-scenes-crosschain.ts'
import { raiseStage, type Scene, stage } from './remedy-stage.ts'

beforeAll(raiseStage)
afterAll(() => stage?.stop())
afterEach(() => stage.reset())

/** For every reason of a missing route: scenes in which it is given and its remedy is followed. */
const scenes: Record<keyof typeof missingRouteReasons, readonly (() => Promise<Scene>)[]> = {
  ...ownScenes,
  ...crosschainScenes,
}

describe('a remedy', () => {
  it('has a scene here for every reason of the table', () => {
    const missing = Object.entries(reasons).filter(([, entry]) => entry.in.includes('unavailable'))
    expect(Object.keys(scenes).toSorted()).toEqual(missing.map(([reason]) => reason).toSorted())
    expect(Object.values(scenes).every((ofReason) => ofReason.length > 0)).toBe(true)
  })

  const all = Object.entries(scenes).flatMap(([reason, ofReason]) =>
    ofReason.map((scene, i) => [reason, i, scene] as const),
  )
  it.each(all)('of %s makes the route appear (%i)', async (reason, _, arrange) => {
    const { routing, question, at, route, follow } = await arrange()
    const answer = await routing.find(question)
    const entry = entryOf(answer, at)
    expect([entry?.reason, idsOf(answer).includes(route)]).toEqual([reason, false])
    const next = { routing, question, ...(await follow(entry?.remedy ?? '')) }
    expect(idsOf(await next.routing.find(next.question))).toContain(route)
  })
})

interface Kind {
  readonly name: string
  /** The source token. */
  readonly token: 'ETH' | 'USDC' | 'USDT' | 'DAI'
  readonly at?: Scene['at']
  readonly route?: string
  readonly terms?: object
}

const kinds: readonly Kind[] = [
  { name: 'a token, directly', token: 'USDC' },
  { name: 'coins, directly', token: 'ETH', terms: inCoins },
  { name: 'a converted amount of a token', token: 'USDC', terms: inFiat('USD', '123.45678901') },
  { name: 'a converted amount of coins', token: 'ETH', terms: { ...inCoins, ...inFiat('USD', '1234.5') } },
  { name: 'a swap through v2', token: 'DAI', ...SWAPPED },
  { name: 'a swap through v3', token: 'USDT', ...SWAPPED_V3 },
]

describe('the missing amount that a remedy tells', () => {
  const fee = () => ({ feePercentage: '0.7', feeAddress: stage.near.wallets[3] })

  async function holdings(token: Kind['token'], wallet: `0x${string}`): Promise<bigint> {
    return token === 'ETH' ? stage.near.nativeBalance(wallet) : stage.near.balanceOf(stage.near.tokens[token], wallet)
  }
  async function give(token: Kind['token'], wallet: `0x${string}`, amount: bigint): Promise<void> {
    if (token !== 'ETH') return stage.near.fund(stage.near.tokens[token], wallet, amount)
    return stage.near.setNativeBalance(wallet, (await stage.near.nativeBalance(wallet)) + amount)
  }
  const decimalsOf = (token: Kind['token']) => (token === 'ETH' ? 18 : stage.near.tokens[token].decimals)

  it.each(kinds)('suffices exactly, and one unit less does not: $name', async ({ token, at, route, terms }) => {
    const wallet = await stage.newWallet()
    const routing = stage.open()
    const question = { ...stage.ask(routing, wallet, terms), chains: ['ETHEREUM'], ...fee() }
    const place = { token, provider: 'request-network', ...at }
    const missing = (answer: RoutesAnswer) => {
      const entry = entryOf(answer, place)
      expect(entry?.reason).toBe('INSUFFICIENT_BALANCE')
      const [amount = ''] = read(entry?.remedy ?? '', new RegExp(`^add ([\\d.]+) ${token} on ETHEREUM$`))
      return parseAmount(amount, decimalsOf(token)) as bigint
    }
    await give(token, wallet, 3n)
    await give(token, wallet, missing(await routing.find(question)) - 1n)
    expect(missing(await routing.find(question))).toBe(1n)
    await give(token, wallet, 1n)
    expect(idsOf(await routing.find(question))).toContain(route ?? DIRECT)
    const { maxSourceAmount } = await routing.prepare({ ...question, route: route ?? DIRECT })
    expect(formatAmount(await holdings(token, wallet), decimalsOf(token))).toBe(maxSourceAmount)
  })

  it.each(kinds)('suffices exactly for gas, and one unit less does not: $name', async ({ token, at, route, terms }) => {
    const wallet = await stage.newWallet()
    await stage.near.setNativeBalance(wallet, 5n)
    const routing = stage.open()
    const question = { ...stage.ask(routing, wallet, terms), chains: ['ETHEREUM'], ...fee() }
    const place = { token, provider: 'request-network', ...at }
    const [lack = ''] = read(entryOf(await routing.find(question), place)?.remedy ?? '', /^add ([\d.]+) /)
    await give(token, wallet, parseAmount(lack, decimalsOf(token)) as bigint)

    const gasOf = (answer: RoutesAnswer) => {
      const found = answer.routes.find(({ id }) => id === (route ?? DIRECT))
      const warning = found?.warnings.find(({ reason }) => reason === 'INSUFFICIENT_GAS')?.message
      return { hasEnough: found?.readiness.hasEnoughGas, warning: warning ?? '' }
    }
    const short = gasOf(await routing.find(question))
    const [amount = ''] = read(short.warning, /; add ([\d.]+) ETH on ETHEREUM$/)
    await give('ETH', wallet, (parseAmount(amount, 18) as bigint) - 1n)
    expect(gasOf(await routing.find(question))).toEqual({
      hasEnough: false,
      warning: expect.stringMatching(/; add 0\.000000000000000001 ETH on ETHEREUM$/),
    })
    await give('ETH', wallet, 1n)
    expect(gasOf(await routing.find(question))).toEqual({ hasEnough: true, warning: '' })

    // It suffices for wallets that offer twice the base fee, for each of the transactions.
    const { transactions } = await routing.prepare({ ...question, route: route ?? DIRECT })
    for (const transaction of transactions) {
      const hash = await send(transaction, await feesNow(stage.near))
      await stage.near.mine()
      expect((await stage.near.receipt(hash))?.succeeded).toBe(true)
    }
  })

  it('is exactly what a node demands, once gas is measured', async () => {
    const wallet = await stage.newWallet()
    const routing = stage.open()
    const question = { ...stage.ask(routing, wallet, inCoins), chains: ['ETHEREUM'] }
    await stage.near.setNativeBalance(wallet, 2n * 10n ** 18n)
    const { route } = await routing.prepare({ ...question, route: DIRECT })
    const [amount = ''] = read(route?.warnings[0]?.message ?? '', /; add ([\d.]+) ETH on ETHEREUM$/)
    const missing = parseAmount(amount, 18) as bigint
    const [transaction] = (await routing.prepare({ ...question, route: DIRECT })).transactions
    if (transaction === undefined) throw new TypeError('nothing is to be sent')
    const fees = await feesNow(stage.near)
    await give('ETH', wallet, missing - 1n)
    await expect(send(transaction, fees)).rejects.toThrow(/insufficient funds/i)
    await give('ETH', wallet, 1n)
    await expect(send(transaction, fees)).resolves.toMatch(/^0x/)
  })

  /** As ethers and others offer them. */
  async function feesNow(chain: TestChain) {
    const args = ['0x5', 'latest', [50]]
    const history = await chain.client.rpc.call<{ baseFeePerGas: string[]; reward: string[][] }>('eth_feeHistory', args)
    const tips = history.reward.map(([tip]) => BigInt(tip ?? 0)).toSorted((a, b) => (a < b ? -1 : 1))
    const tip = tips[2] ?? 0n
    return { maxFeePerGas: 2n * BigInt(history.baseFeePerGas.at(-1) ?? 0) + tip, maxPriorityFeePerGas: tip }
  }

  function send(transaction: PreparedTransaction, fees: Record<string, bigint>): Promise<`0x${string}`> {
    const numbers = Object.entries(fees).map(([name, number]) => [name, toHex(number)])
    return stage.near.client.rpc.call('eth_sendTransaction', [{ ...transaction, ...Object.fromEntries(numbers) }])
  }
})
