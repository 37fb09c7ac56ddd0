import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { chunksOf } from '../../domain/collections.ts'
import type { CreatedProxy } from '../match/detected.ts'
import { queryRows } from './read-rows.ts'

const ROWS_A_STATEMENT = 1_000

/** Inserts SingleRequestProxies of a chain; those that are stored already stay as they are. */
export async function storeRequestProxies(trx: Knex, chainId: string, proxies: readonly CreatedProxy[]): Promise<void> {
  for (const some of chunksOf(proxies, ROWS_A_STATEMENT)) {
    const rows = some.map(({ address, blockNumber }) => ({
      chain_id: chainId,
      address: addressToBytes(address),
      block_number: blockNumber,
    }))
    await trx('single_request_proxies').insert(rows).onConflict(['chain_id', 'address']).ignore()
  }
}

/** @returns those of the addresses that are SingleRequestProxies of the chain */
export async function findRequestProxies(
  knex: Knex,
  chainId: string,
  addresses: readonly Address[],
): Promise<Set<Address>> {
  if (addresses.length === 0) return new Set()
  const rows = await queryRows<{ readonly address: Address }>(
    knex,
    'select address from single_request_proxies where chain_id = ? and address = any(?)',
    [chainId, addresses.map(addressToBytes)],
  )
  return new Set(rows.map(({ address }) => address))
}

/** The proxies that are stored as created in some blocks, both ends included. */
export async function findRequestProxiesBetween(
  knex: Knex,
  chainId: string,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Address[]> {
  const stored = await knex('single_request_proxies')
    .where({ chain_id: chainId })
    .whereBetween('block_number', [from, to])
    .pluck<Buffer[]>('address')
  return stored.map(addressFromBytes)
}

export async function deleteRequestProxies(knex: Knex, chainId: string, addresses: readonly Address[]): Promise<void> {
  if (addresses.length === 0) return
  await knex('single_request_proxies')
    .where({ chain_id: chainId })
    .whereIn('address', addresses.map(addressToBytes))
    .delete()
}
