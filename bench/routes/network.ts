import { setTimeout as delay } from 'node:timers/promises'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { startTestChain, type TestChain } from '../../test/support/chains/chain.ts'
import { deployExchanges, type Exchanges, withExchanges } from '../../test/support/chains/uniswap.ts'
import { canonical, configOf, freshAddress, type RpcProxy, startRpcProxy } from '../../test/support/routing.ts'

/** Minimum time of an answer, by chain. The chain of the requests, which gets the most calls, is the slowest. */
const LATENCIES_MS = { ETHEREUM: 300, POLYGON: 150, ARBITRUM: 50, BASE: 5 } as const

/** BASE, from which no route of the requests begins, asks its oracle for so long. */
const SLOW_ORACLE_MS = 1_000

type Name = keyof typeof LATENCIES_MS
const NAMES = Object.keys(LATENCIES_MS) as Name[]

const COIN = 10n ** 18n
const UNIT = 10n ** 6n

/** Four chains, each behind a proxy, with wallets that hold every token and coin. */
export interface Network {
  readonly configs: readonly ChainConfig[]
  /** The number of HTTP requests since the last call, by chain. */
  takeCounts(): Readonly<Record<string, number>>
  /** The body of the last HTTP request, by chain. */
  lastBodies(): readonly string[]
  /** Sets the latencies of the chains. */
  setLatency(latency: 'NONE' | 'USUAL' | 'SLOW_ORACLE'): void
  stop(): Promise<void>
}

const wallets: ReturnType<typeof freshAddress>[] = []

/** The wallet at a place. Cached, so that hashing is not measured. */
export function walletOf(place: number) {
  return (wallets[place] ??= freshAddress(`bench wallet ${place}`))
}

/** @param wallets - number of wallets that get funds to pay with any token on any chain */
export async function startNetwork(wallets: number): Promise<Network> {
  const chains = await Promise.all(NAMES.map((_, i) => startTestChain({ chainId: 31_337 + i, addressSeed: i })))
  const proxies = await Promise.all(chains.map((chain) => startRpcProxy(chain.rpcUrl)))
  for (const chain of chains) await fund(chain, wallets)
  const exchanges = await addExchanges(chains[0] as TestChain)
  const configs = chains.map((chain, i) => {
    const name = NAMES[i] as Name
    const screening = { oracle: canonical(chain.deployed.screeningOracle) }
    const config = configOf(chain, name, { rpcUrls: [(proxies[i] as RpcProxy).url], screening })
    return i > 0 ? config : withExchanges(config, exchanges, ['USDT', 'DAI'])
  })
  return {
    configs,
    takeCounts: () =>
      Object.fromEntries(proxies.map(({ bodies }, i) => [NAMES[i] as Name, bodies.splice(0).length] as const)),
    lastBodies: () => proxies.map(({ bodies }) => bodies.at(-1) ?? ''),
    setLatency(latency) {
      const latencies = { ...LATENCIES_MS, ...(latency === 'SLOW_ORACLE' && { BASE: SLOW_ORACLE_MS }) }
      proxies.forEach((proxy, i) => {
        const latencyMs = latency === 'NONE' ? 0 : latencies[NAMES[i] as Name]
        proxy.behave(async ({ next }, response) => {
          const [answer] = await Promise.all([next(), delay(latencyMs)])
          response.setHeader('content-type', 'application/json').end(answer)
        })
      })
    },
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy.stop()))
      await Promise.all(chains.map((chain) => chain.stop()))
    },
  }
}

async function fund(chain: TestChain, wallets: number): Promise<void> {
  const { USDC, USDT, DAI } = chain.tokens
  for (let place = 0; place < wallets; place++) {
    const wallet = walletOf(place)
    await chain.setNativeBalance(wallet, 10n * COIN)
    for (const token of [USDC, USDT, DAI]) await chain.fund(token, wallet, 10n ** BigInt(token.decimals + 5))
  }
}

/** Uniswap v2 with Request's contract that swaps and pays, and Uniswap v3, with pools of the three tokens. */
async function addExchanges(chain: TestChain): Promise<Exchanges> {
  const { USDC, USDT, DAI } = chain.tokens
  const exchanges = await deployExchanges(chain)
  const { v2, v3, swapToPay } = exchanges
  await v2.addLiquidity(DAI, 1_000_000n * COIN, USDC, 1_010_000n * UNIT)
  await v2.addLiquidity(USDT, 1_000_000n * UNIT, USDC, 1_000_000n * UNIT)
  await v2.addLiquidity(DAI, 1_000_000n * COIN, USDT, 1_010_000n * UNIT)
  await swapToPay.approveProxy(USDC)
  for (const token of [DAI, USDT]) await swapToPay.approveRouter(token)
  await v3.addLiquidity(500, { ...DAI, amount: 1_000_000n * COIN }, { ...USDC, amount: 1_010_000n * UNIT })
  await v3.addLiquidity(100, { ...USDT, amount: 1_000_000n * UNIT }, { ...USDC, amount: 1_000_000n * UNIT })
  return exchanges
}
