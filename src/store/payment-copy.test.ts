import { expect, it } from 'vitest'
import { generatePayments } from '../../test/support/data/search-payments.ts'
import { type Payment, rankOfStatus } from '../domain/payment.ts'
import { encodeCopyRow } from '../postgres/copy-rows.ts'
import { encodePaymentRow, nameRequestOfRow } from './payment-copy.ts'
import { factsOfPayment, paymentColumns } from './payment-row.ts'

const origin = {
  account_id: 7,
  final: true,
  imported: true,
  detected: false,
  line_hash: Buffer.from('0102ff', 'hex'),
  line_updated_at: new Date(5),
}

const strange: Partial<Payment> = {
  reference: 'tab\there \\N and "quotes"',
  fees: [{ type: 'GAS', stage: 'SENDING', provider: 'a\\b', amount: '1', currency: 'ETH-BASE' }],
  exchangeRates: [{ from: 'EUR', to: 'USD', rate: '1.1', source: 'line\nbreak' }],
  gas: { amount: '0', currency: 'ETH-BASE' },
  blockNumber: 9_223_372_036_854_775_807n,
  initiator: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8' as never,
  confirmations: 0,
  superseded: true,
}

/** The row by the way that detection takes: through columns. */
function rowOf(payment: Payment): string {
  const row = {
    ...origin,
    ...factsOfPayment(payment),
    id: payment.id,
    status: rankOfStatus(payment.status),
    confirmations: payment.confirmations ?? null,
    updated_at: payment.updatedAt,
    refunded_amount: payment.refundedAmount,
    refunds: payment.refunds,
    status_history: payment.statusHistory,
    superseded: payment.superseded ?? false,
  }
  return encodeCopyRow(paymentColumns.map((column) => row[column]))
}

it('writes the same row as encodeCopyRow of the columns', () => {
  for (const { payment } of generatePayments(7, 200, 5)) {
    expect(encodePaymentRow(payment, origin).toString()).toBe(rowOf(payment))
    expect(encodePaymentRow({ ...payment, ...strange }, origin).toString()).toBe(rowOf({ ...payment, ...strange }))
  }
})

it('gives a request to a row without one', () => {
  const requestId = `01${'ab'.repeat(32)}`
  for (const { payment } of generatePayments(7, 20, 5)) {
    const unnamed = encodePaymentRow({ ...payment, requestId: undefined }, origin)
    expect(nameRequestOfRow(unnamed, requestId).toString()).toBe(rowOf({ ...payment, requestId }))
  }
})
