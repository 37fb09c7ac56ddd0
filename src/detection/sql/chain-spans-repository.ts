import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { queryRows, readRows } from './read-rows.ts'

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
  const spans = await queryRows<Span & { readonly addresses: Buffer[] }>(
    knex,
    `select array_agg(address order by address) as addresses, from_block as "from", next_block as next, until_block as until
     from chain_spans where chain_id = ? group by from_block, next_block, until_block
     order by until_block desc, next_block desc, from_block desc`,
    [chainId],
  )
  return spans.map((span) => ({ ...span, addresses: span.addresses.map(addressFromBytes) }))
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

async function deleteReadSpans(trx: Knex.Transaction, chainId: string): Promise<void> {
  await trx('chain_spans').where({ chain_id: chainId }).whereRaw('next_block > until_block').delete()
}

/** A contract, and the lowest block from which its events are read or are to be read. */
export interface ReadContract {
  readonly address: Address
  readonly fromBlock: number
}

/**
 * Stores which contracts are followed from now on. The blocks up to `scannedBlock` have not been read for a contract that is new, so the chain's start is
 * forgotten until {@link moveContracts} has made spans of them. A contract that is no longer listed is forgotten with its spans.
 */
export async function declareContracts(
  trx: Knex.Transaction,
  chainId: string,
  addresses: readonly Address[],
  scannedBlock: number,
): Promise<void> {
  const listed = addresses.map(addressToBytes)
  await forgetContracts(trx, chainId, listed)
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `insert into chain_contracts (chain_id, address, from_block)
     select ?, address, ? from unnest(?::bytea[]) as listed (address)
     on conflict (chain_id, address) do nothing`,
    [chainId, scannedBlock + 1, listed],
  )
  if (rowCount > 0) await trx('chain_state').where({ chain_id: chainId }).update({ start_block: null })
}

/** Forgets what was read for which contract. @param except - addresses of contracts that are still listed */
export async function forgetContracts(trx: Knex.Transaction, chainId: string, except: Buffer[] = []): Promise<void> {
  for (const table of ['chain_contracts', 'chain_spans']) {
    await trx(table).where({ chain_id: chainId }).whereNotIn('address', except).delete()
  }
}

/** From which block each contract is read. */
export async function readContracts(knex: Knex, chainId: string): Promise<Map<Address, number>> {
  const rows = await knex('chain_contracts')
    .select('address', 'from_block')
    .where({ chain_id: chainId })
    .orderBy('address')
  const contracts = readRows<ReadContract>(rows)
  return new Map(contracts.map(({ address, fromBlock }) => [address, fromBlock]))
}

/**
 * Moves the blocks from which contracts are read. Blocks below the old one become spans.
 *
 * @param mayRaise - whether a higher block counts too: then what is left to read below it is dropped
 */
export async function moveContracts(
  trx: Knex.Transaction,
  chainId: string,
  wanted: readonly ReadContract[],
  mayRaise: boolean,
): Promise<void> {
  const known = await readContracts(trx, chainId)
  for (const { address, fromBlock } of wanted) {
    const before = known.get(address)
    if (before === undefined || before === fromBlock || (before < fromBlock && !mayRaise)) continue
    const at = { chain_id: chainId, address: addressToBytes(address) }
    if (before > fromBlock) await insertSpans(trx, chainId, [{ address, from: fromBlock, until: before - 1 }])
    // What is left to read below it is dropped.
    else
      await trx('chain_spans')
        .where(at)
        .update('next_block', trx.raw('greatest(next_block, ?::bigint)', [fromBlock]))
    await trx('chain_contracts').where(at).update({ from_block: fromBlock })
  }
  await deleteReadSpans(trx, chainId)
}
