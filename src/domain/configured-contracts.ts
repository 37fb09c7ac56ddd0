import { type Address, ZERO_ADDRESS } from './address.ts'
import type { ChainConfig } from './chains-file.ts'

/**
 * What an address is on one of the chains, where the chains file names it: `the token USDC of BASE`. Nobody owns such an address.
 *
 * @returns undefined for any other address
 */
export function findConfiguredContract(chains: readonly ChainConfig[], address: Address): string | undefined {
  for (const chain of chains) {
    const found = namedContracts(chain).find(([named]) => named === address && named !== ZERO_ADDRESS)
    if (found !== undefined) return `${found[1]} of ${chain.name}`
  }
  return undefined
}

function namedContracts(chain: ChainConfig): readonly (readonly [Address | undefined, string])[] {
  const { conversion, swapV2, swapV3, native } = chain
  return [
    ...chain.tokens.map(({ address, symbol }) => [address, `the token ${symbol}`] as const),
    ...chain.contracts.map(({ address, kind }) => [address, `the contract ${kind}`] as const),
    ...(chain.intermediaries ?? []).map((address) => [address, 'an intermediary'] as const),
    ...(chain.executors ?? []).map((address) => [address, 'a bridge’s executor'] as const),
    [chain.multicall, 'the Multicall3'],
    [conversion?.path, 'the conversion path'],
    [swapV2?.router, 'the router'],
    [swapV2?.factory, 'the factory'],
    [swapV3?.router, 'the router'],
    [swapV3?.factory, 'the factory'],
    [swapV3?.quoter, 'the quoter'],
    ...[native, ...chain.tokens].map(({ usdFeed, symbol }) => [usdFeed, `the feed of ${symbol}`] as const),
  ]
}
