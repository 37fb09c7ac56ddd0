import type { Knex } from 'knex'
import { trimNumeric } from '../../domain/decimal.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { RefundRow } from '../../store/request-ledger.ts'
import type { AccountChange } from './ledger-repository.ts'
import type { WrittenChain } from './payment-rows.ts'

/** Rows in one statement; a statement has at most 65,535 parameters. */
const ROWS_A_STATEMENT = 500

/** Adds those that are not stored yet. One that was looked at again and is another now is stored in the place of the old one. */
export function addRefunds(
  stored: readonly RefundRow[],
  chain: WrittenChain,
  { accountId, refunds, rereadEvents }: Pick<AccountChange, 'accountId' | 'refunds' | 'rereadEvents'>,
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
    const known = rows.get(keyOf(row))
    const isOther = known !== undefined && rereadEvents !== undefined && !isSameRefund(known, row)
    if (known === undefined || isOther) rows.set(keyOf(row), { ...row, final: known?.final ?? false })
  }
  return [...rows.values()]
}

function isSameRefund(a: RefundRow, b: RefundRow): boolean {
  return a.request_id.equals(b.request_id) && trimNumeric(a.amount) === b.amount && a.block_number === b.block_number
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
