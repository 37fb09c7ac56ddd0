import type { ChainDirectory } from '../chains/chain-directory.ts'
import { listCurrencies } from '../chains/list-currencies.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import type { Logger } from '../domain/logger.ts'
import type { BatchQuestion, PaymentQuestion, RoutesQuestion } from '../domain/route.ts'
import { createNodeLimits, type NodeLimits } from '../nodes/node-limits.ts'
import {
  createFindOptions,
  createFindRoutes,
  createStreamRoutes,
  createWarningsOf,
  readRoutesQuestion,
} from './find-routes.ts'
import type { ObjectionTo } from './plans/provider.ts'
import { createPrepareBatch, readBatchQuestion } from './prepare-batch.ts'
import { createPreparePayment, readPaymentQuestion } from './prepare-payment.ts'
import { createConversionProvider } from './providers/conversion.ts'
import { createDirectProvider } from './providers/direct.ts'
import { createFindTransfer } from './providers/lifi/find-transfer.ts'
import { createLifiProvider } from './providers/lifi/lifi.ts'
import { createLifiClient, type LifiOptions } from './providers/lifi/lifi-client.ts'
import { createSwapV2Provider } from './providers/swap/swap-v2.ts'
import { createSwapV3Provider } from './providers/swap/swap-v3.ts'
import type { ListChangedAt, LoadRequest } from './quotes/quote-routes.ts'
import { checkRouteIds } from './quotes/route-id.ts'
import { createScanner } from './scan/scan.ts'

export interface RoutingOptions {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly loadRequest: LoadRequest
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly logger: Logger
  /** What the process knows of its nodes' limits, shared with detection; default nothing but what the configuration states. */
  readonly limits?: NodeLimits | undefined
  /** The cross-chain provider; none by default. */
  readonly lifi?: LifiOptions | undefined
  /** What nodes say against contracts and tokens of the chains file; by default nothing is known. */
  readonly objectionTo?: ObjectionTo | undefined
  /** When the list of a chain's oracle last changed, as far as that is known. @param chainId - EIP-155 */
  readonly listChangedAt?: ListChangedAt | undefined
  /** The time for one chain; default 3,000. */
  readonly chainTimeoutMs?: number
}

const CHAIN_TIMEOUT_MS = 3_000

export type Routing = ReturnType<typeof createRouting>

/**
 * Wires the module.
 *
 * @throws RangeError when two routes of this configuration would have one id
 */
export function createRouting(options: RoutingOptions) {
  const { chains, tokens, loadRequest, clock, logger, chainTimeoutMs = CHAIN_TIMEOUT_MS } = options
  const lifi = options.lifi && createLifiClient({ ...options.lifi, clock, logger, fetch })
  // Routes of the first of each kind have the plain ids.
  const providers = [
    createDirectProvider(chains),
    createConversionProvider(chains),
    createSwapV2Provider(chains, tokens),
    createSwapV3Provider(chains),
    ...(lifi === undefined ? [] : [createLifiProvider({ client: lifi, chains, tokens })]),
  ]
  checkRouteIds(tokens.all, new Set(providers.map((provider) => provider.name)))
  const limits = options.limits ?? createNodeLimits(chains.configured, { clock })
  const scanner = createScanner({ chains, tokens, clock, logger, chainTimeoutMs, limits })
  const { objectionTo, listChangedAt } = options
  const planning = { chains, tokens, providers, objectionTo }
  const dependencies = { ...planning, scanner, loadRequest, listChangedAt, clock, chainTimeoutMs }
  return {
    findRoutes: createFindRoutes(dependencies),
    streamRoutes: createStreamRoutes(dependencies),
    findOptions: createFindOptions(dependencies),
    currencies: listCurrencies(chains, tokens),
    preparePayment: createPreparePayment(dependencies),
    prepareBatch: createPrepareBatch(dependencies),
    /** Parses a question for routes, as both methods do. @throws WaybillError for input that is not valid */
    checkQuestion: (question: RoutesQuestion) => void readRoutesQuestion(question, dependencies),
    /** As `checkQuestion`, for `preparePayment`. */
    checkPayment: (question: PaymentQuestion) => void readPaymentQuestion(question, dependencies),
    /** As `checkQuestion`, for `prepareBatch`. */
    checkBatch: (question: BatchQuestion) => void readBatchQuestion(question),
    warningsOf: createWarningsOf(dependencies),
    learnNodes: (signal: AbortSignal) => scanner.learnNodes(signal),
    /** undefined without a cross-chain provider. */
    findTransfer: lifi && createFindTransfer(lifi, logger),
  }
}
