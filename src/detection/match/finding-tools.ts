import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Token } from '../../domain/currency.ts'
import type { MarketReader } from '../read/market.ts'
import type { TraceReader } from '../read/trace-reader.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { FollowedContracts } from './followed-contracts.ts'

/** The chain whose events are matched. */
interface ObservedChain {
  /** Canonical name. */
  readonly name: string
  /** CAIP-2. */
  readonly chainId: string
  readonly native: Token
  readonly followed: FollowedContracts
}

/** What finding the payments of one chain needs beside its logs. */
export interface FindingTools {
  readonly chain: ObservedChain
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly market: MarketReader
  readonly traces: TraceReader
}
