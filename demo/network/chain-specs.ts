/**
 * The fixed properties of the demo's four chains, as data.
 */
import type { ChainSpec, TokenSpec } from './deployment.ts'
import type { PoolSpec } from './swap-exchange.ts'

const GWEI = 10n ** 9n
const USD = 10n ** 8n

export type DemoChainName = 'ETHEREUM' | 'POLYGON' | 'ARBITRUM' | 'BSC'

export interface DemoChainSpec extends ChainSpec {
  name: DemoChainName
  chainId: number
  /** wei; set for every block, because on a nearly empty chain it would decay to zero. */
  baseFeePerGas: bigint
  /** wei; the priority fee of the demo's payers. */
  tipPerGas: bigint
  /** A block with so many blocks on top is final. */
  finalityDepth: number
  /** The part of the merchant's payments that are on this chain; 1 together. */
  tradeShare: number
}

/** A feed's price is stale after this time. */
export const FEED_HEARTBEAT_SEC = 3_600
/** The clock mines an empty block after this time, and a block within a second when transactions wait. */
export const IDLE_BLOCK_SEC = 10
/** The average: payments are minutes apart. */
export const USUAL_BLOCK_SEC = 10
/**
 * A hard kill loses the blocks since the last save. The clock allows at most this number, which is smaller than every chain's finality
 * depth, so that a final block is never lost.
 */
export const MAX_UNSAVED_BLOCKS = 5
/** Deeper than what a kill can lose, and final in about a minute. */
const QUICK_FINALITY = MAX_UNSAVED_BLOCKS + 1
/** One chain is slow, as in reality: about 20 minutes. */
const SLOW = { finalityDepth: 120 }

/** @param decimals - of Circle's and Tether's dollars on the real chain */
function stablecoins(decimals: number): readonly TokenSpec[] {
  return [
    { symbol: 'USDC', name: 'USD Coin', decimals, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'USDT', name: 'Tether USD', decimals, behaviour: 'TETHER', usdPrice: USD },
    { symbol: 'DAI', name: 'Dai Stablecoin', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
  ]
}

/** The token in both pools. */
export const POOL_TOKEN_BETWEEN = 'USDC'
/** A deep and a shallow pool, the same on every chain: a payment hardly moves the price in one, and by percents in the other. */
const POOLS: readonly PoolSpec[] = [
  { tokens: ['DAI', POOL_TOKEN_BETWEEN], each: 5_000_000n },
  { tokens: ['USDT', POOL_TOKEN_BETWEEN], each: 20_000n },
]

/** Private, so that a signature for a demo chain is not valid on a real one; fixed. */
const FIRST_CHAIN_ID = 31_337_001
const ETH = { symbol: 'ETH', usdPrice: 3_000n * USD }
const POL = { symbol: 'POL', usdPrice: USD / 2n }
const BNB = { symbol: 'BNB', usdPrice: 600n * USD }
const USUAL = { tokens: stablecoins(6), pools: POOLS, finalityDepth: QUICK_FINALITY }
const EIGHTEEN = { tokens: stablecoins(18) }

type OwnSpec = Omit<DemoChainSpec, keyof typeof USUAL | 'chainId' | 'addressSeed'> & Partial<DemoChainSpec>

const CHAINS: readonly OwnSpec[] = [
  { name: 'ETHEREUM', native: ETH, baseFeePerGas: 8n * GWEI, tipPerGas: GWEI / 2n, tradeShare: 0.24 },
  { name: 'POLYGON', native: POL, baseFeePerGas: 40n * GWEI, tipPerGas: 30n * GWEI, tradeShare: 0.36, ...SLOW },
  { name: 'ARBITRUM', native: ETH, baseFeePerGas: GWEI / 50n, tipPerGas: 0n, tradeShare: 0.2 },
  { name: 'BSC', native: BNB, baseFeePerGas: GWEI / 10n, tipPerGas: GWEI / 20n, tradeShare: 0.2, ...EIGHTEEN },
]

export const DEMO_CHAINS: readonly DemoChainSpec[] = CHAINS.map((own, place) => ({
  ...USUAL,
  chainId: FIRST_CHAIN_ID + place,
  addressSeed: place + 1,
  ...own,
}))
