import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { raw, type Statement } from '../../postgres/statement.ts'
import type { TextRow } from '../../postgres/wire-batch.ts'
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

/**
 * Reads the progress of every chain that was ever followed. While blocks are read beside following, the lowest of them is the end of what is read.
 * Blocks that a node gave which was found to answer wrongly count as not read, until they are proven; the time of the block before them is unknown.
 */
export const chainProgressStatement: Statement = raw(`
  with progress as (
    select c.chain_id, c.head_block,
      case when c.start_block is null then null when u.chain_id is null then c.scanned_block
        when u.read_time is not null then u.next_block - 1 end as read_block,
      case when c.start_block is null then null when u.chain_id is null then c.scanned_time else u.read_time end as read_time
    from chain_state c
    left join (
      select distinct on (chain_id) chain_id, next_block, read_time from chain_spans
      order by chain_id, next_block, read_time nulls first
    ) u on u.chain_id = c.chain_id
  )
  select p.chain_id, least(p.read_block, w.from_block - 1),
    case when w.from_block <= p.read_block then null else p.read_time end, p.head_block
  from progress p
  left join (
    select chain_id, min(lower(blocks)) as from_block from unproven_blocks where state = 'WRONG' group by chain_id
  ) w on w.chain_id = p.chain_id and w.from_block <= p.read_block`)

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
