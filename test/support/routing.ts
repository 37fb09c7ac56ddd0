/**
 * Support for tests of routes: the configuration of a test chain, a routing over several chains with requests in memory, and a proxy
 * before a node that records HTTP requests and misbehaves on demand.
 */
import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { keccak256, toBytes } from 'viem'
import { serveLocally } from '../../demo/network/local-server.ts'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig, PaymentContractKind, TokenConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Account } from '../../src/domain/account.ts'
import { type Address, parseAddress } from '../../src/domain/address.ts'
import { type Decimal, type DecimalString, readStoredDecimal, ZERO } from '../../src/domain/decimal.ts'
import type { Hex } from '../../src/domain/hex.ts'
import { balanceAt, type PaymentRequest, type SettledAmounts } from '../../src/domain/payment-request.ts'
import type {
  OptionsAnswer,
  PaymentQuestion,
  PreparedPayment,
  RoutesAnswer,
  RoutesEvent,
  RoutesQuestion,
} from '../../src/domain/route.ts'
import { decideStanding } from '../../src/domain/standing.ts'
import type { QuoteOptions } from '../../src/routing/quotes/quote-routes.ts'
import { createRouting, type RoutingOptions } from '../../src/routing/routing.ts'
import type { TestChain, TestToken } from './chains/chain.ts'
import { silentLogger } from './logs.ts'

const ACCOUNT: Account = { id: 1, name: 'shop' }

/** An EVM address with the types of this project and of viem. */
export type EvmAddress = Address & Hex

/** Parses an address. @throws TypeError when the text is not an address */
export function canonical(text: string): EvmAddress {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new TypeError(`${text}: ${parsed.detail}`)
  return parsed.address as EvmAddress
}

/** An unused address, the same for the same seed. */
export function freshAddress(seed: string): EvmAddress {
  return canonical(`0x${keccak256(toBytes(seed)).slice(-40)}`)
}

/** The configuration of a test chain for routing. `overrides.tokens` changes single tokens by symbol. */
export function configOf(
  chain: TestChain,
  name: string,
  { tokens = {}, ...overrides }: Partial<Omit<ChainConfig, 'tokens'>> & { tokens?: Record<string, object> } = {},
): ChainConfig {
  const contract = (kind: PaymentContractKind, address: string) =>
    ({ kind, version: '0.2.0', address: canonical(address), fromBlock: 0 }) as const
  const tokenConfig = (token: TestToken): TokenConfig => ({
    symbol: token.symbol,
    address: canonical(token.address),
    decimals: token.decimals,
    usdFeed: canonical(token.feed),
    heartbeatSeconds: 3600,
    ...(token.behaviour === 'TETHER' ? { approveReset: true } : {}),
    ...tokens[token.symbol],
  })
  return {
    name,
    chainId: chain.chainId,
    rpcUrls: [chain.rpcUrl],
    multicall: canonical(chain.contracts.multicall3),
    native: {
      symbol: chain.native.symbol,
      decimals: 18,
      usdFeed: canonical(chain.native.feed),
      heartbeatSeconds: 3600,
    },
    tokens: [chain.tokens.USDC, chain.tokens.USDT, chain.tokens.DAI].map(tokenConfig),
    contracts: [
      contract('ERC20_FEE_PROXY', chain.contracts.erc20FeeProxy),
      contract('ETHEREUM_FEE_PROXY', chain.contracts.ethereumFeeProxy),
      contract('ERC20_CONVERSION_PROXY', chain.contracts.erc20ConversionProxy),
      contract('ETH_CONVERSION_PROXY', chain.contracts.ethConversionProxy),
    ],
    conversion: {
      path: canonical(chain.contracts.conversionPath),
      paths: ['USDC', 'USDT', 'DAI', chain.native.symbol].map((token) => ({
        from: 'USD',
        token,
        via: [],
        heartbeatSeconds: 3600,
      })),
    },
    finality: { useFinalizedTag: false, depth: 5 },
    blockTimeSeconds: 12,
    ...overrides,
  }
}

/** The terms of a request; the other fields have defaults. */
export interface TestRequest extends Pick<PaymentRequest, 'payee' | 'invoiceCurrency' | 'paymentCurrency' | 'network'> {
  readonly amount: string
}

/** The counted payments of a request; by default none. */
export interface TestSums {
  readonly final?: DecimalString
  readonly pending?: DecimalString
  /** By a final refund, after all payments. */
  readonly returned?: DecimalString
}

export interface TestRouting {
  /** Stores a request with its counted payments. @returns the payment reference */
  addRequest(request: TestRequest, counted?: TestSums): Hex
  find(question: RoutesQuestion, options?: Partial<QuoteOptions>): Promise<RoutesAnswer>
  findOptions(paymentReference: string): Promise<OptionsAnswer>
  prepare(question: PaymentQuestion): Promise<PreparedPayment>
  stream(question: RoutesQuestion, options?: Partial<QuoteOptions>): AsyncGenerator<RoutesEvent>
  learnNodes(signal: AbortSignal): Promise<void>
}

/** Creates a routing over chains, with requests in memory. */
export function createTestRouting(
  configs: readonly ChainConfig[],
  options: Partial<
    Pick<RoutingOptions, 'clock' | 'chainTimeoutMs' | 'lifi' | 'limits' | 'logger' | 'objectionTo'>
  > = {},
): TestRouting {
  const requests = new Map<string, { request: PaymentRequest; settled: SettledAmounts }>()
  const { findOptions, findRoutes, streamRoutes, preparePayment, learnNodes } = createRouting({
    chains: createChainDirectory(configs),
    tokens: createTokenDirectory(configs),
    clock: Date.now,
    logger: silentLogger,
    async loadRequest(account, paymentReference) {
      const found = account.id === ACCOUNT.id ? requests.get(paymentReference) : undefined
      return found && { request: found.request, balance: balanceAt(found.request, found.settled, Date.now()) }
    },
    ...options,
  })
  return {
    learnNodes,
    addRequest(request, sums = {}) {
      const paymentReference: Hex = `0x${(requests.size + 1).toString(16).padStart(16, 'a')}`
      const terms = { requestId: `01${'0'.repeat(64)}`, salt: '0'.repeat(16), createdAt: new Date(0) }
      const amount = readStoredDecimal(request.amount)
      requests.set(paymentReference, {
        request: { ...terms, ...request, amount, paymentReference },
        settled: settledBy(amount, sums),
      })
      return paymentReference
    },
    prepare: (question) => preparePayment(ACCOUNT, question, { signal: new AbortController().signal }),
    stream: (question, more = {}) => streamRoutes(ACCOUNT, question, { signal: new AbortController().signal, ...more }),
    findOptions: (paymentReference) => findOptions(ACCOUNT, paymentReference, { signal: new AbortController().signal }),
    find: (question, more = {}) => findRoutes(ACCOUNT, question, { signal: new AbortController().signal, ...more }),
  }
}

function settledBy(expected: Decimal, { final = '0', pending = '0', returned = '0' }: TestSums): SettledAmounts {
  const currency = 'USDC-ETHEREUM'
  const at = (second: number, text: DecimalString) => ({
    place: { timestamp: new Date(second * 1_000) },
    amount: readStoredDecimal(text),
    currency,
  })
  const payment = (id: string, text: DecimalString) => ({
    ...at(1, text),
    id,
    counted: readStoredDecimal(text),
    status: 'PENDING' as const,
    isToSelf: false,
    importedRefunds: [],
    otherwiseReturned: ZERO,
  })
  const refund = { ...at(2, returned), txHash: '0x', eventIndex: 0, network: 'ETHEREUM', final: true }
  return decideStanding({
    expected,
    payments: [
      { ...payment('final', final), final: true },
      { ...payment('pending', pending), final: false },
    ],
    refunds: [refund],
  })
}

/** How the proxy answers; `next` asks the node. */
export type ProxyBehaviour = (
  exchange: { body: string; next: () => Promise<string> },
  response: ServerResponse,
) => Promise<void> | void

export interface RpcProxy {
  readonly url: string
  /** The bodies of the HTTP requests so far. */
  readonly bodies: string[]
  behave(behaviour: ProxyBehaviour): void
  stop(): Promise<void>
}

export const passOn: ProxyBehaviour = async ({ next }, response) => {
  response.setHeader('content-type', 'application/json').end(await next())
}

/** Passes a batch on and changes its results by their methods. */
export function changeResults(change: (method: string, result: unknown) => unknown): ProxyBehaviour {
  return async ({ body, next }, response) => {
    const calls = JSON.parse(body) as { id: number; method: string }[]
    const answers = JSON.parse(await next()) as { id: number; result: unknown }[]
    const methodOf = new Map(calls.map((call) => [call.id, call.method]))
    const changed = answers.map((answer) => ({
      ...answer,
      result: change(methodOf.get(answer.id) ?? '', answer.result),
    }))
    response.end(JSON.stringify(changed))
  }
}

/** Starts a proxy before a node. */
export async function startRpcProxy(target: string): Promise<RpcProxy> {
  const bodies: string[] = []
  let behaviour = passOn
  const { url, stop } = await serveLocally((request, response) => {
    const answer = async () => {
      const body = await text(request)
      bodies.push(body)
      await behaviour({ body, next: () => forward(target, body) }, response)
    }
    answer().catch((error: unknown) => response.destroy(error as Error))
  })
  return {
    url: `${url}/secret-key`,
    bodies,
    behave: (changed) => {
      behaviour = changed
    },
    stop,
  }
}

async function forward(target: string, body: string): Promise<string> {
  const response = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return response.text()
}
