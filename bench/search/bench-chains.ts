import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Address } from '../../src/domain/address.ts'
import { CHAIN_IDS, CONFIGURED_SYMBOLS, NATIVES, NETWORKS } from './generate-payments.ts'

const addressOf = (n: number) => `0x${n.toString(16).padStart(40, 'c')}` as Address

/** The chains of the generated payments, configured as for a service that follows them all. */
const configs = NETWORKS.map(
  (name, chain): ChainConfig => ({
    name,
    chainId: CHAIN_IDS[chain] ?? 0,
    rpcUrls: ['http://127.0.0.1:1'],
    multicall: addressOf(1),
    native: { symbol: NATIVES[chain] ?? '', decimals: 18 },
    tokens: CONFIGURED_SYMBOLS.filter((symbol) => symbol !== NATIVES[chain]).map((symbol, at) => ({
      symbol,
      address: addressOf(100 + at),
      decimals: 18,
    })),
    contracts: [],
    finality: { useFinalizedTag: false, depth: 64 },
    blockTimeSeconds: 2,
  }),
)

export const benchChains = createChainDirectory(configs)
export const benchTokens = createTokenDirectory(configs)
