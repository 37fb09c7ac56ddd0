import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Provider } from '../plans/provider.ts'
import { createConversionProvider } from './conversion.ts'
import { createDirectProvider } from './direct.ts'
import { createLifiProvider } from './lifi/lifi.ts'
import type { LifiClient } from './lifi/lifi-client.ts'
import { createSwapV2Provider } from './swap/swap-v2.ts'
import { createSwapV3Provider } from './swap/swap-v3.ts'

/**
 * Makes all providers. Routes of the first of each kind have the plain ids.
 *
 * @param lifi - undefined without a cross-chain provider
 */
export function createProviders(
  chains: ChainDirectory,
  tokens: TokenDirectory,
  lifi: LifiClient | undefined,
): readonly Provider[] {
  return [
    createDirectProvider(chains),
    createConversionProvider(chains),
    createSwapV2Provider(chains, tokens),
    createSwapV3Provider(chains),
    ...(lifi === undefined ? [] : [createLifiProvider({ client: lifi, chains, tokens })]),
  ]
}
