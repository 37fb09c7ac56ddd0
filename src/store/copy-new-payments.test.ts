import { expect, it } from 'vitest'
import { generatePayments } from '../../test/support/data/search-payments.ts'
import { encodePaymentRow, nameRequestOfRow } from './payment-changes.ts'
import { rowOfPayment } from './payment-row.ts'

const origin = {
  account_id: 7,
  final: true,
  imported: true,
  detected: false,
  line_hash: Buffer.from('0102ff', 'hex'),
  line_updated_at: new Date(5),
}

it('gives a request to a row without one', () => {
  const requestId = `01${'ab'.repeat(32)}`
  for (const { payment } of generatePayments(7, 20, 5)) {
    const unnamed = encodePaymentRow(rowOfPayment({ ...payment, requestId: undefined }, origin))
    const named = encodePaymentRow(rowOfPayment({ ...payment, requestId }, origin))
    expect(nameRequestOfRow(unnamed, requestId)).toEqual(named)
  }
})
