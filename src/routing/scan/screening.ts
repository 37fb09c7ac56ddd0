import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import type { RunningScan } from './scan.ts'
import type { ChainState } from './wallet-state.ts'

type ReadsByChain = ReadonlyMap<string, readonly ContractRead[]>

/** Adds the other chains with an oracle to those that are scanned: no filter lets a wallet choose who is asked about it. */
export function withOracles(reads: ReadsByChain, { configured }: ChainDirectory): ReadsByChain {
  if (reads.size === 0) return reads
  const others = configured.filter(({ name, screening }) => screening !== undefined && !reads.has(name))
  return new Map([...reads, ...others.map(({ name }) => [name, []] as const)])
}

/** What the oracles of all chains say of one wallet. */
export interface Screening {
  /** A chain whose oracle lists it: then it pays on no chain. */
  readonly listedBy: ChainState | undefined
  /** Whether nobody is sent to pay on this chain: its oracle gave no answer; or it has none, and no other chain's did. */
  readonly isUnknownOn: (chain: string) => boolean
}

/** Waits for the oracles of a scan. @throws the reason of the caller's signal */
export async function screen({ outcomes }: RunningScan, chains: ChainDirectory): Promise<Screening> {
  const asked = [...outcomes].filter(([name]) => chains.config(name)?.screening !== undefined)
  const answers = await Promise.all(asked.map(async ([name, outcome]) => [name, await outcome] as const))
  const states = answers.flatMap(([, state]) => ('reason' in state || state.isListed === undefined ? [] : [state]))
  const known = new Set(states.map(({ chain }) => chain.name))
  const hasOracle = new Set(asked.map(([name]) => name))
  return {
    listedBy: states.find(({ isListed }) => isListed),
    isUnknownOn: (chain) => (hasOracle.has(chain) ? !known.has(chain) : hasOracle.size > 0 && known.size === 0),
  }
}
