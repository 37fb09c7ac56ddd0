import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Token } from '../../domain/currency.ts'
import type { MarketReader } from '../read/market.ts'
import type { Patience } from '../read/patience.ts'
import type { TraceReader } from '../read/trace-reader.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { FollowedContracts } from './followed-contracts.ts'

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

/** What finding the payments of one chain needs beside its logs. */
export interface FindingTools {
  readonly chain: ObservedChain
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly market: MarketReader
  readonly traces: TraceReader
  /** How long figures are waited for while the chain is followed. */
  readonly live: Patience
}
