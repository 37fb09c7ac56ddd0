import { type ChainConfig, followedContracts, type PaymentContractKind } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'

/** The contracts that have a part in payments, by the chains file and the known SingleRequestProxies. */
export interface KnownContracts {
  /** Whether events of a contract are followed in a block. */
  isFollowed(emitter: Address, blockNumber: number): boolean
  /** Whether it creates SingleRequestProxies. */
  isFactory(address: Address): boolean
  /** Whether it pays with money that others gave it: a listed contract, or a SingleRequestProxy of a listed factory. */
  isIntermediary(address: Address): boolean
  /** Whether it swaps what it is given, and pays with what it bought. */
  isSwap(address: Address): boolean
  /** Whether bridges pay through it. */
  isExecutor(address: Address): boolean
  /** Whether a token is in the chains file. Payers are looked for among Transfers of listed tokens alone. */
  isListed(token: Address): boolean
  /** Addresses whose events are followed. */
  readonly followed: readonly Address[]
  addProxy(address: Address): void
}

/**
 * @param fromBlocks - from which block the events of a contract were read, where it is not the block of the chains file
 * @param proxies - SingleRequestProxies that are known already
 */
export function knowContracts(
  chain: ChainConfig,
  fromBlocks: ReadonlyMap<Address, number>,
  proxies: Iterable<Address>,
): KnownContracts {
  const events = followedContracts(chain)
  const startOf = new Map(events.map(({ address, fromBlock }) => [address, fromBlocks.get(address) ?? fromBlock]))
  const ofKind = (kind: PaymentContractKind) =>
    chain.contracts.filter((each) => each.kind === kind).map(({ address }) => address)
  const factories = new Set(ofKind('SINGLE_REQUEST_PROXY_FACTORY'))
  const swaps = new Set([...ofKind('ERC20_SWAP_TO_PAY'), ...(chain.swapIntermediaries ?? [])])
  const executors = new Set(chain.executors ?? [])
  const batches = [...ofKind('BATCH_PAYMENTS'), ...ofKind('BATCH_CONVERSION_PAYMENTS')]
  const intermediaries = new Set([...(chain.intermediaries ?? []), ...batches, ...proxies])
  const tokens = new Set(chain.tokens.map(({ address }) => address))
  return {
    isFollowed: (emitter, blockNumber) => blockNumber >= (startOf.get(emitter) ?? Number.POSITIVE_INFINITY),
    isFactory: (address) => factories.has(address),
    isIntermediary: (address) => intermediaries.has(address),
    isSwap: (address) => swaps.has(address),
    isExecutor: (address) => executors.has(address),
    isListed: (token) => tokens.has(token),
    followed: [...startOf.keys()],
    addProxy: (address) => void intermediaries.add(address),
  }
}
