import type { Knex } from 'knex'
import type { PaymentContractConfig } from '../../chains/chains-file.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'

/** Blocks that were read before a contract was added to the chains file: its events in them are still to be read. */
export interface ContractGap {
  readonly address: Address
  /** The last block that was read for this contract. */
  readonly filledBlock: number
  /** The last block to read for it. */
  readonly fillUntil: number
}

/**
 * Stores which contracts are followed from now on. A contract that is new, or whose `fromBlock` is lower than before, gets a gap up to the
 * block that the chain was read to. One that is no longer listed is forgotten, so it counts as new if it is listed again.
 *
 * @returns all gaps of the chain, lowest block first
 */
export function declareContracts(
  knex: Knex,
  chainId: string,
  contracts: readonly PaymentContractConfig[],
  scannedBlock: number,
): Promise<ContractGap[]> {
  return knex.transaction(async (trx) => {
    const addresses = contracts.map(({ address }) => addressToBytes(address))
    await trx.raw('delete from chain_contracts where chain_id = ? and not (address = any(?))', [chainId, addresses])
    for (const { address, fromBlock } of contracts) {
      await trx.raw(
        `insert into chain_contracts as known (chain_id, address, from_block, filled_block, fill_until)
         values (?, ?, ?, ?, ?)
         on conflict (chain_id, address) do update set from_block = excluded.from_block,
           filled_block = excluded.filled_block, fill_until = excluded.fill_until
           where known.from_block > excluded.from_block`,
        // The genesis block has no logs.
        [chainId, addressToBytes(address), fromBlock, Math.max(0, fromBlock - 1), scannedBlock],
      )
    }
    return readGaps(trx, chainId)
  })
}

async function readGaps(trx: Knex, chainId: string): Promise<ContractGap[]> {
  const rows = await trx('chain_contracts')
    .select<{ address: Buffer; filled_block: bigint; fill_until: bigint }[]>('address', 'filled_block', 'fill_until')
    .where({ chain_id: chainId })
    .whereRaw('filled_block < fill_until')
    .orderBy(['filled_block', 'address'])
  return rows.map((row) => ({
    address: addressFromBytes(row.address),
    filledBlock: Number(row.filled_block),
    fillUntil: Number(row.fill_until),
  }))
}

/** Stores up to which block a contract's gap was read. */
export async function markFilled(trx: Knex, chainId: string, address: Address, filledBlock: number): Promise<void> {
  await trx('chain_contracts')
    .where({ chain_id: chainId, address: addressToBytes(address) })
    .update({ filled_block: filledBlock })
}

/** Limits all gaps of a chain to blocks up to a number: the blocks above it are going to be read for all contracts. */
export async function limitGaps(trx: Knex, chainId: string, number: number): Promise<void> {
  await trx('chain_contracts')
    .where({ chain_id: chainId })
    .update({
      filled_block: trx.raw('least(filled_block, ?::bigint)', [number]),
      fill_until: trx.raw('least(fill_until, ?::bigint)', [number]),
    })
}
