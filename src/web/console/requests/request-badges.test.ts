import { PaymentRequest_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { statesOf } from './request-badges.tsx'

const now = new Date('2026-11-23T12:00:00Z')
const before = stamp('2026-11-23T12:00:00Z')
const later = stamp('2026-11-23T12:00:01Z')

function stamp(at: string) {
  return { $typeName: 'google.protobuf.Timestamp' as const, seconds: BigInt(Date.parse(at) / 1000), nanos: 0 }
}

it.each([
  [{ status: Status.OPEN }, ['OPEN']],
  [{ status: Status.OPEN, expiresAt: later }, ['OPEN']],
  [{ status: Status.OPEN, expiresAt: before }, ['EXPIRED']],
  [{ status: Status.PARTIALLY_PAID, expiresAt: before }, ['EXPIRED', 'PARTIALLY_PAID']],
  [{ status: Status.PENDING, expiresAt: before }, ['PENDING']],
  [{ status: Status.PAID, expiresAt: before }, ['PAID']],
  [{ status: Status.PAID, overpaidAmount: '0.000001' }, ['OVERPAID']],
  [{ status: Status.PAID, cancelledAt: before }, ['PAID', 'CANCELLED']],
  [{ status: Status.OPEN, cancelledAt: before, expiresAt: before }, ['CANCELLED']],
  [{ status: Status.PARTIALLY_PAID, cancelledAt: before }, ['CANCELLED', 'PARTIALLY_PAID']],
  [{ status: Status.REFUNDED }, ['REFUNDED']],
])('%o is %s', (request, states) => {
  expect(statesOf({ overpaidAmount: '0', ...request }, now)).toEqual(states)
})
