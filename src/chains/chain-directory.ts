import type { AddressFamily } from '../domain/address.ts'
import { caip2Of, canonicalChainName, knownChains } from '../domain/chain.ts'
import { namesOf, suggestName } from '../domain/nearest.ts'
import type { ChainConfig } from './chains-file.ts'

/**
 * What a caller's text for a chain means.
 * - `chain`: the chain of that name
 * - `elsewhere`: the id of a real chain whose name is configured here with another id, as in a demo; it matches nothing
 * - `unknown`: no such chain. `suggest` looks for a similar name only when it is called, because that takes 0.1 ms
 */
type ResolvedChain =
  | { readonly kind: 'chain'; readonly name: string }
  | { readonly kind: 'elsewhere'; readonly name: string }
  | { readonly kind: 'unknown'; readonly suggest: () => string }

/** Finds chains by any of their names. */
export type ChainDirectory = ReturnType<typeof createChainDirectory>

/** Creates the directory of the configured and the built-in chains. */
export function createChainDirectory(configured: readonly ChainConfig[]) {
  const configs = new Map(configured.map((config) => [config.name, config]))
  const builtIn = new Map(knownChains.map((known) => [known.name, known]))
  const nameByAlias = new Map(knownChains.flatMap((known) => known.aliases.map((alias) => [alias, known.name])))
  const nameByConfiguredId = new Map(configured.map((config) => [caip2Of(config.chainId), config.name]))
  const nameByBuiltInId = new Map(knownChains.map((known) => [known.chainId, known.name]))

  function resolveId(chainId: string): ResolvedChain | undefined {
    const here = nameByConfiguredId.get(chainId)
    if (here !== undefined) return { kind: 'chain', name: here }
    const name = nameByBuiltInId.get(chainId)
    if (name === undefined) return undefined
    return { kind: configs.has(name) ? 'elsewhere' : 'chain', name }
  }

  function resolveName(text: string, alsoKnown: ReadonlySet<string>): ResolvedChain | undefined {
    const name = canonicalChainName(text)
    if (name !== undefined && (configs.has(name) || builtIn.has(name) || alsoKnown.has(name)))
      return { kind: 'chain', name }
    const aliased = nameByAlias.get(text.trim().toLowerCase().replace(/[\s_]/g, '-'))
    return aliased === undefined ? undefined : { kind: 'chain', name: aliased }
  }

  /**
   * Finds a chain by its name in any case, an alias, an EIP-155 number, or a CAIP-2 id.
   *
   * @param alsoKnown - further canonical names, for instance those that an account imported
   */
  function resolve(text: string, alsoKnown: ReadonlySet<string> = new Set()): ResolvedChain {
    const chainId = /^[0-9]{1,16}$/.test(text) ? `eip155:${BigInt(text)}` : text.toLowerCase()
    const resolved = resolveId(chainId) ?? resolveName(text, alsoKnown)
    if (resolved !== undefined) return resolved
    const names = () => namesOf(configs.keys(), alsoKnown, builtIn.keys(), nameByAlias.keys())
    return { kind: 'unknown', suggest: () => suggestName(text, names()) }
  }

  return {
    /** The configured chains, in the order of the configuration. */
    configured,
    /** The configuration of a chain by canonical name. */
    config: (name: string) => configs.get(name),
    /** CAIP-2 id of a chain by canonical name: the configured one, else the built-in one. */
    chainIdOf: (name: string) => {
      const config = configs.get(name)
      return config === undefined ? builtIn.get(name)?.chainId : caip2Of(config.chainId)
    },
    /** The family of a chain's addresses; EVM for an unknown chain. */
    familyOf: (name: string): AddressFamily => (configs.has(name) ? 'EVM' : (builtIn.get(name)?.family ?? 'EVM')),
    resolve,
  }
}
