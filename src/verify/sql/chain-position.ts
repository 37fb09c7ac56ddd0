import type { Knex } from 'knex'
import { type Address, addressFromBytes } from '../../domain/address.ts'

/** How far a chain was read, as the database says it. */
export interface ChainPosition {
  /** The last block up to which payments are final and were read. */
  readonly finalBlock: number
  /** From which block the events of each contract were read. */
  readonly fromBlocks: ReadonlyMap<Address, number>
  /** Blocks that were not read for every contract yet. */
  readonly unread: readonly { readonly from: number; readonly to: number }[]
  /** SingleRequestProxies that are known. */
  readonly proxies: readonly Address[]
}

interface PositionRow {
  readonly scanned_block: bigint
  readonly final_block: bigint
}

interface ContractRow {
  readonly address: Buffer
  readonly from_block: bigint
}

interface SpanRow {
  readonly next_block: bigint
  readonly until_block: bigint
}

/** @param chainId - CAIP-2 @returns undefined for a chain that was never followed */
export async function readPosition(knex: Knex, chainId: string): Promise<ChainPosition | undefined> {
  const row = await knex('chain_state').where({ chain_id: chainId }).first<PositionRow | undefined>()
  if (row === undefined) return undefined
  const of = { chain_id: chainId }
  const contracts = await knex('chain_contracts').where(of).select<ContractRow[]>('address', 'from_block')
  const spans = await knex('chain_spans').where(of).distinct<SpanRow[]>('next_block', 'until_block')
  const proxies = await knex('single_request_proxies').where(of).pluck<Buffer[]>('address')
  return {
    finalBlock: Math.min(Number(row.final_block), Number(row.scanned_block)),
    fromBlocks: new Map(contracts.map((each) => [addressFromBytes(each.address), Number(each.from_block)])),
    unread: spans.map((span) => ({ from: Number(span.next_block), to: Number(span.until_block) })),
    proxies: proxies.map(addressFromBytes),
  }
}
