import { afterAll, beforeAll, expect, it } from 'vitest'
import { l1Fees } from '../../src/chains/l1-fee.ts'
import { parseAmount } from '../../src/domain/decimal.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { configOf, createTestRouting, freshAddress, type RpcProxy, startRpcProxy } from '../support/routing.ts'

const WALLET = freshAddress('wallet')
/** Returns 1,000 wei a byte and 5,000 more. */
const ORACLE = '0x6004356103e8026113880160005260206000f3'
/** Six words, the second of them 777. */
const GAS_INFO = '0x61030960205260c06000f3'

/** Bytes of an unsigned transaction beside its calldata; on Arbitrum with a signature. */
const FEE_OF_BYTES = {
  OP_STACK: (bytes: number) => BigInt(5_000 + 1_000 * (bytes + 80)),
  ARBITRUM: (bytes: number) => BigInt(777 * (bytes + 148)),
}

let chain: TestChain
let proxy: RpcProxy
beforeAll(async () => {
  chain = await startTestChain()
  proxy = await startRpcProxy(chain.rpcUrl)
  await chain.fund(chain.tokens.USDC, WALLET, 1_000_000_000n)
  await chain.setNativeBalance(WALLET, 10n ** 18n)
  const { rpc } = chain.client
  await rpc.call('anvil_setCode', ['0x420000000000000000000000000000000000000f', ORACLE])
  await rpc.call('anvil_setCode', ['0x000000000000000000000000000000000000006c', GAS_INFO])
})
afterAll(async () => {
  await proxy.stop()
  await chain.stop()
})

type Kind = keyof typeof l1Fees

function newRouting(kind: Kind | undefined) {
  const l1Fee = kind && l1Fees[kind]
  const routing = createTestRouting([configOf(chain, 'BASE', { rpcUrls: [proxy.url], l1Fee })])
  const terms = { payee: freshAddress('payee'), amount: '10', network: 'BASE' }
  const requests = [
    routing.addRequest({ ...terms, invoiceCurrency: 'USDC-BASE', paymentCurrency: 'USDC-BASE' }),
    routing.addRequest({ ...terms, amount: '0.1', invoiceCurrency: 'ETH-BASE', paymentCurrency: 'ETH-BASE' }),
    routing.addRequest({ ...terms, invoiceCurrency: 'USD', paymentCurrency: 'USDC-BASE' }),
  ]
  return { routing, requests }
}

it.each(['OP_STACK', 'ARBITRUM'] as const)(
  'the fee for publishing is a gas line of its own, by the size of what is sent: %s',
  async (kind) => {
    const { routing, requests } = newRouting(kind)
    await routing.learnNodes(new AbortController().signal)
    for (const paymentReference of requests) {
      proxy.bodies.length = 0
      const { route, transactions } = await routing.prepare({
        paymentReference,
        wallet: WALLET,
        route: 'REQUEST_NETWORK_PAYMENT',
      })
      const sizes = transactions.map(({ data }) => (data.length - 2) / 2)
      const expected = sizes.map(FEE_OF_BYTES[kind]).reduce((sum, fee) => sum + fee, 0n)
      const [gas, published] = route.feeBreakdown.filter((line) => line.type === 'GAS')
      expect([gas?.provider, published?.provider]).toEqual([undefined, 'l1-data'])
      expect(published && parseAmount(published.amount, 18)).toBe(expected)
      // The look at the chain, and the simulation of the route.
      expect(proxy.bodies.length).toBe(2)
    }
  },
)

it('the fee for publishing is in the gas limit where the chain takes it as gas', async () => {
  const limits = async (kind: Kind) => {
    const { routing, requests } = newRouting(kind)
    const question = { paymentReference: requests[0] as string, wallet: WALLET, route: 'REQUEST_NETWORK_PAYMENT' }
    return (await routing.prepare(question)).transactions.map(({ gas }) => BigInt(gas ?? 0))
  }
  // Less than a unit of gas is rounded up; with the quarter that is added to every limit, that makes one or two.
  const without = await limits('OP_STACK')
  const more = (await limits('ARBITRUM')).map((limit, i) => limit - (without[i] ?? 0n))
  expect(more.every((gas) => gas === 1n || gas === 2n)).toBe(true)
})

it('the fee for publishing has no line on a chain without it', async () => {
  const { routing, requests } = newRouting(undefined)
  const { routes } = await routing.find({ paymentReference: requests[0] as string, wallet: WALLET })
  expect(routes[0]?.feeBreakdown.filter((line) => line.type === 'GAS').length).toBe(1)
})

it('the fee for publishing counts in whether the wallet has enough gas', async () => {
  const wallet = freshAddress('a wallet without gas')
  await chain.fund(chain.tokens.USDC, wallet, 1_000_000_000n)
  const gas = async (kind: Kind | undefined) => {
    const { routing, requests } = newRouting(kind)
    const [route] = (await routing.find({ paymentReference: requests[0] as string, wallet })).routes
    const [, missing = '0'] = /; add ([\d.]+) ETH/.exec(route?.warnings[0]?.message ?? '') ?? []
    const published = route?.feeBreakdown.find(({ provider }) => provider === 'l1-data')?.amount ?? '0'
    return { missing: parseAmount(missing, 18) as bigint, published: parseAmount(published, 18) as bigint }
  }
  const [none, opStack] = [await gas(undefined), await gas('OP_STACK')]
  expect(opStack.missing - none.missing).toBe(opStack.published)
  await chain.setNativeBalance(wallet, opStack.missing)
  expect((await gas('OP_STACK')).missing).toBe(0n)
  await chain.setNativeBalance(wallet, opStack.missing - 1n)
  expect((await gas('OP_STACK')).missing).toBe(1n)
})

it('a route is unavailable when the chain does not tell its fee for publishing', async () => {
  const { rpc } = chain.client
  await rpc.call('anvil_setCode', ['0x420000000000000000000000000000000000000f', '0x'])
  const { routing, requests } = newRouting('OP_STACK')
  const answer = await routing.find({ paymentReference: requests[0] as string, wallet: WALLET })
  expect([answer.routes, answer.degraded]).toEqual([[], true])
  expect(answer.unavailable[0]).toMatchObject({ token: 'USDC', reason: 'CONTRACT_UNREADABLE' })
})
