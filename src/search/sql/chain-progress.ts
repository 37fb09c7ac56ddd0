import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import type { TextRow } from '../../postgres/prepared.ts'
import { type Statement, sql } from '../../postgres/statement.ts'
import type { Heads } from '../../store/payment-row.ts'

/** How far detection has scanned a chain. */
export interface ChainProgress {
  /** CAIP-2. */
  readonly chainId: string
  /** Up to which block all is read; undefined where that is not known, or nothing is read yet. */
  readonly readBlock: bigint | undefined
  /** The time of `readBlock`. */
  readonly readTime: Date | undefined
  readonly headBlock: bigint
}

/** Reads the progress of every chain that was ever followed. While blocks are read beside following, the lowest of them is the end of what is read. */
export const chainProgressStatement: Statement = sql`
  select c.chain_id,
    case when c.start_block is null then null when u.chain_id is null then c.scanned_block
      when u.read_time is not null then u.next_block - 1 end,
    case when c.start_block is null then null when u.chain_id is null then c.scanned_time else u.read_time end,
    c.head_block
  from chain_state c
  left join (
    select distinct on (chain_id) chain_id, next_block, read_time from chain_spans
    order by chain_id, next_block, read_time nulls first
  ) u on u.chain_id = c.chain_id`

export function chainProgressOf([chainId, readBlock, readTime, headBlock]: TextRow): ChainProgress {
  return {
    chainId: chainId as string,
    readBlock: readBlock === null || readBlock === undefined ? undefined : BigInt(readBlock),
    readTime: readTime === null || readTime === undefined ? undefined : parseTimestamp(readTime),
    headBlock: BigInt(headBlock as string),
  }
}

/** The heads from which confirmations are counted, by chain id. */
export function headsOf(progress: readonly ChainProgress[]): Heads {
  return new Map(progress.map(({ chainId, headBlock }) => [chainId, headBlock]))
}
