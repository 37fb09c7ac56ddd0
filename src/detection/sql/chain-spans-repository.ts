import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'

/** Blocks that are read for some contracts beside following the chain, lowest first. Block numbers include both ends. */
export interface Span {
  readonly addresses: readonly Address[]
  readonly from: number
  /** The lowest block that is not read yet. */
  readonly next: number
  readonly until: number
}

/** The spans of a chain that are not read to their end, the highest first; contracts with the same blocks are together. */
export async function readSpans(knex: Knex, chainId: string): Promise<Span[]> {
  const { rows } = await knex.raw<{ rows: SpanRow[] }>(
    `select array_agg(address order by address) as addresses, from_block, next_block, until_block
     from chain_spans where chain_id = ? group by from_block, next_block, until_block
     order by until_block desc, next_block desc, from_block desc`,
    [chainId],
  )
  return rows.map(({ addresses, from_block, next_block, until_block }) => ({
    addresses: addresses.map(addressFromBytes),
    from: Number(from_block),
    next: Number(next_block),
    until: Number(until_block),
  }))
}

interface SpanRow {
  readonly addresses: readonly Buffer[]
  readonly from_block: bigint
  readonly next_block: bigint
  readonly until_block: bigint
}

/** @param readTime - the time of the block below, where all is read up to that; undefined: it is not known */
export async function insertSpans(
  trx: Knex,
  chainId: string,
  spans: readonly { readonly address: Address; readonly from: number; readonly until: number }[],
  readTime?: Date,
): Promise<void> {
  const rows = spans
    .filter(({ from, until }) => from <= until)
    .map(({ address, from, until }) => ({
      chain_id: chainId,
      address: addressToBytes(address),
      from_block: from,
      next_block: from,
      until_block: until,
      read_time: readTime,
    }))
  if (rows.length === 0) return
  // A span of the same first block is there where the start was raised and is lowered again.
  await trx('chain_spans')
    .insert(rows)
    .onConflict(['chain_id', 'address', 'from_block'])
    .merge({
      next_block: trx.raw('least(chain_spans.next_block, excluded.next_block)'),
      until_block: trx.raw('greatest(chain_spans.until_block, excluded.until_block)'),
      read_time: trx.raw('excluded.read_time'),
    })
}

/**
 * Stores up to which block a span was read.
 *
 * @returns false where the span is not as it was read before: then nothing is stored
 */
export async function markRead(
  trx: Knex.Transaction,
  chainId: string,
  span: Span,
  last: { readonly number: number; readonly timestampSec: number },
): Promise<boolean> {
  const addresses = span.addresses.map(addressToBytes)
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `update chain_spans set next_block = ?, read_time = ?
     where chain_id = ? and address = any(?) and from_block = ? and next_block = ? and until_block = ?`,
    [last.number + 1, new Date(last.timestampSec * 1_000), chainId, addresses, span.from, span.next, span.until],
  )
  await deleteReadSpans(trx, chainId)
  return rowCount === addresses.length
}

/** Limits all spans to blocks up to a number: the blocks above it are going to be read for all contracts. */
export async function limitSpans(trx: Knex.Transaction, chainId: string, number: number): Promise<void> {
  await trx.raw(
    `update chain_spans set next_block = least(next_block, ?::bigint), until_block = least(until_block, ?::bigint)
     where chain_id = ?`,
    [number + 1, number, chainId],
  )
  await deleteReadSpans(trx, chainId)
}

/** Drops what is left to read for a contract below a block. */
export async function deleteSpansBelow(
  trx: Knex.Transaction,
  chainId: string,
  address: Address,
  number: number,
): Promise<void> {
  await trx.raw(
    `update chain_spans set next_block = greatest(next_block, ?::bigint) where chain_id = ? and address = ?`,
    [number, chainId, addressToBytes(address)],
  )
  await deleteReadSpans(trx, chainId)
}

export async function deleteSpansOfOthers(
  trx: Knex.Transaction,
  chainId: string,
  addresses: readonly Address[],
): Promise<void> {
  const listed = addresses.map(addressToBytes)
  await trx.raw('delete from chain_spans where chain_id = ? and not (address = any(?))', [chainId, listed])
}

async function deleteReadSpans(trx: Knex.Transaction, chainId: string): Promise<void> {
  await trx('chain_spans').where({ chain_id: chainId }).whereRaw('next_block > until_block').delete()
}
