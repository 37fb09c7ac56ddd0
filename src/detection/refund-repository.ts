import type { Knex } from 'knex'
import type { RefundRow } from '../db/request-ledger.ts'
import { hexToBytes } from '../domain/hex.ts'
import type { DetectedRefund } from './detected.ts'
import type { WrittenChain } from './payment-rows.ts'

/** Rows in one statement; a statement has at most 65,535 parameters. */
const ROWS_A_STATEMENT = 500

/** Adds those that are not stored yet. */
export function addRefunds(
  stored: readonly RefundRow[],
  chain: WrittenChain,
  { accountId, refunds }: { readonly accountId: number; readonly refunds: readonly DetectedRefund[] },
): RefundRow[] {
  const keyOf = (row: RefundRow) => `${row.tx_hash.toString('hex')} ${row.event_index} ${row.network}`
  const rows = new Map(stored.map((row) => [keyOf(row), row]))
  for (const refund of refunds) {
    const row: RefundRow = {
      account_id: accountId,
      tx_hash: hexToBytes(refund.txHash),
      event_index: refund.eventIndex,
      network: chain.network,
      chain_id: chain.chainId,
      request_id: hexToBytes(refund.requestId),
      block_number: BigInt(refund.blockNumber),
      timestamp: refund.timestamp,
      final: false,
      amount: refund.amount,
      currency: refund.currency,
    }
    if (!rows.has(keyOf(row))) rows.set(keyOf(row), row)
  }
  return [...rows.values()]
}

/** Makes final what stands at the final block or below. @returns the given row where nothing changes */
export function finaliseRefunds(
  rows: readonly RefundRow[],
  { chainId }: WrittenChain,
  finalBlock: number,
): RefundRow[] {
  return rows.map((row) => {
    const isDue = !row.final && row.chain_id === chainId && row.block_number <= finalBlock
    return isDue ? { ...row, final: true } : row
  })
}

/** Stores rows over those of the same event. */
export async function saveRefunds(trx: Knex, rows: readonly RefundRow[]) {
  for (let from = 0; from < rows.length; from += ROWS_A_STATEMENT) {
    await trx('refunds')
      .insert(rows.slice(from, from + ROWS_A_STATEMENT))
      .onConflict(['account_id', 'tx_hash', 'event_index', 'network'])
      .merge(['request_id', 'block_number', 'timestamp', 'final', 'amount', 'currency'])
  }
}
