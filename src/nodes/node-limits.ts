import type { NodeFigures } from './node-figures.ts'
import { createUrlLimits, type DeclaredLimits, type LimitsTools, type UrlLimits } from './url-limits.ts'

/** The limits of all nodes that a process asks. One registry a process, so that routes and detection share the rate and the budget of a URL. */
export interface NodeLimits {
  /** The limits of a URL; the same object for every caller. */
  of(url: string): UrlLimits
  /** The figures of all configured URLs, in the order of the configuration. */
  figures(): NodeFigures[]
}

/** The part of a configured chain that says where its nodes are and what they allow. */
export interface LimitedChain extends Pick<DeclaredLimits, 'requestsPerSecond' | 'requestsPerDay'> {
  readonly name: string
  readonly rpcUrls: readonly string[]
  /** By URL; what is absent is as the chain says. */
  readonly nodeLimits?: Readonly<Record<string, DeclaredLimits>> | undefined
}

/** Makes the registry of the configured chains. A URL of none of them has no declared limits and no figures. */
export function createNodeLimits(chains: readonly LimitedChain[] = [], tools: LimitsTools = {}): NodeLimits {
  const configured = new Map<string, UrlLimits>()
  for (const { name, rpcUrls, requestsPerSecond, requestsPerDay, nodeLimits } of chains) {
    for (const [place, url] of rpcUrls.entries()) {
      const declared = { requestsPerSecond, requestsPerDay, ...nodeLimits?.[url] }
      configured.set(url, createUrlLimits({ chain: name, url, place, declared }, tools))
    }
  }
  const others = new Map<string, UrlLimits>()
  return {
    of(url) {
      const known = configured.get(url) ?? others.get(url)
      if (known !== undefined) return known
      const made = createUrlLimits({ chain: '', url, place: 0, declared: {} }, tools)
      others.set(url, made)
      return made
    },
    figures: () => [...configured.values()].map((limits) => limits.figures()),
  }
}
