import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'

/** The contracts and tokens of a chain by the part they play in payments, from the chains file. */
export interface FollowedContracts {
  /** Their events are payments. */
  readonly contracts: ReadonlySet<Address>
  /** Contracts that pay with money that somebody else gave them, swap contracts included. */
  readonly intermediaries: ReadonlySet<Address>
  /** The intermediaries that sell what they were given and pay with what they bought. */
  readonly swaps: ReadonlySet<Address>
  /** Contracts through which bridges pay. */
  readonly executors: ReadonlySet<Address>
  /** The listed tokens: only these are followed through intermediaries. */
  readonly tokens: ReadonlySet<Address>
  /** Contracts that create SingleRequestProxies, each of which is an intermediary. */
  readonly factories: ReadonlySet<Address>
  /** Its events say when its list of wallets changed. */
  readonly oracle?: Address | undefined
}

/** The chain whose events are matched. */
export interface ObservedChain {
  /** Canonical name. */
  readonly name: string
  /** CAIP-2. */
  readonly chainId: string
  readonly native: Token
  readonly followed: FollowedContracts
  /** Whether receipts should have an `l1Fee`. */
  readonly hasL1Fee: boolean
}

/** Sorts the contracts of a chain. */
export function sortContracts(chain: ChainConfig): FollowedContracts {
  const ofKind = (kind: string) => chain.contracts.filter((each) => each.kind === kind).map(({ address }) => address)
  const factories = new Set(ofKind('SINGLE_REQUEST_PROXY_FACTORY'))
  const swaps = new Set([...ofKind('ERC20_SWAP_TO_PAY'), ...(chain.swapIntermediaries ?? [])])
  return {
    contracts: new Set(
      followedContracts(chain)
        .map(({ address }) => address)
        .filter((address) => !factories.has(address) && address !== chain.screening?.oracle),
    ),
    intermediaries: new Set([
      ...(chain.intermediaries ?? []),
      ...ofKind('BATCH_PAYMENTS'),
      ...ofKind('BATCH_CONVERSION_PAYMENTS'),
      ...swaps,
    ]),
    swaps,
    executors: new Set(chain.executors),
    tokens: new Set(chain.tokens.map(({ address }) => address)),
    factories,
    oracle: chain.screening?.oracle,
  }
}
