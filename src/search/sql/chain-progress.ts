import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import type { TextRow } from '../../postgres/prepared.ts'
import { type Statement, sql } from '../../postgres/statement.ts'
import type { Heads } from '../../store/payment-row.ts'

/** How far detection has scanned a chain. */
export interface ChainProgress {
  /** CAIP-2. */
  readonly chainId: string
  readonly scannedBlock: bigint
  readonly scannedTime: Date
  readonly headBlock: bigint
}

/** Reads the progress of every chain that was ever followed. */
export const chainProgressStatement: Statement = sql`select chain_id, scanned_block, scanned_time, head_block from chain_state`

export function chainProgressOf([chainId, scannedBlock, scannedTime, headBlock]: TextRow): ChainProgress {
  return {
    chainId: chainId as string,
    scannedBlock: BigInt(scannedBlock as string),
    scannedTime: parseTimestamp(scannedTime as string),
    headBlock: BigInt(headBlock as string),
  }
}

/** The heads from which confirmations are counted, by chain id. */
export function headsOf(progress: readonly ChainProgress[]): Heads {
  return new Map(progress.map(({ chainId, headBlock }) => [chainId, headBlock]))
}
