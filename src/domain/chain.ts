import type { AddressFamily } from './address.ts'

/** A chain of the built-in table. */
interface KnownChain {
  /** Canonical name: `POLYGON`. */
  readonly name: string
  /** CAIP-2: `eip155:137`. */
  readonly chainId: string
  readonly family: AddressFamily
  /** Other usual names, in lower case. */
  readonly aliases: readonly string[]
}

/** @see https://chainlist.org for the numbers, https://chainagnostic.org/CAIPs/caip-2 for the form */
export const knownChains: readonly KnownChain[] = [
  chain('ETHEREUM', 1, ['mainnet', 'eth', 'ethereum-mainnet', 'homestead']),
  chain('OPTIMISM', 10, ['op', 'op-mainnet', 'optimism-mainnet']),
  chain('BSC', 56, ['bnb', 'bnb-chain', 'bnb-smart-chain', 'binance', 'binance-smart-chain']),
  chain('GNOSIS', 100, ['xdai', 'gnosis-chain']),
  chain('POLYGON', 137, ['matic', 'polygon-pos', 'polygon-mainnet']),
  chain('FANTOM', 250, ['ftm']),
  chain('ZKSYNC', 324, ['zksync-era', 'zksyncera']),
  chain('MOONBEAM', 1284, []),
  chain('MANTLE', 5000, []),
  chain('BASE', 8453, ['base-mainnet']),
  chain('ARBITRUM', 42161, ['arbitrum-one', 'arb', 'arb1', 'arbitrum-mainnet']),
  chain('CELO', 42220, []),
  chain('AVALANCHE', 43114, ['avax', 'avalanche-c-chain']),
  chain('LINEA', 59144, []),
  chain('SCROLL', 534352, []),
  chain('SEPOLIA', 11155111, ['ethereum-sepolia']),
  { name: 'TRON', chainId: 'tron:0x2b6653dc', family: 'TRON', aliases: ['trx', 'tron-mainnet'] },
]

function chain(name: string, number: number, aliases: readonly string[]): KnownChain {
  return { name, chainId: `eip155:${number}`, family: 'EVM', aliases }
}

const tronNames: ReadonlySet<string> = new Set(
  knownChains.filter(({ family }) => family === 'TRON').map(({ name }) => name),
)

/** Writes a transaction hash as its chain does: Tron has no `0x`. */
export function formatTxHash(network: string, hash: string): string {
  return tronNames.has(network) ? hash.replace(/^0x/, '') : hash
}

const CANONICAL_NAME = /^[A-Z][A-Z0-9_]{0,63}$/

/** The CAIP-2 form of an EIP-155 number. */
export function caip2Of(eip155Number: number): string {
  return `eip155:${eip155Number}`
}

/** The canonical form of a chain's name: `arbitrum-one` → `ARBITRUM_ONE`; undefined when the text cannot be a name. */
export function canonicalChainName(text: string): string | undefined {
  const name = text.trim().toUpperCase().replace(/[\s-]/g, '_')
  return CANONICAL_NAME.test(name) ? name : undefined
}

/** Consecutive blocks. */
export interface BlockRun {
  readonly from: number
  readonly to: number
}

/** Adds blocks to runs. @param blocks - each above all blocks of the runs and above the one before @returns new runs, lowest first */
export function withBlocks(runs: readonly BlockRun[], blocks: readonly number[]): BlockRun[] {
  const joined = [...runs]
  for (const block of blocks) {
    const last = joined.at(-1)
    if (last?.to === block - 1) joined[joined.length - 1] = { from: last.from, to: block }
    else joined.push({ from: block, to: block })
  }
  return joined
}

/** `block 7`, `blocks 7 to 9`. */
export function describeRun({ from, to }: BlockRun): string {
  return from === to ? `block ${from}` : `blocks ${from} to ${to}`
}
