/**
 * The four chains of the demo: what is fixed about them, as data.
 */
import type { ChainSpec, TokenSpec } from './deployment.ts'
import type { PoolSpec } from './swap-exchange.ts'

const GWEI = 10n ** 9n
const USD = 10n ** 8n

export const DEMO_CHAIN_NAMES = ['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC'] as const
export type DemoChainName = (typeof DEMO_CHAIN_NAMES)[number]

export interface DemoChainSpec extends ChainSpec {
  name: DemoChainName
  /** Private and fixed: no wallet that signs for a demo chain signs for a real one. */
  chainId: number
  /** wei; set for every block, since left alone it decays to nothing on a chain that is nearly empty. */
  baseFeePerGas: bigint
  /** wei; what the demo's payers offer the miner. */
  tipPerGas: bigint
  /** Blocks on top of a block that make it final. */
  finalityDepth: number
}

/** How far a feed may fall behind before its price is stale. */
export const FEED_HEARTBEAT_SEC = 3_600
/** The clock mines an empty block after this time, and a block at once (within a second) when transactions wait. */
export const IDLE_BLOCK_SEC = 10
/** What the two come to while the live payer pays: it comes by every twenty seconds, and between lies an empty block. */
export const USUAL_BLOCK_SEC = 10
/**
 * A hard kill of everything loses the blocks since the last save, and the clock lets them be no more than this: every
 * chain's finality is deeper, so that a final block is never lost.
 */
export const MOST_UNSAVED_BLOCKS = 5
/** Deep enough for that, and final in about a minute. */
const QUICK_FINALITY = MOST_UNSAVED_BLOCKS + 1
/**
 * As in life, one chain takes long: about 20 minutes. The request that is covered by a pending payment lives there, and
 * so it stays pending for as long.
 */
const SLOW_FINALITY = 120

/** @returns the stablecoins with the decimals that they have on a chain in life */
function stablecoins(decimals: { usdc: number; usdt: number }): readonly TokenSpec[] {
  return [
    { symbol: 'USDC', name: 'USD Coin', decimals: decimals.usdc, behaviour: 'PLAIN', usdPrice: USD },
    { symbol: 'USDT', name: 'Tether USD', decimals: decimals.usdt, behaviour: 'TETHER', usdPrice: USD },
    { symbol: 'DAI', name: 'Dai Stablecoin', decimals: 18, behaviour: 'PLAIN', usdPrice: USD },
  ]
}

/** The token that both pools have. */
export const POOL_TOKEN_BETWEEN = 'USDC'
/** The same on every chain: what a payment moves by a hair in one moves the other by percents. */
const POOLS: readonly PoolSpec[] = [
  { tokens: ['DAI', POOL_TOKEN_BETWEEN], each: 5_000_000n },
  { tokens: ['USDT', POOL_TOKEN_BETWEEN], each: 20_000n },
]

export const DEMO_CHAINS: readonly DemoChainSpec[] = [
  {
    name: 'ETHEREUM',
    chainId: 31_337_001,
    native: { symbol: 'ETH', usdPrice: 3_000n * USD },
    tokens: stablecoins({ usdc: 6, usdt: 6 }),
    pools: POOLS,
    addressSeed: 1,
    baseFeePerGas: 8n * GWEI,
    tipPerGas: GWEI / 2n,
    finalityDepth: QUICK_FINALITY,
  },
  {
    name: 'POLYGON',
    chainId: 31_337_002,
    native: { symbol: 'POL', usdPrice: USD / 2n },
    tokens: stablecoins({ usdc: 6, usdt: 6 }),
    pools: POOLS,
    addressSeed: 2,
    baseFeePerGas: 40n * GWEI,
    tipPerGas: 30n * GWEI,
    finalityDepth: SLOW_FINALITY,
  },
  {
    name: 'ARBITRUM',
    chainId: 31_337_003,
    native: { symbol: 'ETH', usdPrice: 3_000n * USD },
    tokens: stablecoins({ usdc: 6, usdt: 6 }),
    pools: POOLS,
    addressSeed: 3,
    baseFeePerGas: GWEI / 50n,
    tipPerGas: 0n,
    finalityDepth: QUICK_FINALITY,
  },
  {
    name: 'BSC',
    chainId: 31_337_004,
    native: { symbol: 'BNB', usdPrice: 600n * USD },
    tokens: stablecoins({ usdc: 18, usdt: 18 }),
    pools: POOLS,
    addressSeed: 4,
    baseFeePerGas: GWEI / 10n,
    tipPerGas: GWEI / 20n,
    finalityDepth: QUICK_FINALITY,
  },
]
