import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'

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
  /** How many HTTP requests a second routes may send to each URL; as many as it takes unless given. */
  readonly requestsPerSecond?: number
  /** The Multicall3 contract. */
  readonly multicall: Address
  readonly native: NativeCoinConfig
  readonly tokens: readonly TokenConfig[]
  readonly contracts: readonly PaymentContractConfig[]
  /** Contracts that pass on the token or coins that somebody else gave them; who gave it is the payer. */
  readonly intermediaries?: readonly Address[]
  /** Contracts that sell the token that somebody else gave them and pay with what they bought. ERC20_SWAP_TO_PAY is one without being named. */
  readonly swapIntermediaries?: readonly Address[]
  /** Contracts through which bridges pay on this chain: a payment that they call is CROSSCHAIN. */
  readonly executors?: readonly Address[]
  /** Without it nothing is carried from or to this chain. */
  readonly lifi?: LifiConfig
  readonly conversion?: ConversionConfig
  readonly swapV2?: SwapV2Config
  readonly swapV3?: SwapV3Config
  /** Takes a fee for publishing transactions on the chain below, and how that is asked for. */
  readonly l1Fee?: L1FeeKind
  readonly finality: FinalityConfig
  /** The usual time between blocks, in seconds; decides the estimated duration of a payment. */
  readonly blockTimeSeconds: number
}

/** Rollups that charge by the size of a transaction: of the OP stack, and Arbitrum. */
export type L1FeeKind = 'OP_STACK' | 'ARBITRUM'

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

/**
 * The payment contracts. All but ERC20_SWAP_TO_PAY, which pays through the fee proxy, have events of their own; those of the factory tell which
 * SingleRequestProxies it made.
 */
export type PaymentContractKind =
  | 'ERC20_FEE_PROXY'
  | 'ETHEREUM_FEE_PROXY'
  | 'ERC20_CONVERSION_PROXY'
  | 'ETH_CONVERSION_PROXY'
  | 'ERC20_SWAP_TO_PAY'
  | 'SINGLE_REQUEST_PROXY_FACTORY'

export interface PaymentContractConfig {
  readonly kind: PaymentContractKind
  /** As published: `0.2.0`. */
  readonly version: string
  readonly address: Address
  /** The block of its creation; its events are read from there on. */
  readonly fromBlock: number
}

/**
 * LI.FI's contracts on a chain, or those of another provider that speaks its forms. What such a provider quotes may call, allow and deliver
 * to these alone.
 */
export interface LifiConfig {
  /** LiFiDiamond: wallets call it, and it pulls the source token. */
  readonly diamond: Address
  /** FeeForwarder and FeeCollector: the diamond pays LI.FI's fee to them before it bridges. */
  readonly feeContracts?: readonly Address[]
  /** ReceiverAcrossV4: Across delivers to it on this chain. */
  readonly receiverAcrossV4: Address
  /** Executor: the receiver has it make the call that pays. One of the chain's `executors` too. */
  readonly executor?: Address
  /** Across's SpokePool: alone may give the receiver something to do. */
  readonly spokePool?: Address
}

/** How amounts in fiat currencies become amounts of tokens. */
export interface ConversionConfig {
  /** Request's ChainlinkConversionPath. */
  readonly path: Address
  readonly paths: readonly ConversionPath[]
}

/** One way from a fiat currency to a token, through price feeds that the contract knows. */
export interface ConversionPath {
  /** ISO 4217 code. */
  readonly from: string
  /** Symbol of a token of the chain, or of its native coin. */
  readonly token: string
  /** What stands between the two: ISO 4217 codes or addresses. */
  readonly via: readonly string[]
  /** The longest time between rounds of any feed on the way, in seconds. */
  readonly heartbeatSeconds: number
}

/** A Uniswap-v2-shaped exchange. Payments through it need ERC20_SWAP_TO_PAY among the contracts. */
export interface SwapV2Config {
  readonly router: Address
  readonly factory: Address
  /** keccak256 of the creation code of its pairs, which their addresses follow from. */
  readonly pairCodeHash: Hex
  /** What a pool keeps of what goes in, in hundredths of a percent. */
  readonly feeBps: number
  /** Symbols of tokens that a swap may go through, beside straight ones. */
  readonly through: readonly string[]
}

/** A Uniswap-v3-shaped exchange. */
export interface SwapV3Config {
  readonly factory: Address
  /** QuoterV2. */
  readonly quoter: Address
  /** SwapRouter02. */
  readonly router: Address
  /** keccak256 of the creation code of its pools, which their addresses follow from. */
  readonly poolCodeHash: Hex
  /** Fee tiers to look at, in millionths. */
  readonly fees: readonly number[]
}

export interface FinalityConfig {
  /** Ask the node for its `finalized` block; where it has none, `depth` counts. */
  readonly useFinalizedTag: boolean
  /** Blocks on top of a block that make it final. */
  readonly depth: number
}

/** The contracts whose events are followed: one that swaps and then pays does so through the fee proxy. */
export function followedContracts({ contracts }: Pick<ChainConfig, 'contracts'>): readonly PaymentContractConfig[] {
  return contracts.filter(({ kind }) => kind !== 'ERC20_SWAP_TO_PAY')
}
