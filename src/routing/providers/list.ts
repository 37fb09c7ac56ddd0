import type { ChainDirectory } from '../../domain/chain-directory.ts'
import type { TokenDirectory } from '../../domain/token-directory.ts'
import type { LifiClient } from '../lifi-client.ts'
import { createConversionProvider } from './conversion.ts'
import { createDirectProvider } from './direct.ts'
import { createLifiProvider } from './lifi.ts'
import type { Provider } from './provider.ts'
import { createSwapV2Provider } from './swap-v2.ts'
import { createSwapV3Provider } from './swap-v3.ts'

/**
 * All providers. Of each kind the first one's routes have the plain ids.
 *
 * @param lifi - absent where nobody carries payments in from other chains
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
