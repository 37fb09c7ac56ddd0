import type { Address } from './address.ts'

/**
 * The chains that a process serves, as the chains file (or the demo) gives them. Parsed and checked once at start; addresses
 * are canonical, names in upper case.
 */
export interface ChainConfig {
  /** Canonical name: `BASE`. Upper-case letters, digits and `_`. */
  readonly name: string
  /** EIP-155 number. */
  readonly chainId: number
  /** JSON-RPC over HTTP, in order of preference. At least one. */
  readonly rpcUrls: readonly string[]
  /** The Multicall3 contract. */
  readonly multicall: Address
  readonly native: NativeCoinConfig
  readonly tokens: readonly TokenConfig[]
  readonly contracts: readonly PaymentContractConfig[]
  /** Contracts that pay with what somebody else gave them; who gave it is the payer. */
  readonly intermediaries?: readonly Address[]
  readonly finality: FinalityConfig
  /** The usual time between blocks, in seconds; decides the estimated duration of a payment. */
  readonly blockTimeSeconds: number
}

/** How a token's price in US dollars is known. Without either there is none. */
interface PriceConfig {
  /** A Chainlink-shaped feed on the same chain that answers US dollars a unit. */
  readonly usdFeed?: Address
  /** The feed's longest time between rounds, in seconds; older answers are stale. Goes with `usdFeed`. */
  readonly heartbeatSeconds?: number
  /** A fixed price in US dollars, a decimal string. */
  readonly pegUsd?: string
}

export interface NativeCoinConfig extends PriceConfig {
  readonly symbol: string
  readonly decimals: number
}

export interface TokenConfig extends PriceConfig {
  /** As written by its issuer: `USDC`, `USDC.e`. */
  readonly symbol: string
  readonly address: Address
  readonly decimals: number
  /** A bridged copy of a token that also exists natively. */
  readonly bridged?: boolean
  /** Demands that an allowance be set to 0 before it changes, as USDT on Ethereum does. */
  readonly approveReset?: boolean
}

/** The payment contracts whose events are followed. */
export type PaymentContractKind =
  | 'ERC20_FEE_PROXY'
  | 'ETHEREUM_FEE_PROXY'
  | 'ERC20_CONVERSION_PROXY'
  | 'ETH_CONVERSION_PROXY'

export interface PaymentContractConfig {
  readonly kind: PaymentContractKind
  /** As published: `0.2.0`. */
  readonly version: string
  readonly address: Address
  /** The block of its creation; its events are read from there on. */
  readonly fromBlock: number
}

export interface FinalityConfig {
  /** Ask the node for its `finalized` block; where it has none, `depth` counts. */
  readonly useFinalizedTag: boolean
  /** Blocks on top of a block that make it final. */
  readonly depth: number
}
