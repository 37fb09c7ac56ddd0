/** The process that is measured: it makes the calls that its parent orders, and answers their cost. */
import {
  type ContractFunctionParameters,
  createPublicClient,
  defineChain,
  erc20Abi,
  http,
  multicall3Abi,
  parseAbi,
} from 'viem'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { createHttpPost } from '../../src/nodes/http-post.ts'
import { createTestRouting, freshAddress } from '../../test/support/routing.ts'
import { walletOf } from './network.ts'

/** An order of the parent. */
export type Subject = 'TOKEN' | 'FIAT' | 'VIEM' | 'VIEM_MULTICALL' | 'SLOWEST' | 'POSTS' | 'FIRST_ROUTE'

export interface Order {
  readonly configs?: readonly ChainConfig[]
  /** The bodies that the calls of TOKEN sent, by chain. */
  readonly bodies?: readonly string[]
  readonly subject: Subject
  readonly calls: number
  /** Concurrent calls, each of another wallet. */
  readonly atOnce: number
}

export interface Took {
  /** CPU time of this process a call. */
  readonly cpuMs: number
  /** The part of it that the system spent. */
  readonly systemMs: number
  /** Calls a second. */
  readonly perSecond: number
  readonly timesMs: readonly number[]
}

let bodies: readonly string[] = []
let ask: Record<Subject, (place: number) => Promise<void>> | undefined

function prepare(configs: readonly ChainConfig[]): NonNullable<typeof ask> {
  const routing = createTestRouting(configs, {
    chainTimeoutMs: 20_000,
  })
  const terms = { payee: freshAddress('payee'), amount: '150', network: 'ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
  const token = routing.addRequest({ ...terms, invoiceCurrency: 'USDC-ETHEREUM' })
  const fiat = routing.addRequest({ ...terms, invoiceCurrency: 'USD' })
  const find = (paymentReference: Hex, count: number) => async (place: number) => {
    const { routes, degraded } = await routing.find({ paymentReference, wallet: walletOf(place) })
    if (routes.length !== count || degraded) throw new Error(`${routes.length} routes, degraded: ${degraded}`)
  }
  /** Ends at the first route of a streamed answer. */
  const firstRoute = async (place: number) => {
    for await (const { kind } of routing.stream({ paymentReference: token, wallet: walletOf(place) })) {
      if (kind === 'ROUTE') return
    }
    throw new Error('no route')
  }
  const posts = configs.map((config) =>
    createHttpPost(config.rpcUrls[0] ?? '', { maxBytes: 1 << 20, takesGzip: false }),
  )
  const { signal } = new AbortController()
  /** Sends the bodies of TOKEN and ignores the answers. */
  const exchangeAll = async () => {
    await Promise.all(posts.map((post, i) => post(bodies[i] ?? '', signal)))
  }
  const [slowest] = configs
  const body = '{"jsonrpc":"2.0","id":0,"method":"eth_getBlockByNumber","params":["latest",false]}'
  const url = slowest?.rpcUrls[0] ?? ''
  const slowestChain = async () => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body })
    if ('error' in ((await response.json()) as object)) throw new Error('no answer')
  }
  // Five routes for TOKEN: the direct one, and two tokens on two exchanges.
  return {
    TOKEN: find(token, 5),
    FIAT: find(fiat, 1),
    VIEM: createViemLoop(configs),
    VIEM_MULTICALL: createViemMulticall(configs),
    SLOWEST: slowestChain,
    POSTS: exchangeAll,
    FIRST_ROUTE: firstRoute,
  }
}

const FEED_ABI = parseAbi(['function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)'])

/** The simplest code with viem: the chains concurrently, the reads of a chain one after the other; only balances and prices, no quotes. */
function createViemLoop(configs: readonly ChainConfig[]) {
  const clients = configs.map((config) => ({
    config,
    client: createPublicClient({ transport: http(config.rpcUrls[0]) }),
  }))
  return async (place: number) => {
    const wallet = walletOf(place)
    await Promise.all(
      clients.map(async ({ config, client }) => {
        await client.getBalance({ address: wallet })
        await client.getCode({ address: wallet })
        await client.getFeeHistory({ blockCount: 5, rewardPercentiles: [50] })
        for (const { address, usdFeed } of config.tokens) {
          const balance = { address: address as Hex, abi: erc20Abi, functionName: 'balanceOf', args: [wallet] } as const
          await client.readContract(balance)
          await client.readContract({ address: usdFeed as Hex, abi: FEED_ABI, functionName: 'latestRoundData' })
        }
      }),
    )
  }
}

/** The fastest code with viem: the same reads, with one multicall and one HTTP batch a chain. */
function createViemMulticall(configs: readonly ChainConfig[]) {
  const clients = configs.map(({ name, chainId, native, rpcUrls, multicall, tokens }) => ({
    multicall3: multicall as Hex,
    tokens,
    client: createPublicClient({
      chain: defineChain({
        id: chainId,
        name,
        nativeCurrency: { name: native.symbol, ...native },
        rpcUrls: { default: { http: [...rpcUrls] } },
        contracts: { multicall3: { address: multicall as Hex } },
      }),
      transport: http(rpcUrls[0], { batch: true }),
    }),
  }))
  return async (place: number) => {
    const wallet = walletOf(place)
    await Promise.all(
      clients.flatMap(({ client, multicall3, tokens }) => {
        const contracts: ContractFunctionParameters[] = [
          { address: multicall3, abi: multicall3Abi, functionName: 'getEthBalance', args: [wallet] },
          ...tokens.flatMap(({ address, usdFeed }) => [
            { address: address as Hex, abi: erc20Abi, functionName: 'balanceOf', args: [wallet] },
            { address: usdFeed as Hex, abi: FEED_ABI, functionName: 'latestRoundData' },
          ]),
        ]
        return [
          client.multicall({ contracts, allowFailure: false }),
          client.getCode({ address: wallet }),
          client.getFeeHistory({ blockCount: 5, rewardPercentiles: [50] }),
        ]
      }),
    )
  }
}

async function measure({ subject, calls, atOnce }: Order): Promise<Took> {
  const call = ask?.[subject]
  if (call === undefined) throw new TypeError('not prepared')
  const timesMs: number[] = []
  const cpu = process.cpuUsage()
  const startedAt = performance.now()
  let next = 0
  const worker = async (place: number) => {
    while (next < calls) {
      next += 1
      const begin = performance.now()
      await call(place)
      timesMs.push(performance.now() - begin)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, place) => worker(place)))
  const seconds = (performance.now() - startedAt) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return {
    cpuMs: (user + system) / 1_000 / calls,
    systemMs: system / 1_000 / calls,
    perSecond: calls / seconds,
    timesMs,
  }
}

process.on('message', (order: Order) => {
  if (order.bodies !== undefined) bodies = order.bodies
  if (order.configs !== undefined) ask = prepare(order.configs)
  measure(order).then(
    (took) => process.send?.(took),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
