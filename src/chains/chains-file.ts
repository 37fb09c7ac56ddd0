import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import type { Explorer } from './explorer.ts'
import type { L1Fee } from './l1-fee.ts'

/** A chain that a process serves, from the chains file or the demo. It is parsed and checked once at start; addresses are canonical. */
export interface ChainConfig {
  /** Canonical name: `BASE`. Upper-case letters, digits and `_`. */
  readonly name: string
  /** EIP-155 number. */
  readonly chainId: number
  /** JSON-RPC over HTTP, in order of preference; at least one. */
  readonly rpcUrls: readonly string[]
  /** The most HTTP requests to each URL in a second; learned from the node's refusals when absent. */
  readonly requestsPerSecond?: number
  /** The most HTTP requests to each URL in a day (UTC), of all processes that share the database; unlimited when absent. */
  readonly requestsPerDay?: number
  /** What the file states of single URLs, by URL; it goes before what it states for the chain. */
  readonly nodeLimits?: Readonly<Record<string, NodeLimitsConfig>>
  /** The Multicall3 contract. */
  readonly multicall: Address
  readonly native: NativeCoinConfig
  readonly tokens: readonly TokenConfig[]
  readonly contracts: readonly PaymentContractConfig[]
  /** Contracts that pay with the token or coins that somebody gave them. The giver is the payer. Batches among `contracts` need not be listed. */
  readonly intermediaries?: readonly Address[] | undefined
  /** Contracts that sell the token that somebody gave them and pay with what they bought. ERC20_SWAP_TO_PAY need not be listed. */
  readonly swapIntermediaries?: readonly Address[] | undefined
  /** Contracts through which bridges pay on this chain. A payment that one of them calls is CROSSCHAIN. */
  readonly executors?: readonly Address[] | undefined
  /** Absent: no cross-chain routes from or to this chain. */
  readonly lifi?: LifiConfig | undefined
  readonly conversion?: ConversionConfig | undefined
  readonly swapV2?: SwapV2Config | undefined
  readonly swapV3?: SwapV3Config | undefined
  /** Absent: nobody is asked about wallets on this chain. */
  readonly screening?: ScreeningConfig | undefined
  /** Present where the chain charges for publishing transactions on its parent chain. */
  readonly l1Fee?: L1Fee | undefined
  /** The first block that is read. Absent: as `since` says. */
  readonly startBlock?: number | undefined
  /** The first block at or after this time is the first that is read. Absent, as `startBlock`: a day before the oldest request. */
  readonly since?: Date | undefined
  /** One in so many ranges and runs of blocks is compared with a second node; 0: none. Absent: 50. */
  readonly sampleLogs?: number | undefined
  /** Absent: answers have no links for this chain. */
  readonly explorer?: Explorer | undefined
  readonly finality: FinalityConfig
  /** The usual time between blocks. The estimated duration of a payment follows from it. */
  readonly blockTimeSeconds: number
}

/** Limits of one URL. What is absent is learned, or as the chain says. */
export interface NodeLimitsConfig {
  readonly requestsPerSecond?: number
  readonly requestsPerDay?: number
  /** The most blocks in one call for logs. */
  readonly maxLogRange?: number
  /** The most calls in one HTTP request; 1 for a node that takes no batches. */
  readonly maxBatch?: number
  /** Whether calls carry the header `traceparent` of the call that they serve. */
  readonly traceparent?: boolean
}

/** Where a token's price in US dollars comes from: a feed or a fixed price. Without both it has none. */
interface PriceConfig {
  /** A feed on the same chain with Chainlink's interface. It answers US dollars for one unit. */
  readonly usdFeed?: Address | undefined
  /** The feed's longest time between rounds. An older answer is stale. Given with `usdFeed`. */
  readonly heartbeatSeconds?: number
  /** A fixed price in US dollars, a decimal string. */
  readonly pegUsd?: string
}

interface NativeCoinConfig extends PriceConfig {
  readonly symbol: string
  readonly decimals: number
  readonly logo?: string
}

export interface TokenConfig extends PriceConfig {
  /** As its issuer writes it: `USDC`, `USDC.e`. */
  readonly symbol: string
  readonly address: Address
  readonly decimals: number
  /** An https address, or a data URI. */
  readonly logo?: string
  /** Whether it is a bridged copy of a token that also exists natively. */
  readonly bridged?: boolean
  /** Whether an allowance has to be set to 0 before it can be changed, as for USDT on Ethereum. */
  readonly approveReset?: boolean
}

/**
 * Kinds of payment contracts. ERC20_SWAP_TO_PAY and the batches have no events of their own, because they pay through the proxies. BATCH_PAYMENTS is
 * BatchPayments and BatchNoConversionPayments. The events of the factory name the SingleRequestProxies that it created.
 */
export type PaymentContractKind =
  | 'ERC20_FEE_PROXY'
  | 'ETHEREUM_FEE_PROXY'
  | 'ERC20_CONVERSION_PROXY'
  | 'ETH_CONVERSION_PROXY'
  | 'ERC20_SWAP_TO_PAY'
  | 'BATCH_PAYMENTS'
  | 'BATCH_CONVERSION_PAYMENTS'
  | 'SINGLE_REQUEST_PROXY_FACTORY'

export interface PaymentContractConfig {
  readonly kind: PaymentContractKind
  /** As published: `0.2.0`. */
  readonly version: string
  readonly address: Address
  /** The block of its creation, from which its events are read. */
  readonly fromBlock: number
}

/**
 * The contracts of LI.FI, or of another provider with LI.FI's API, on a chain. A quote of the provider is refused when it calls, approves or
 * delivers to any other contract.
 */
export interface LifiConfig {
  /** LiFiDiamond. Wallets call it, and it pulls the source token. */
  readonly diamond: Address
  /** FeeForwarder and FeeCollector. The diamond pays LI.FI's fee to them before it bridges. */
  readonly feeContracts?: readonly Address[] | undefined
  /** ReceiverAcrossV4. Across delivers to it on this chain. */
  readonly receiverAcrossV4: Address
  /** Executor. The receiver lets it make the call that pays. It is also one of the chain's `executors`. */
  readonly executor?: Address | undefined
  /** Across's SpokePool. Only it may call the receiver. */
  readonly spokePool?: Address | undefined
}

/** Who says which wallets are sanctioned. */
export interface ScreeningConfig {
  /** A contract with `isSanctioned(address) returns (bool)`, as Chainalysis deploys it. */
  readonly oracle: Address
}

/** How amounts of fiat currencies are converted into amounts of tokens. */
export interface ConversionConfig {
  /** Request's ChainlinkConversionPath. */
  readonly path: Address
  readonly paths: readonly ConversionPath[]
}

/** A conversion of a fiat currency into a token, through price feeds that the contract knows. */
export interface ConversionPath {
  /** ISO 4217 code. */
  readonly from: string
  /** Symbol of a token of the chain, or of its native coin. */
  readonly token: string
  /** The currencies between the two: ISO 4217 codes or addresses. */
  readonly via: readonly string[]
  /** The longest time between rounds of any feed on the path. */
  readonly heartbeatSeconds: number
}

/** An exchange with the interface of Uniswap v2. Payments through it need ERC20_SWAP_TO_PAY among the contracts. */
export interface SwapV2Config {
  readonly router: Address
  readonly factory: Address
  /** keccak256 of the creation code of its pairs, from which their addresses follow. */
  readonly pairCodeHash: Hex
  /** The pool's fee on the amount that goes in. */
  readonly feeBps: number
  /** Symbols of tokens that a swap may go through; direct swaps are always tried. */
  readonly through: readonly string[]
}

/** An exchange with the interface of Uniswap v3. */
export interface SwapV3Config {
  readonly factory: Address
  /** QuoterV2. */
  readonly quoter: Address
  /** SwapRouter02. */
  readonly router: Address
  /** keccak256 of the creation code of its pools, from which their addresses follow. */
  readonly poolCodeHash: Hex
  /** The fee tiers to try, in millionths. */
  readonly fees: readonly number[]
}

export interface FinalityConfig {
  /** Whether to ask the node for its `finalized` block. Where it has none, `depth` counts. */
  readonly useFinalizedTag: boolean
  /** How many blocks on top of a block make it final. */
  readonly depth: number
}

/** Kinds without events of their own. */
const UNFOLLOWED: readonly PaymentContractKind[] = ['ERC20_SWAP_TO_PAY', 'BATCH_PAYMENTS', 'BATCH_CONVERSION_PAYMENTS']

/** The contracts whose events are followed: payment contracts that do not pay through another, and beside them the oracle, whose list changes. */
export function followedContracts({
  contracts,
  screening,
}: Pick<ChainConfig, 'contracts' | 'screening'>): readonly Pick<PaymentContractConfig, 'address' | 'fromBlock'>[] {
  const ofPayments = contracts.filter(({ kind }) => !UNFOLLOWED.includes(kind))
  if (ofPayments.length === 0 || screening === undefined) return ofPayments
  const fromBlock = Math.min(...ofPayments.map((contract) => contract.fromBlock))
  return [...ofPayments, { address: screening.oracle, fromBlock }]
}
