/**
 * A followed chain with exchanges and feeds, on which routes are quoted, executed and detected: requests, wallets and payments are those that
 * the service would store and find.
 */
import type { Knex } from 'knex'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Account } from '../../src/domain/account.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import type { PaymentQuestion, PreparedPayment } from '../../src/domain/route.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { createRouting } from '../../src/routing/routing.ts'
import { startTestChain, type TestChain, type TestToken } from '../support/chains/chain.ts'
import { deployExchanges, type SwapToPay, withExchanges } from '../support/chains/uniswap.ts'
import { createTestDatabase } from '../support/data/database.ts'
import { addAccount, detect, makeRequest, paymentsOf, storeRequest, type TestTerms } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { configOf, type EvmAddress, freshAddress } from '../support/routing.ts'

const COIN = 10n ** 18n
const UNIT = 10n ** 6n
export const USD = 10n ** 8n

/** The symbol of a token of the chain, or of its coin. */
export type Symbol = 'USDC' | 'USDT' | 'DAI' | 'ETH'

export interface RouteStage {
  readonly chain: TestChain
  readonly swapToPay: SwapToPay
  /** A request with a new payee, and a wallet with plenty of a token and some coins. */
  arrange(from: Symbol, terms: TestTerms): Promise<Arranged>
  prepare(question: PaymentQuestion): Promise<PreparedPayment>
  /** Follows the chain up to its head. @returns the payments of a request */
  detected(request: PaymentRequest): ReturnType<typeof paymentsOf>
  /** Balances in base units. */
  holdings(symbol: Symbol, owner: string): Promise<bigint>
  decimalsOf(symbol: Symbol): number
  /** Another trader's swap of an exact amount of one token for the other. */
  trade(exchange: 'v2' | 'v3', amount: bigint, from: TestToken, to: TestToken): Promise<void>
  stop(): Promise<void>
}

interface Arranged {
  readonly request: PaymentRequest
  readonly wallet: EvmAddress
}

const V3_FEE = 500

/** DAI trades on the v2 exchange, USDT on the v3, both for USDC and near one to one. */
export async function startRouteStage(): Promise<RouteStage> {
  const [chain, database] = await Promise.all([startTestChain({ baseFeePerGas: 8_000_000_000n }), createTestDatabase()])
  const { USDC, USDT, DAI } = chain.tokens
  const exchanges = await deployExchanges(chain)
  const { v2, v3, swapToPay } = exchanges
  await v2.addLiquidity(DAI, 1_000_000n * COIN, USDC, 1_010_000n * UNIT)
  await v3.addLiquidity(V3_FEE, { ...USDT, amount: 1_000_000n * UNIT }, { ...USDC, amount: 990_000n * UNIT })
  await swapToPay.approveAll([USDC, DAI])
  const finality = { useFinalizedTag: false, depth: 3 }
  const config = withExchanges(configOf(chain, 'ETHEREUM', { finality }), exchanges)
  const { knex } = database
  const account = await addAccount(knex, 'shop')
  const detection = detect(knex, [config])
  const routing = routingOver(config, knex)
  const token = (symbol: Symbol) => (symbol === 'ETH' ? undefined : chain.tokens[symbol])
  let cases = 0

  const trade: RouteStage['trade'] = (exchange, ...terms) =>
    exchange === 'v2' ? v2.trade(...terms) : v3.trade(V3_FEE, ...terms)
  // The first swap of a pool takes more gas than all others.
  for (const exchange of ['v2', 'v3'] as const) {
    const other = exchange === 'v2' ? DAI : USDT
    for (const [from, to] of [
      [other, USDC],
      [USDC, other],
    ] as const) {
      const { timestampSec } = await chain.client.head()
      await chain.mine({ timestampSec: timestampSec + 60 })
      await trade(exchange, 10n ** BigInt(from.decimals), from, to)
    }
  }

  return {
    chain,
    swapToPay,
    async arrange(from, terms) {
      const seed = `${cases++}`
      const [payee, wallet] = [freshAddress(`payee of a route ${seed}`), freshAddress(`wallet of a route ${seed}`)]
      await chain.setNativeBalance(wallet, 100n * COIN)
      await chain.client.rpc.call('anvil_impersonateAccount', [wallet])
      const paid = token(from)
      if (paid !== undefined) await chain.fund(paid, wallet, 10n ** BigInt(paid.decimals + 6))
      const request = makeRequest({ payee, network: config.name, ...terms })
      return { request: await storeRequest(knex, account, request), wallet }
    },
    prepare: (question) => routing.preparePayment(account, question, { signal: new AbortController().signal }),
    async detected(request) {
      await detection.scanOnce()
      return paymentsOf(knex, account, request)
    },
    holdings(symbol, owner) {
      const held = token(symbol)
      return held === undefined ? chain.nativeBalance(owner as EvmAddress) : chain.balanceOf(held, owner as EvmAddress)
    },
    decimalsOf: (symbol) => token(symbol)?.decimals ?? 18,
    trade,
    async stop() {
      await Promise.all([chain.stop(), database.drop()])
    },
  }
}

/** As the service has it. */
export function routingOver(config: ChainConfig, knex: Knex, ...others: readonly ChainConfig[]) {
  const requests = createRequestRepository(knex)
  return createRouting({
    chains: createChainDirectory([config, ...others]),
    tokens: createTokenDirectory([config, ...others]),
    clock: Date.now,
    logger: silentLogger,
    loadRequest: (account: Account, reference, signal) => requests.findByReference(account, reference, signal),
  })
}
