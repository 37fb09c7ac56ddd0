import { Payment_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { lifeOf } from './payment-life.ts'

const at = (seconds: number, nanos = 0) => ({
  $typeName: 'google.protobuf.Timestamp' as const,
  seconds: BigInt(seconds),
  nanos,
})
const change = (status: Status, seconds: number) => ({
  $typeName: 'payments.v1.Payment.StatusChange' as const,
  status,
  at: at(seconds),
})
const refund = (amount: string, seconds?: number) => ({
  $typeName: 'payments.v1.Payment.Refund' as const,
  amount,
  currency: 'USDC-BASE',
  network: 'BASE',
  txHash: '0x00',
  ...(seconds !== undefined && { timestamp: at(seconds) }),
})

it('tells block, refunds and statuses in the order in which they happened', () => {
  const steps = lifeOf({
    timestamp: at(101),
    network: 'BASE',
    refunds: [refund('7'), refund('20', 300), refund('5', 200)],
    statusHistory: [change(Status.PENDING, 100), change(Status.CONFIRMED, 150), change(Status.REFUNDED, 300)],
  })
  const reported = steps.map((step) =>
    step.kind === 'status' ? step.status : step.kind === 'refund' ? step.refund.amount : step.kind,
  )
  expect(reported).toEqual(['block', 'PENDING', 'CONFIRMED', '5', '20', 'REFUNDED', '7'])
})
