/** What the services answered about a request, in the form in which it is judged. */

import { formatUnits } from 'viem'
import type { ExpectedState, KnownRequest } from '../model/expected-state.ts'

/** An answer about one request, and when it had arrived: milliseconds since 1970. */
export interface Answer {
  readonly request: KnownRequest
  readonly service: string
  readonly atMs: number
  readonly seen: SeenPayments | SeenBalance
}

interface SeenPayments {
  readonly kind: 'PAYMENTS'
  /** The block up to which the chain was looked at, as the answer says. */
  readonly asOf: number | undefined
  readonly payments: readonly SeenPayment[]
}

interface SeenPayment {
  readonly key: string
  readonly block: number
  readonly amount: string
  readonly payer: string
  readonly status: string
  readonly refunds: string
}

interface SeenBalance {
  readonly kind: 'BALANCE'
  readonly balance: string
}

interface PaymentJson {
  readonly txHash: string
  readonly eventIndex: number
  readonly blockNumber: string
  readonly amount: string
  readonly payer?: string
  readonly status: string
  readonly refunds: readonly RefundJson[]
}

interface RefundJson {
  readonly txHash: string
  readonly eventIndex: number
  readonly amount: string
  readonly excess?: boolean
}

/** @param answer - of SearchPayments */
export function readPayments(answer: object, network: string): SeenPayments {
  const { payments, asOf } = answer as {
    payments: PaymentJson[]
    asOf: { network: string; block?: string }[]
  }
  const block = asOf.find((each) => each.network === network)?.block
  return {
    kind: 'PAYMENTS',
    asOf: block === undefined ? undefined : Number(block),
    payments: payments
      .map((payment) => ({
        key: `${payment.txHash} ${payment.eventIndex}`,
        block: Number(payment.blockNumber),
        amount: payment.amount,
        payer: payment.payer?.toLowerCase() ?? '',
        status: payment.status,
        refunds: payment.refunds.map(describeRefund).join(),
      }))
      .toSorted(byKey),
  }
}

/** @param answer - of GetPaymentRequest */
export function readBalance(answer: object): SeenBalance {
  const request = answer as Record<string, string>
  const amounts = ['paidAmount', 'pendingAmount', 'outstandingAmount', 'overpaidAmount'].map((name) => request[name])
  return { kind: 'BALANCE', balance: [request['status'], ...amounts].join(' ') }
}

const describeRefund = ({ txHash, eventIndex, amount, excess = false }: RefundJson) =>
  `${txHash} ${eventIndex} ${amount}${excess ? ' excess' : ''}`

const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)

/** Whether an answer shows exactly this state. */
export function shows({ seen, request }: Pick<Answer, 'seen' | 'request'>, expected: ExpectedState): boolean {
  if (seen.kind === 'BALANCE') return seen.balance === balanceText(expected)
  const wanted = describePayments(request, expected)
  return (
    wanted.length === seen.payments.length &&
    wanted.every((each, index) => {
      const other = seen.payments[index]
      return (
        other !== undefined &&
        other.key === each.key &&
        other.block === each.block &&
        other.amount === each.amount &&
        other.status === each.status &&
        other.refunds === each.refunds &&
        (other.payer === each.payer || (each.mayLackPayer && other.payer === ''))
      )
    })
  )
}

export function balanceText({ request }: ExpectedState): string {
  const { status, paid, pending, outstanding, overpaid } = request
  return [status, paid, pending, outstanding, overpaid].join(' ')
}

export function describePayments({ decimals }: KnownRequest, { payments }: ExpectedState) {
  return payments
    .map((payment) => ({
      key: `${payment.txHash} ${payment.eventIndex}`,
      block: payment.block,
      amount: payment.amount,
      payer: payment.payer,
      mayLackPayer: payment.mayLackPayer,
      status: payment.status,
      refunds: payment.refunds
        .map((entry) => describeRefund({ ...entry, amount: formatUnits(entry.amount, decimals) }))
        .join(),
    }))
    .toSorted(byKey)
}
