/**
 * The setting of remedy tests: the near chain, with the requests, exchanges and price feeds; the far chain, from which wallets pay; and a
 * cross-chain provider between the two.
 */
import { zeroAddress } from 'viem'
import { encodeAggregators, encodeCreation } from '../../demo/network/demo-contracts.ts'
import type { ChainConfig, ConversionPath, TokenConfig } from '../../src/chains/chains-file.ts'
import { currencyHash } from '../../src/contracts/currency-hash.ts'
import type { RoutesQuestion } from '../../src/domain/route.ts'
import type { RoutingOptions } from '../../src/routing/routing.ts'
import { startTestChain, type TestChain, type TestToken } from '../support/chains/chain.ts'
import { lifiConfigOf, type TestLifi } from '../support/chains/lifi-contracts.ts'
import { deployExchanges, type Exchanges, withExchanges } from '../support/chains/uniswap.ts'
import { type LifiServer, type LifiToken, quoteWell, startLifiServer } from '../support/lifi-server.ts'
import {
  canonical,
  configOf,
  createTestRouting,
  type EvmAddress,
  freshAddress,
  passOn,
  type RpcProxy,
  startRpcProxy,
  type TestRequest,
  type TestRouting,
} from '../support/routing.ts'

const COIN = 10n ** 18n
const UNIT = 10n ** 6n
export const USD = 10n ** 8n

/** A routing, a question to it, and the entry of the answer in question. */
export interface Scene {
  readonly routing: TestRouting
  readonly question: RoutesQuestion
  readonly at: { readonly chain?: string; readonly token?: string | undefined; readonly provider?: string }
  /** The id of the route that must appear. */
  readonly route: string
  /** Does what the remedy says, and nothing else. @returns what to ask then */
  readonly follow: (remedy: string) => Promise<Next> | Next
}

/** The new question or the new routing, where the remedy says to ask in another way or to configure something. */
export type Next = Partial<Pick<Scene, 'routing' | 'question'>>

export type Changes = Partial<Omit<ChainConfig, 'tokens'>> & { tokens?: Record<string, object> }

export interface Stage extends Exchanges {
  readonly near: TestChain
  readonly far: TestChain
  readonly lifi: LifiServer
  /** In front of the near chain's node, in routings opened with `throughProxy`. */
  readonly proxy: RpcProxy
  config(changes?: Changes): ChainConfig
  farConfig(changes?: Changes): ChainConfig
  open(options?: OpenOptions): TestRouting
  /** A new wallet with coins for gas on both chains. */
  newWallet(): Promise<EvmAddress>
  /** A wallet's question about a new request; default 100 USDC of the near chain. */
  ask(routing: TestRouting, wallet: string, terms?: Partial<TestRequest>): RoutesQuestion
  /** The path of the chains file from a fiat currency by US dollars, and the feed that it needs. */
  pathFrom(currency: string): ConversionPath
  addFiatFeed(currency: string): Promise<void>
  /** Further tokens of the far chain, worth a dollar each, that the cross-chain provider knows. */
  deployCoupons(count: number): Promise<TokenConfig[]>
  /** Moves the clock of the routings, not of the chains. */
  wait(seconds: number): void
  reset(): void
  stop(): Promise<void>
}

interface OpenOptions extends Partial<Pick<RoutingOptions, 'chainTimeoutMs' | 'objectionTo'>> {
  readonly near?: Changes
  readonly far?: Changes
  /** Whole configurations, in place of the usual ones. */
  readonly configs?: readonly ChainConfig[]
  readonly lifi?: Partial<NonNullable<RoutingOptions['lifi']>>
  readonly throughProxy?: boolean
}

/** LI.FI's contracts on both chains: pinned, and never called here. */
const LIFI: TestLifi = {
  diamond: freshAddress('diamond of a remedy'),
  feeForwarder: freshAddress('fee forwarder of a remedy'),
  receiver: freshAddress('receiver of a remedy'),
}

/** The stage of a test file, once it has started. */
export let stage: Stage

export async function raiseStage(): Promise<void> {
  stage = await startStage()
}

/** What a stage stands on: both chains, with what the near one needs for every kind of route, and the cross-chain provider. */
interface Ground {
  readonly near: TestChain
  readonly far: TestChain
  readonly exchanges: Exchanges
  readonly proxy: RpcProxy
  readonly lifi: LifiServer
  /** The tokens that the cross-chain provider knows; it also knows those that are added later. */
  readonly lifiTokens: LifiToken[]
}

async function startGround(): Promise<Ground> {
  const [near, far] = await Promise.all([
    startTestChain({ baseFeePerGas: 8_000_000_000n }),
    startTestChain({ chainId: 31_338, addressSeed: 7 }),
  ])
  const exchanges = await deployExchanges(near)
  const { v2, v3, swapToPay } = exchanges
  const { USDC, USDT, DAI } = near.tokens
  await v2.addLiquidity(DAI, 1_000_000n * COIN, USDC, 1_000_000n * UNIT)
  await v3.addLiquidity(500, { ...USDT, amount: 1_000_000n * UNIT }, { ...USDC, amount: 1_000_000n * UNIT })
  await swapToPay.approveAll([USDC, USDT, DAI])
  // The first swap of a pool takes more gas than all others.
  await near.mine({ timestampSec: (await near.client.head()).timestampSec + 60 })
  await v2.trade(COIN, DAI, USDC)
  const lifiTokens = tokensOf(near, far)
  const lifi = await startLifiServer({
    tokens: lifiTokens,
    diamonds: { [far.chainId]: LIFI.diamond },
    feeForwarders: { [far.chainId]: LIFI.feeForwarder },
    receivers: { [near.chainId]: LIFI.receiver },
  })
  return { near, far, exchanges, proxy: await startRpcProxy(near.rpcUrl), lifi, lifiTokens }
}

async function startStage(): Promise<Stage> {
  const ground = await startGround()
  const { near, far, exchanges, lifi, proxy } = ground
  const { config, farConfig } = configsOf(ground)
  let waitedMs = 0

  return {
    near,
    far,
    ...exchanges,
    lifi,
    proxy,
    config,
    farConfig,
    open(options = {}) {
      const { throughProxy, near: ofNear, far: ofFar, lifi: ofLifi, configs, ...rest } = options
      const throughUrl = throughProxy ? { rpcUrls: [proxy.url] } : {}
      const all = configs ?? [config({ ...throughUrl, ...ofNear }), farConfig(ofFar)]
      return createTestRouting(all, {
        clock: () => Date.now() + waitedMs,
        ...rest,
        ...(ofLifi === undefined ? {} : { lifi: { url: lifi.url, timeoutMs: 2_000, ...ofLifi } }),
      })
    },
    newWallet: walletsOf(ground),
    ask(routing, wallet, terms = {}) {
      const currency = { invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
      const request = { payee: freshAddress('payee'), amount: '100', network: 'ETHEREUM', ...currency, ...terms }
      return { paymentReference: routing.addRequest(request), wallet }
    },
    pathFrom: (from) => ({ from, token: 'USDC', via: ['USD'], heartbeatSeconds: 3_600 }),
    addFiatFeed: (currency) => addFiatFeed(near, currency),
    deployCoupons: (count) => deployCoupons(ground, count),
    wait(seconds) {
      waitedMs += seconds * 1_000
    },
    reset() {
      waitedMs = 0
      lifi.behave(quoteWell)
      lifi.charge({})
      proxy.behave(passOn)
    },
    async stop() {
      await Promise.all([lifi.stop(), proxy.stop(), near.stop(), far.stop()])
    },
  }
}

function configsOf({ near, far, exchanges }: Ground): Pick<Stage, 'config' | 'farConfig'> {
  return {
    config(changes = {}) {
      const { contracts, swapV2, swapV3 } = withExchanges(configOf(near, 'ETHEREUM'), exchanges)
      return configOf(near, 'ETHEREUM', { ...lifiConfigOf(LIFI), contracts, swapV2, swapV3, ...changes })
    },
    farConfig: (changes = {}) => configOf(far, 'BASE', { ...lifiConfigOf(LIFI), ...changes }),
  }
}

function walletsOf({ near, far }: Ground): Stage['newWallet'] {
  let wallets = 0
  return async () => {
    const wallet = freshAddress(`wallet of a remedy ${wallets++}`)
    for (const chain of [near, far]) {
      // Too little for a cross-chain payment of its own.
      await chain.setNativeBalance(wallet, COIN / 100n)
      await chain.client.rpc.call('anvil_impersonateAccount', [wallet])
    }
    return wallet
  }
}

async function addFiatFeed(near: TestChain, currency: string): Promise<void> {
  const { timestampSec } = await near.client.head()
  const args = [`${currency} / USD`, 8, (107n * USD) / 100n, BigInt(timestampSec)]
  const data = encodeCreation('SettableFeed', args)
  const { transactionHash } = await near.send(near.deployer, { data }, { gas: 5_000_000n })
  const receipt = await near.client.rpc.call<{ contractAddress: EvmAddress }>('eth_getTransactionReceipt', [
    transactionHash,
  ])
  const [input, output] = [currency, 'USD'].map((code) => currencyHash('iso4217', code) as EvmAddress)
  const aggregator = { input: input as EvmAddress, output: output as EvmAddress, feed: receipt.contractAddress }
  await near.send(near.deployer, encodeAggregators(near.contracts.conversionPath, [aggregator]))
}

async function deployCoupons({ far, lifiTokens }: Ground, count: number): Promise<TokenConfig[]> {
  const symbols = Array.from({ length: count }, (_, i) => `COUPON${i}`)
  const coupons: TokenConfig[] = []
  for (const symbol of symbols) {
    const { address } = await far.deployToken({ symbol, decimals: 6 })
    coupons.push({ symbol, address: canonical(address), decimals: 6, pegUsd: '1' })
    lifiTokens.push({ chainId: far.chainId, address, symbol, decimals: 6, usd: USD })
  }
  return coupons
}

/** Tokens of the far chain, and the near chain's token that payees want. */
function tokensOf(near: TestChain, far: TestChain): LifiToken[] {
  const known = (chain: TestChain, { address, symbol, decimals }: TestToken) => ({
    chainId: chain.chainId,
    address,
    symbol,
    decimals,
    usd: USD,
  })
  const { USDC, USDT, DAI } = far.tokens
  const coin = { chainId: far.chainId, address: zeroAddress, symbol: 'ETH', decimals: 18, usd: 3_000n * USD }
  return [coin, ...[USDC, USDT, DAI].map((token) => known(far, token)), known(near, near.tokens.USDC)]
}
