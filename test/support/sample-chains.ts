import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Address } from '../../src/domain/address.ts'

/** Two chains for tests that never call a node: BASE (USDC, USDT, DAI) and POLYGON (USDC, USDC.e). */
const sampleChains: readonly ChainConfig[] = [
  sampleChain('BASE', 8453, 'ETH', [
    { symbol: 'USDC', address: addressOf(0x11), decimals: 6, pegUsd: '1' },
    { symbol: 'USDT', address: addressOf(0x12), decimals: 6, pegUsd: '1', approveReset: true },
    { symbol: 'DAI', address: addressOf(0x13), decimals: 18, pegUsd: '1' },
  ]),
  sampleChain('POLYGON', 137, 'POL', [
    { symbol: 'USDC', address: addressOf(0x21), decimals: 6, pegUsd: '1' },
    { symbol: 'USDC.e', address: addressOf(0x22), decimals: 6, pegUsd: '1', bridged: true },
  ]),
]

export const sampleChainDirectory = createChainDirectory(sampleChains)
export const sampleTokenDirectory = createTokenDirectory(sampleChains)

/** An address whose last byte is `n`. */
export function addressOf(n: number): Address {
  return `0x${n.toString(16).padStart(40, '0')}` as Address
}

function sampleChain(name: string, chainId: number, symbol: string, tokens: ChainConfig['tokens']): ChainConfig {
  return {
    name,
    chainId,
    rpcUrls: ['http://127.0.0.1:1'],
    multicall: addressOf(0x99),
    native: { symbol, decimals: 18, pegUsd: '3000' },
    tokens,
    contracts: [],
    finality: { useFinalizedTag: false, depth: 5 },
    blockTimeSeconds: 2,
  }
}
