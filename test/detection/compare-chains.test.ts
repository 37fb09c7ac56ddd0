/** The comparison of the chains file with its nodes while the service runs, on a real chain behind two proxies that misreport as nodes do. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createChainComparison } from '../../src/detection/check/compare-chains.ts'
import { createNodeLimits } from '../../src/nodes/node-limits.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { recordLogs } from '../support/logs.ts'
import { canonical, createTestRouting, freshAddress } from '../support/routing.ts'

let chain: TestChain
let first: RpcProxy
let second: RpcProxy
let config: ChainConfig
beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_591 })
  ;[first, second] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  config = { ...chain.config({ name: 'ETHEREUM' }), rpcUrls: [first.url, second.url] }
})
afterEach(() => {
  for (const proxy of [first, second]) {
    proxy.meddle()
    proxy.fail()
  }
})
afterAll(async () => {
  await Promise.all([first?.stop(), second?.stop()])
  await chain?.stop()
})

const NOWHERE = canonical(freshAddress('a mistyped contract'))
const { signal } = new AbortController()

function compare(chains: readonly ChainConfig[]) {
  const logs = recordLogs()
  const comparison = createChainComparison({
    chains,
    clock: () => new Date(),
    logger: logs,
    limits: createNodeLimits(chains),
  })
  const wrong = (address: string, of = 'ETHEREUM') => comparison.wrongWith({ chain: of, address: canonical(address) })
  return { comparison, wrong, round: () => comparison.round(signal), said: () => JSON.stringify(logs.records) }
}

const mistyped = (kind: string): ChainConfig => ({
  ...config,
  contracts: config.contracts.map((each) => (each.kind === kind ? { ...each, address: NOWHERE } : each)),
})
const withDecimals = (symbol: string, decimals: number): ChainConfig => ({
  ...config,
  tokens: config.tokens.map((each) => (each.symbol === symbol ? { ...each, decimals } : each)),
})

/** No code at an address, as a node answers that lies or lags. */
const without =
  (address: string): Meddle =>
  ({ method, params }) =>
    method === 'eth_getCode' && String(params[0]).toLowerCase() === address.toLowerCase()
      ? Promise.resolve('0x')
      : undefined

describe('what payers are sent to', () => {
  it('is right where the file is, and costs a node nothing more', async () => {
    const { round, comparison } = compare([config])
    await round()
    for (const { address } of [...config.contracts, ...config.tokens]) {
      expect(comparison.wrongWith({ chain: 'ETHEREUM', address })).toBeUndefined()
    }
    const asked = first.calls.length
    await round()
    expect(first.calls.length).toBe(asked)
  })

  it('is wrong without code, and with other decimals', async () => {
    const { wrong, round, said } = compare([
      mistyped('ETHEREUM_FEE_PROXY'),
      { ...withDecimals('USDC', 18), name: 'BASE' },
    ])
    await round()
    expect(wrong(NOWHERE)).toEqual({
      contract: 'ETHEREUM_FEE_PROXY 0.2.0',
      detail: `there is no contract at ${NOWHERE}`,
    })
    expect(wrong(chain.tokens.USDC.address, 'BASE')).toEqual({
      contract: 'the token USDC',
      detail: 'its decimals are 6, and 18 in the file',
    })
    expect(wrong(chain.tokens.USDC.address)).toBeUndefined()
    expect(said()).toContain('routes through this contract are taken away')
  })

  it('is what the other node says where one lies, and the operator learns of it', async () => {
    const token = chain.tokens.DAI.address
    first.meddle(without(token))
    const { wrong, round, said } = compare([config])
    await round()
    expect(wrong(token)).toBeUndefined()
    expect(said()).toContain('a node contradicts the chains file')
    expect(said()).not.toContain('taken away')
    // Two nodes that say so take it away, and it returns as soon as one of them says otherwise.
    const both = compare([config])
    second.meddle(without(token))
    await both.round()
    expect(both.wrong(token)).toMatchObject({ contract: 'the token DAI' })
    second.meddle()
    await both.round()
    expect(both.wrong(token)).toBeUndefined()
    expect(both.said()).toContain('the contract is as the chains file says')
  })

  it('is what the only node says twice', async () => {
    let answers = 0
    const once: Meddle = (call, ask) => (answers++ === 0 ? without(chain.tokens.DAI.address)(call, ask) : undefined)
    const alone = { ...config, rpcUrls: [first.url] }
    first.meddle((call, ask) =>
      call.method === 'eth_getCode' && String(call.params[0]).toLowerCase() === canonical(chain.tokens.DAI.address)
        ? once(call, ask)
        : undefined,
    )
    const { wrong, round } = compare([alone])
    await round()
    expect(wrong(chain.tokens.DAI.address)).toBeUndefined()
    const always = compare([{ ...mistyped('ERC20_FEE_PROXY'), rpcUrls: [first.url] }])
    await always.round()
    expect(always.wrong(NOWHERE)).toMatchObject({ contract: expect.stringContaining('ERC20_FEE_PROXY') as string })
  })

  it('is compared by a node that answers later, and by the one that answers meanwhile', async () => {
    first.fail(503)
    second.fail(503)
    const { wrong, round } = compare([mistyped('ERC20_FEE_PROXY')])
    await round()
    expect(wrong(NOWHERE)).toBeUndefined()
    second.fail()
    await round()
    expect(wrong(NOWHERE)).toBeDefined()
    first.fail()
    await round()
    expect(wrong(NOWHERE)).toBeDefined()
  })

  it('is not known to be wrong where nodes refuse to say, or are of another chain', async () => {
    for (const proxy of [first, second]) {
      proxy.meddle(({ method }) => {
        if (method === 'eth_call') return Promise.resolve({ rpcError: { code: -32601, message: 'not on your plan' } })
        return undefined
      })
    }
    const { wrong, round } = compare([config])
    await round()
    for (const { address } of config.tokens) expect(wrong(address)).toBeUndefined()
    const other = compare([{ ...config, chainId: 1 }])
    await other.round()
    expect(other.said()).toContain('the node is of another chain than the chains file says')
    expect(other.wrong(chain.tokens.DAI.address)).toBeUndefined()
  })
})

describe('the routes of a chain with a wrong contract', () => {
  it('lack those through it, say why, and are not prepared; the others stay', async () => {
    const wrongConfig = mistyped('ETHEREUM_FEE_PROXY')
    const { comparison, round } = compare([wrongConfig])
    await round()
    const routing = createTestRouting([wrongConfig], { objectionTo: (used) => comparison.wrongWith(used) })
    const wallet = freshAddress('a careful payer')
    await chain.setNativeBalance(wallet, 10n * 10n ** 18n)
    await chain.fund(chain.tokens.USDC, wallet, 10n ** 9n)
    const ask = (currency: string) => {
      const terms = { payee: freshAddress('payee'), amount: '1', network: 'ETHEREUM' }
      return {
        paymentReference: routing.addRequest({ ...terms, invoiceCurrency: currency, paymentCurrency: currency }),
        wallet,
      }
    }
    const inCoins = ask('ETH-ETHEREUM')
    const answer = await routing.find(inCoins)
    expect([answer.routes, answer.degraded]).toEqual([[], false])
    expect(answer.unavailable[0]).toEqual({
      chain: 'ETHEREUM',
      token: 'ETH',
      provider: 'request-network',
      reason: 'CONTRACT_NOT_AS_CONFIGURED',
      message: `ETHEREUM_FEE_PROXY 0.2.0 on ETHEREUM is not what the chains file says: there is no contract at ${NOWHERE}; money sent there would be lost`,
      remedy: 'ask the operator to correct ETHEREUM_FEE_PROXY 0.2.0 of ETHEREUM in the chains file',
    })
    await expect(routing.prepare(inCoins)).rejects.toMatchObject({ reason: 'ROUTE_UNAVAILABLE' })
    const inUsdc = await routing.find(ask('USDC-ETHEREUM'))
    expect(inUsdc.routes.map(({ id }) => id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
  })

  it('lack all that end in or begin with a wrong token', async () => {
    const wrongConfig = withDecimals('DAI', 6)
    const { comparison, round } = compare([wrongConfig])
    await round()
    const routing = createTestRouting([wrongConfig], { objectionTo: (used) => comparison.wrongWith(used) })
    const terms = { payee: freshAddress('payee'), amount: '1', network: 'ETHEREUM' }
    for (const invoiceCurrency of ['DAI-ETHEREUM', 'USD']) {
      const paymentReference = routing.addRequest({ ...terms, invoiceCurrency, paymentCurrency: 'DAI-ETHEREUM' })
      const { unavailable } = await routing.find({ paymentReference, wallet: freshAddress('anyone') })
      expect(unavailable[0]).toMatchObject({ token: 'DAI', reason: 'CONTRACT_NOT_AS_CONFIGURED' })
    }
  })
})
