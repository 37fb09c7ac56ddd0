import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { deleteSpansBelow, deleteSpansOfOthers, insertSpans } from './chain-spans-repository.ts'

/** A contract, and the lowest block from which its events are read or are to be read. */
export interface ReadContract {
  readonly address: Address
  readonly fromBlock: number
}

/**
 * Stores which contracts are followed from now on. The blocks up to `scannedBlock` have not been read for a contract that is new, so the chain's start is
 * forgotten until {@link lowerContracts} has made spans of them. A contract that is no longer listed is forgotten with its spans.
 */
export async function declareContracts(
  trx: Knex.Transaction,
  chainId: string,
  addresses: readonly Address[],
  scannedBlock: number,
): Promise<void> {
  const listed = addresses.map(addressToBytes)
  await trx.raw('delete from chain_contracts where chain_id = ? and not (address = any(?))', [chainId, listed])
  await deleteSpansOfOthers(trx, chainId, addresses)
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `insert into chain_contracts (chain_id, address, from_block)
     select ?, address, ? from unnest(?::bytea[]) as listed (address)
     on conflict (chain_id, address) do nothing`,
    [chainId, scannedBlock + 1, listed],
  )
  if (rowCount > 0) await trx('chain_state').where({ chain_id: chainId }).update({ start_block: null })
}

/** Forgets what was read for which contract. */
export async function forgetContracts(trx: Knex.Transaction, chainId: string): Promise<void> {
  await trx('chain_contracts').where({ chain_id: chainId }).delete()
  await deleteSpansOfOthers(trx, chainId, [])
}

/** From which block each contract is read. */
export async function readContracts(knex: Knex, chainId: string): Promise<Map<Address, number>> {
  const rows = await knex('chain_contracts')
    .select<{ address: Buffer; from_block: bigint }[]>('address', 'from_block')
    .where({ chain_id: chainId })
    .orderBy('address')
  return new Map(rows.map(({ address, from_block }) => [addressFromBytes(address), Number(from_block)]))
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
    if (before < fromBlock) await deleteSpansBelow(trx, chainId, address, fromBlock)
    else await insertSpans(trx, chainId, [{ address, from: fromBlock, until: before - 1 }])
    const at = { chain_id: chainId, address: addressToBytes(address) }
    await trx('chain_contracts').where(at).update({ from_block: fromBlock })
  }
}
