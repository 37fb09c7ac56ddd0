import { addressToBytes } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { DetectedRefund } from '../match/detected.ts'
import { rowKeyOf, type WrittenChain } from './payment-rows.ts'

/**
 * Merges detected refunds into an account's stored rows.
 *
 * @param areReread - whether they were read before: then a refund that differs replaces the stored one, else the stored one stays
 * @returns all rows, the stored ones included; a row that stays is the given one
 */
export function addRefunds(
  stored: readonly RefundRow[],
  { accountId, refunds }: { readonly accountId: number; readonly refunds: readonly DetectedRefund[] },
  chain: WrittenChain,
  areReread: boolean,
): RefundRow[] {
  const rows = new Map(stored.map((row) => [rowKeyOf(row), row]))
  for (const refund of refunds) {
    const row = toRow(accountId, refund, chain)
    const known = rows.get(rowKeyOf(row))
    const isReplaced = known !== undefined && areReread && !isSameRefund(known, row)
    if (known === undefined || isReplaced) rows.set(rowKeyOf(row), { ...row, final: known?.final ?? false })
  }
  return [...rows.values()]
}

function toRow(accountId: number, refund: DetectedRefund, { chainId, network }: WrittenChain): RefundRow {
  return {
    account_id: accountId,
    tx_hash: hexToBytes(refund.txHash),
    event_index: refund.eventIndex,
    network,
    chain_id: chainId,
    request_id: hexToBytes(refund.requestId),
    block_number: BigInt(refund.blockNumber),
    log_index: refund.logIndex,
    timestamp: refund.timestamp,
    final: false,
    amount: refund.amount,
    currency: refund.currency,
    recipient: addressToBytes(refund.recipient),
  }
}

function isSameRefund(a: RefundRow, b: RefundRow): boolean {
  const isSamePlace =
    a.block_number === b.block_number && a.log_index === b.log_index && a.timestamp.getTime() === b.timestamp.getTime()
  const isSameMoney = trimNumeric(a.amount) === b.amount && a.currency === b.currency
  return a.request_id.equals(b.request_id) && isSameMoney && isSamePlace && isSameRecipient(a, b)
}

function isSameRecipient({ recipient: a }: RefundRow, { recipient: b }: RefundRow): boolean {
  return a !== null && b !== null && a.equals(b)
}

/** Makes the chain's refunds up to a block final. @returns the given row where nothing changes */
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
