/**
 * The demo's bridge between two test chains, `near` (ETHEREUM) and `far` (BSC, where tokens have 18 decimals), and routes over it. The
 * relayer acts only in `relay`.
 */

import { type Book, createBook, type Entry } from '../../demo/bridge/book.ts'
import { createRelayer, startBridgeServer } from '../../demo/bridge/bridge.ts'
import { type BridgeChain, toBridgeChain } from '../../demo/bridge/bridge-chain.ts'
import { MAX_UINT256 } from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { RoutesQuestion } from '../../src/domain/route.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { silentLogger } from '../support/logs.ts'
import { createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

export interface TestBridge {
  near: TestChain
  far: TestChain
  chains: readonly [near: BridgeChain, far: BridgeChain]
  configs: readonly ChainConfig[]
  url: string
  routing: TestRouting
  /** Sets the clock of the quotes to the time of the source chain, whose blocks run ahead of real time. */
  setTime(): Promise<void>
  /** Runs the relayer once, then mines a block on each chain. @returns all deposits afterwards */
  relay(): Promise<readonly Entry[]>
  /** Replaces the relayer by a new one without memory, as a restart does. */
  restart(): void
  /** Creates a wallet with coins and a million of each token on the source chain. */
  newPayer(): Promise<EvmAddress>
  /** Creates a request with a new payee. @returns the question by which `payer` asks for its routes */
  ask(
    payer: EvmAddress,
    terms: { into: 'USDC' | 'USDT' | 'DAI'; amount: string; percentage?: string | undefined },
  ): BridgeQuestion
  stop(): Promise<void>
}

export type BridgeQuestion = RoutesQuestion & { payee: EvmAddress; platform: EvmAddress }

const COIN = 10n ** 18n
const GWEI = 10n ** 9n
const USD = 10n ** 8n

export async function startTestBridge({ chainIds }: { chainIds: readonly [number, number] }): Promise<TestBridge> {
  const [near, far] = await Promise.all([
    startTestChain({ chainId: chainIds[0], bridge: true, baseFeePerGas: 8n * GWEI }),
    startTestChain({
      chainId: chainIds[1],
      addressSeed: 7,
      bridge: true,
      baseFeePerGas: GWEI,
      spec: {
        native: { symbol: 'BNB', usdPrice: 600n * USD },
        tokens: [
          { symbol: 'USDC', name: 'USD Coin', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
          { symbol: 'USDT', name: 'Tether', decimals: 18, behaviour: 'TETHER', usdPrice: (USD * 10_007n) / 10_000n },
          { symbol: 'DAI', name: 'Dai', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
        ],
      },
    }),
  ])
  const chains = [bridgeChain(near, 'ETHEREUM'), bridgeChain(far, 'BSC')] as const
  await Promise.all([supplyRelayer(near, chains[0]), supplyRelayer(far, chains[1])])
  let book: Book = createBook(chains)
  let relayer = createRelayer(chains, book, silentLogger)
  let nowMs = Date.now()
  const now = () => new Date(nowMs)
  // The server has its own book, because it reads before each answer.
  const server = await startBridgeServer(chains, createBook(chains), { now, logger: silentLogger })
  const configs = [near.config({ name: 'ETHEREUM' }), far.config({ name: 'BSC' })]
  const lifi = { name: 'demo-bridge', url: server.url }
  const routing = createTestRouting(configs, { clock: () => nowMs, lifi })
  let payers = 0

  return {
    near,
    far,
    chains,
    configs,
    url: server.url,
    routing,
    async setTime() {
      nowMs = (await near.client.head()).timestampSec * 1_000
    },
    async relay() {
      await book.read()
      await relayer.step()
      await Promise.all([near.mine(), far.mine()])
      await book.read()
      return book.entries()
    },
    restart() {
      book = createBook(chains)
      relayer = createRelayer(chains, book, silentLogger)
    },
    async newPayer() {
      const payer = freshAddress(`payer of the bridge ${chainIds[0]} ${payers++}`)
      await near.setNativeBalance(payer, 100n * COIN)
      await near.client.rpc.call('anvil_impersonateAccount', [payer])
      for (const token of tokensOf(near)) await near.fund(token, payer, 10n ** BigInt(token.decimals + 6))
      return payer
    },
    ask(payer, { into, amount, percentage }) {
      const [payee, platform] = [freshAddress(`payee of ${payer}`), freshAddress(`platform of ${payer}`)]
      const currency = `${into}-BSC`
      const currencies = { invoiceCurrency: currency, paymentCurrency: currency }
      const paymentReference = routing.addRequest({ payee, amount, network: 'BSC', ...currencies })
      const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress: platform }
      return { paymentReference, wallet: payer, payee, platform, ...fee }
    },
    async stop() {
      await Promise.all([near, far, server].map((each) => each.stop()))
    },
  }
}

function bridgeChain({ chainId, client, deployed, wallets }: TestChain, name: string): BridgeChain {
  return toBridgeChain({ name, chainId, client, deployed, relayer: wallets.at(-1) as EvmAddress, tipPerGas: GWEI })
}

const tokensOf = ({ tokens: { USDC, USDT, DAI } }: TestChain) => [USDC, USDT, DAI]

async function supplyRelayer(chain: TestChain, { relayer, executor }: BridgeChain): Promise<void> {
  for (const token of tokensOf(chain)) {
    await chain.fund(token, relayer, 10n ** BigInt(token.decimals + 9))
    await chain.approve(relayer, token, executor, MAX_UINT256)
  }
}
