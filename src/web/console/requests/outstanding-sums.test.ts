import { PaymentRequest_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { sumOutstanding } from './outstanding-sums.ts'

const now = new Date('2026-11-23T12:00:00Z')
const past = { $typeName: 'google.protobuf.Timestamp' as const, seconds: 1n, nanos: 0 }

it('adds what can still be paid, exactly and by currency', () => {
  const owed = (invoiceCurrency: string, outstandingAmount: string, more = {}) => ({
    status: Status.OPEN,
    overpaidAmount: '0',
    invoiceCurrency,
    outstandingAmount,
    ...more,
  })
  const sums = sumOutstanding(
    [
      owed('EUR', '0.10'),
      owed('USDC-POLYGON', '0.000001'),
      owed('USDC-BASE', '9007199254740993'),
      owed('USDC-BASE', '5', { cancelledAt: past }),
      owed('USDC-BASE', '7', { expiresAt: past }),
      owed('USDC-BASE', '0', { status: Status.PENDING }),
    ],
    now,
  )
  expect(sums).toEqual([
    {
      symbol: 'USDC',
      amount: '9007199254740993.000001',
      requests: 2,
      parts: [
        { network: 'BASE', amount: '9007199254740993' },
        { network: 'POLYGON', amount: '0.000001' },
      ],
    },
    { symbol: 'EUR', amount: '0.1', requests: 1, parts: [{ network: undefined, amount: '0.1' }] },
  ])
})
