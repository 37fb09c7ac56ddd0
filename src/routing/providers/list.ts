import type { ChainDirectory } from '../../domain/chain.ts'
import { createConversionProvider } from './conversion.ts'
import { createDirectProvider } from './direct.ts'
import type { Provider } from './provider.ts'

/** All providers. Of each kind the first one's routes have the plain ids. */
export function createProviders(chains: ChainDirectory): readonly Provider[] {
  return [createDirectProvider(chains), createConversionProvider(chains)]
}
