import type { ContractCall } from '@lifi/types'
import type { ChainDirectory } from '../../../chains/chain-directory.ts'
import type { ChainConfig } from '../../../chains/chains-file.ts'
import type { TokenDirectory } from '../../../chains/token-directory.ts'
import { readAllowance } from '../../../contracts/contract-reads.ts'
import { uintAt } from '../../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../../domain/address.ts'
import { type Erc20, isErc20, type Token } from '../../../domain/currency.ts'
import {
  compareDecimals,
  type Decimal,
  divideDecimals,
  formatAmount,
  formatDecimal,
  MAX_DECIMAL_PLACES,
  rescale,
} from '../../../domain/decimal.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { erc20PaymentGas } from '../../gas/gas.ts'
import type { Step } from '../../gas/steps.ts'
import { approvalSteps } from '../../plans/approval.ts'
import { findContract, secondsOfBlocks, usedOn } from '../../plans/configured-contract.ts'
import { type Charged, chargedFor, directTerms, erc20Payment, platformCosts } from '../../plans/fee-proxy.ts'
import type { Plan, Provider, Quote, QuoteContext } from '../../plans/provider.ts'
import type { Payment } from '../../question/parse-question.ts'
import { lackOf, warn } from '../../quotes/assemble-route.ts'
import { explainFailure, explainRejection, explainTooSmall, type LifiClient } from './lifi-client.ts'
import { checkLoss, costOfBridging, priceImpactOf, usdOf } from './lifi-costs.ts'
import { type LifiPins, type LifiQuestion, RejectedQuoteError } from './lifi-question.ts'
import { type LifiQuote, readLifiQuote } from './lifi-quote.ts'
import { createSelection, type Selection } from './select-best.ts'

interface LifiProviderOptions {
  /** LI.FI, or a service with its API; the provider takes its name. */
  readonly client: LifiClient
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
}

/** LI.FI's keys of the bridges whose calldata is understood. */
const ALLOWED_BRIDGES = ['across']

/** No swaps before the bridge: their calldata cannot be checked, so quotes with one would be rejected. */
const ALLOWED_EXCHANGES = ['none']

/** Quotes in one API call. Few wallets hold more tokens that are worth a quote. */
const MAX_ASKED = 8

/** The same before a wallet is known: many look at a page who do not pay. */
const MAX_ESTIMATED = 3

/** How long the choice among more candidates than that waits for the balances of slow chains. */
const PATIENCE_MS = 300

/** Bridges take only amounts above this. */
const ONE_DOLLAR: Decimal = { units: 1n, places: 0 }

/** How long a quote holds: about as long as bridges hold theirs. */
const QUOTE_LIFETIME_MS = 30_000

/** A quote never takes less than this percentage of the market's worth, so a balance below it is not worth a question. */
const MIN_PERCENT = 95n

/**
 * Pays from another chain by a quote that ends in a call: the bridge delivers amount and platform fee, and the fee proxy of the destination
 * chain is called with the request's reference. If that call fails, the delivered tokens go to the payer's wallet on that chain.
 *
 * @see https://docs.li.fi, `POST /v1/quote/contractCalls`
 */
export function createLifiProvider(options: LifiProviderOptions): Provider {
  const { chains } = options
  const { name } = options.client
  // Each API call plans a payment object of its own.
  const selections = new WeakMap<Payment, Selection>()

  function selectionFor(payment: Payment): Selection {
    const places = payment.isEstimate ? MAX_ESTIMATED : MAX_ASKED
    const selection = selections.get(payment) ?? createSelection({ places, patienceMs: PATIENCE_MS })
    selections.set(payment, selection)
    return selection
  }

  return {
    name,
    kind: 'CROSSCHAIN',
    plan({ source, destination }, payment) {
      const [chain, far] = [chains.config(source.chain), chains.config(destination.chain)]
      if (chain === undefined || far === undefined) return undefined
      const bridged = [source, destination].find((token) => token.bridged)
      if (bridged !== undefined) {
        const { symbol: token, chain: place } = bridged
        return explain('CROSSCHAIN_BRIDGED_TOKEN', { provider: name, token, chain: place, ...directTerms(payment) })
      }
      if (!isErc20(destination)) {
        const { symbol: coin } = destination
        return explain('CROSSCHAIN_DELIVERS_TOKENS', { provider: name, coin, ...directTerms(payment) })
      }
      const found = findContract(chains, destination, 'ERC20_FEE_PROXY')
      if ('reason' in found) return found
      const { contract: proxy } = found
      const pins = pinsOf(chain, far)
      if (pins === undefined) {
        const unpinned = chain.lifi === undefined ? chain : far
        return explain('CROSSCHAIN_NOT_PINNED', { provider: name, chain: unpinned.name })
      }
      return planBridging(options, {
        chain,
        payment,
        question: questionOf(chain, far, payment, proxy, { source, destination, pins }),
        contender: selectionFor(payment).expect(),
      })
    },
  }
}

/** A payment from another chain that the configuration allows. */
interface Bridging {
  /** The source chain. */
  readonly chain: ChainConfig
  readonly payment: Payment
  readonly question: LifiQuestion
  readonly contender: ReturnType<Selection['expect']>
}

function pinsOf({ lifi: near }: ChainConfig, { lifi: far }: ChainConfig): LifiPins | undefined {
  if (near === undefined || far === undefined) return undefined
  return { diamond: near.diamond, feeContracts: near.feeContracts ?? [], receiver: far.receiverAcrossV4 }
}

function planBridging(options: LifiProviderOptions, bridging: Bridging): Plan {
  const { payment, question, contender } = bridging
  const { source, destination, pins } = question
  const reads = isErc20(source) ? [readAllowance(source.address, payment.wallet, pins.diamond)] : []
  return {
    contracts: [
      ...usedOn(source.chain, source.address, pins.diamond),
      ...usedOn(destination.chain, destination.address, question.call.toContractAddress as Address, pins.receiver),
    ],
    reads,
    readsOfDestination: [],
    async quote(state, context) {
      const balance = state.balanceOf(source) ?? 0n
      const worth = judgeWorth(options.client.name, bridging, balance, context)
      if (typeof worth !== 'bigint') {
        contender.withdraw()
        return worth
      }
      if (!(await contender.enter(worth))) {
        const { symbol: token, chain } = source
        return explain('CROSSCHAIN_NOT_ASKED', { provider: options.client.name, most: MAX_ASKED, token, chain })
      }
      const fresh = payment.isFinalQuote === true
      const answer = await options.client.quote(question.request, { signal: context.signal, fresh })
      if (!answer.ok) return explainFailure(options.client, question, answer.failure)
      try {
        const quote = readLifiQuote(answer.body, question, Math.floor(answer.atMs / 1_000))
        const [allowance] = reads.map((read) => state.answerTo(read))
        const approvals = approvalsFor(source, quote, uintAt(allowance, 0))
        return {
          ...assembleQuote(options, bridging, quote, approvals, context.priceOf),
          expiresAtMs: answer.atMs + QUOTE_LIFETIME_MS,
        }
      } catch (error) {
        if (!(error instanceof RejectedQuoteError)) throw error
        return explainRejection(options.client, error)
      }
    },
  }
}

/**
 * Asks for exactly the amount that the call pays out; the bridge has to guarantee that it arrives.
 *
 * @param proxy - the fee proxy of the far end
 */
function questionOf(
  chain: ChainConfig,
  far: ChainConfig,
  payment: Payment,
  proxy: Address,
  { source, destination, pins }: Pick<LifiQuestion, 'source' | 'pins'> & { readonly destination: Erc20 },
): LifiQuestion {
  const charged = chargedFor(payment)
  const { data } = erc20Payment(proxy, destination.address, payment, charged)
  const call: ContractCall = {
    fromAmount: charged.total.toString(),
    fromTokenAddress: destination.address,
    toContractAddress: proxy,
    toContractCallData: data,
    toContractGasLimit: gasOfCall(charged).toString(),
    toApprovalAddress: proxy,
  }
  const request = {
    fromChain: chain.chainId,
    fromToken: source.address ?? ZERO_ADDRESS,
    fromAddress: payment.wallet,
    toChain: far.chainId,
    toToken: destination.address,
    toAmount: charged.total.toString(),
    toFallbackAddress: payment.wallet,
    contractCalls: [call],
    slippage: formatDecimal(payment.limit.slippage),
    allowBridges: ALLOWED_BRIDGES,
    allowExchanges: ALLOWED_EXCHANGES,
  }
  return { request, call, source, destination, pins }
}

/** One and a half times the most gas that the call may take: the destination's balances are not known. */
function gasOfCall({ fee = 0n }: Charged): bigint {
  const most = erc20PaymentGas({
    payeeIsNew: true,
    feeReceiver: fee > 0n ? 'NEW' : undefined,
    clearsAllowance: false,
    clearsBalance: false,
  })
  return (most * 3n) / 2n
}

/**
 * Decides by prices and balance alone whether a question is worth it.
 *
 * @returns the wallet's balance of the token, in 10^-18 US dollars
 */
function judgeWorth(
  provider: string,
  { question, payment }: Bridging,
  balance: bigint,
  { priceOf }: QuoteContext,
): bigint | Explanation {
  const { source, destination } = question
  const [price, priceOfPayment] = [priceOf(source), priceOf(destination)]
  if (price === undefined) return explainNoPrice(source)
  if (priceOfPayment === undefined) return explainNoPrice(destination)
  const due = usdOf(chargedFor(payment).total, destination, priceOfPayment)
  if (compareDecimals(due, ONE_DOLLAR) <= 0) {
    return explainTooSmall(provider, question, `$${formatDecimal(rescale(due, 6))} is not more than $1`)
  }
  const need = divideDecimals(due, price.usd, source.decimals).units
  if (balance * 100n < need * MIN_PERCENT) {
    return explain('CROSSCHAIN_BALANCE_TOO_LOW', lackOf(source, balance, need))
  }
  return rescale(usdOf(balance, source, price), MAX_DECIMAL_PLACES).units
}

function explainNoPrice({ symbol, chain, usdFeed }: Token): Explanation {
  return explain(usdFeed === undefined ? 'NO_PRICE' : 'PRICE_STALE', { token: symbol, chain })
}

/** An unknown allowance counts as 0; for tokens whose allowance must be reset, as one that has to be. */
function approvalsFor(source: Token, quote: LifiQuote, allowance: bigint | undefined): Step[] {
  const { approvalAddress: spender, fromAmount: need } = quote
  if (!isErc20(source) || spender === undefined) return []
  const approveReset = source.approveReset || quote.approvalReset
  const token = { ...source, approveReset }
  return approvalSteps({ token, spender, allowance: allowance ?? (approveReset ? 1n : 0n), need })
}

/** @throws RejectedQuoteError where the price cannot be right, or too much is lost */
function assembleQuote(
  options: LifiProviderOptions,
  { chain, payment, question }: Bridging,
  quote: LifiQuote,
  approvals: readonly Step[],
  priceOf: QuoteContext['priceOf'],
): Quote {
  const { destination } = question
  const charged = chargedFor(payment)
  const known = { provider: options.client.name, ...options, priceOf }
  checkLoss(question, quote, known, options.client.lossCap)
  const cost = costOfBridging(question, quote, known)
  const { gasLimit, ...transaction } = quote.transaction
  const surplus = quote.toAmount - charged.total
  const { symbol: token, chain: place, decimals } = destination
  const warning = warn('CROSSCHAIN_SURPLUS', { amount: formatAmount(surplus, decimals), token, chain: place })
  return {
    sourceAmount: quote.fromAmount,
    maxPulled: quote.fromAmount,
    received: charged.amount,
    costs: [...platformCosts(charged.fee, destination, 'RECEIVING'), ...cost.costs],
    priceImpact: priceImpactOf(cost.lossUsd, usdOf(charged.amount, destination, priceOf(destination))),
    steps: [...approvals, { kind: 'PAY', gasLimit, transaction: () => transaction }],
    durationSeconds: quote.durationSeconds + (approvals.length === 0 ? 0 : secondsOfBlocks(chain, approvals.length)),
    atomic: false,
    warnings: surplus === 0n ? [] : [warning],
  }
}
