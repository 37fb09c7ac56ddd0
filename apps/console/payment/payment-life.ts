/** The life of a payment as steps, from what the service tells of it. */
import { type Payment, Payment_Status as Status } from '@waybill/client'
import type { StampedTime } from '../../shared/format-time.ts'

export type StatusName = Exclude<keyof typeof Status, 'STATUS_UNSPECIFIED'>

/** One thing that happened. `at` is absent where the chain or the import does not tell. */
export type LifeStep =
  | { readonly kind: 'block'; readonly at: StampedTime; readonly network: string }
  | { readonly kind: 'status'; readonly at: StampedTime; readonly status: StatusName }
  | { readonly kind: 'refund'; readonly at: StampedTime | undefined; readonly refund: Payment['refunds'][number] }

type LivedPayment = Pick<Payment, 'timestamp' | 'network' | 'refunds' | 'statusHistory'>

/** Of what happened in one moment, this is the order. */
const RANK = { block: 0, refund: 1, status: 2 } as const

/** @returns oldest first; the block before all, since its time is its miner's and may be ahead; refunds whose time is not known last */
export function lifeOf({ timestamp, network, refunds, statusHistory }: LivedPayment): readonly LifeStep[] {
  const block: readonly LifeStep[] = timestamp === undefined ? [] : [{ kind: 'block', at: timestamp, network }]
  const steps: LifeStep[] = [
    ...refunds.map((refund) => ({ kind: 'refund' as const, at: refund.timestamp, refund })),
    ...statusHistory.flatMap(({ status, at }) =>
      at === undefined ? [] : [{ kind: 'status' as const, at, status: statusNameOf(status) }],
    ),
  ]
  return [...block, ...steps.toSorted((a, b) => compareTimes(a.at, b.at) || RANK[a.kind] - RANK[b.kind])]
}

export function statusNameOf(status: Status): StatusName {
  return Status[status] as StatusName
}

function compareTimes(a: StampedTime | undefined, b: StampedTime | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return a.seconds === b.seconds ? a.nanos - b.nanos : a.seconds < b.seconds ? -1 : 1
}
