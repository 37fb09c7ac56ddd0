import type { Knex } from 'knex'
import type { PaymentContractConfig } from '../../chains/chains-file.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'

/** Blocks of a contract that were looked at before it was followed, so that its events in them are still to be read. */
export interface ContractGap {
  readonly address: Address
  /** The last block that was read. */
  readonly filledBlock: number
  /** The last block to be read. */
  readonly fillUntil: number
}

/** Which contracts of a chain are followed, and which blocks of them are still to be read. */
export interface ChainContractsRepository {
  /**
   * Notes which contracts are followed from now on. One that is new, or has an earlier first block than it had, has a gap up to the
   * block that the chain was looked at; one that is gone is new when it comes back.
   *
   * @returns the gaps, lowest block first
   */
  declare(contracts: readonly PaymentContractConfig[], scannedBlock: number): Promise<ContractGap[]>
}

/** Makes the repository of one chain. */
export function createChainContractsRepository(knex: Knex, chainId: string): ChainContractsRepository {
  return {
    declare: (contracts, scannedBlock) =>
      knex.transaction(async (trx) => {
        const addresses = contracts.map(({ address }) => addressToBytes(address))
        await trx.raw('delete from chain_contracts where chain_id = ? and not (address = any(?))', [chainId, addresses])
        for (const { address, fromBlock } of contracts) {
          await trx.raw(
            `insert into chain_contracts as known (chain_id, address, from_block, filled_block, fill_until)
             values (?, ?, ?, ?, ?)
             on conflict (chain_id, address) do update set from_block = excluded.from_block,
               filled_block = excluded.filled_block, fill_until = excluded.fill_until
               where known.from_block > excluded.from_block`,
            // The very first block of a chain holds no events.
            [chainId, addressToBytes(address), fromBlock, Math.max(0, fromBlock - 1), scannedBlock],
          )
        }
        const rows = await trx('chain_contracts')
          .select<{ address: Buffer; filled_block: bigint; fill_until: bigint }[]>(
            'address',
            'filled_block',
            'fill_until',
          )
          .where({ chain_id: chainId })
          .whereRaw('filled_block < fill_until')
          .orderBy(['filled_block', 'address'])
        return rows.map((row) => ({
          address: addressFromBytes(row.address),
          filledBlock: Number(row.filled_block),
          fillUntil: Number(row.fill_until),
        }))
      }),
  }
}
