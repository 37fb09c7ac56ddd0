import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { ObservedChain } from '../match/followed-contracts.ts'
import type { MarketReader } from '../read/market.ts'
import type { Patience } from '../read/patience.ts'
import type { TraceReader } from '../read/trace-reader.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'

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
