/**
 * What a request must stand at, by the rules of money alone: a slow model that is written to be read, not run often. It imports nothing of the
 * service, so that a fault of the service is not a fault of the model. Amounts are base units.
 */

/** Where something stands in the order of the chain. Imported rows stand by their time. */
export interface Place {
  readonly timeSec: number
  readonly block: number
  readonly transaction: number
  readonly log: number
}

/** An event of a payment proxy, as its sender meant it. Addresses in lower case. */
export interface ModelEvent {
  readonly place: Place
  readonly txHash: string
  readonly eventIndex: number
  /** Which of the request's two references it carries. */
  readonly reference: 'REQUEST' | 'REFUND'
  /** Whose money moved directly: the sender of the Transfer; of coins, the direct caller of the proxy. */
  readonly from: string
  readonly to: string
  /** In the payment currency. */
  readonly amount: bigint
  /** In the invoice currency. */
  readonly worth: bigint
  /** Undefined while nobody knows, as of a bridge's delivery. */
  readonly payer: string | undefined
  readonly final: boolean
}

/** An imported payment of the request. */
export interface ModelImport {
  readonly id: string
  readonly timeSec: number
  readonly txHash: string | undefined
  readonly eventIndex: number | undefined
  readonly amount: bigint
  readonly worth: bigint
  readonly payer: string | undefined
  readonly status: 'CONFIRMED' | 'PENDING' | 'FAILED'
  /** Whether detection saw its transaction's event, and a reorg removed that. */
  readonly gone: boolean
}

export interface ModelRequest extends Expected {
  readonly payee: string
  readonly refundAddress: string | undefined
  /** The account's refund wallets, registered before everything. */
  readonly wallets: ReadonlySet<string>
}

/** A part of a refund, as it stands among the refunds of a payment. */
export interface ModelEntry {
  readonly txHash: string
  readonly eventIndex: number
  readonly amount: bigint
  readonly excess: boolean
}

export interface ModelPayment {
  /** `txHash eventIndex`; of an imported row that no event stands for, its id. */
  readonly key: string
  readonly amount: bigint
  readonly status: string
  readonly refunds: readonly ModelEntry[]
}

export interface ModelStanding {
  readonly status: string
  readonly paid: bigint
  readonly pending: bigint
  readonly outstanding: bigint
  readonly overpaid: bigint
  /** Those that count, and those that failed. */
  readonly payments: readonly ModelPayment[]
}

/** A payment that counts. */
export interface Paid {
  readonly key: string
  readonly place: Place
  /** In the payment currency. */
  readonly amount: bigint
  /** In the invoice currency, which is what a request is counted in. */
  readonly worth: bigint
  readonly payer: string | undefined
  readonly final: boolean
}

/** A refund that counts, in the payment currency. */
export interface Returned {
  readonly place: Place
  readonly txHash: string
  readonly eventIndex: number
  readonly to: string
  readonly amount: bigint
  readonly final: boolean
}

/** What is expected of a request, in the invoice currency, and whether it takes payments. */
export interface Expected {
  readonly amount: bigint
  readonly cancelled: boolean
  readonly expired: boolean
}

/** @see CHAIN, "Status, outstanding, refunds" and "Imports beside detection" */
export function standingOf(
  request: ModelRequest,
  events: readonly ModelEvent[],
  imports: readonly ModelImport[],
): ModelStanding {
  const inOrder = events.toSorted((a, b) => compare(a.place, b.place))
  const paying = inOrder.filter((event) => isPayment(request, event))
  const refunds = inOrder.filter((event) => isRefund(request, event, paying))
  const paid = [
    ...paying.map((event) => ({ ...event, key: keyOf(event) })),
    ...imports.filter((row) => counts(request, row, paying)).map(paidByImport),
  ]
  const failed = imports.filter(
    (row) => row.status === 'FAILED' && row.txHash !== undefined && !isOfAnEvent(row, paying) && !row.gone,
  )
  const standing = settle(request, paid, refunds)
  const failedPayments = failed.map(({ id, amount }) => ({ key: id, amount, status: 'FAILED', refunds: [] }))
  return { ...standing, payments: [...standing.payments, ...failedPayments] }
}

/** Decides what payments and refunds make of a request. Amounts of the request are in the invoice currency. */
export function settle(request: Expected, payments: readonly Paid[], refunds: readonly Returned[]): ModelStanding {
  const all = walk(request.amount, payments, refunds)
  const final = walk(
    request.amount,
    payments.filter((payment) => payment.final),
    refunds.filter((refund) => refund.final),
  )
  const statusOf = (payment: Paid) => {
    if (!payment.final) return 'PENDING'
    if (returnedOf(final.entries.get(payment.key) ?? []) >= payment.amount) return 'REFUNDED'
    return final.isCovered ? 'CONFIRMED' : 'PARTIAL'
  }
  return {
    status: requestStatus(request, all, final),
    paid: final.isCovered ? final.gross : final.held,
    pending: worthOf(payments.filter((payment) => !payment.final)),
    outstanding: all.isCovered ? 0n : request.amount - all.held,
    overpaid: all.held > request.amount ? all.held - request.amount : 0n,
    payments: payments.map((payment) => ({
      key: payment.key,
      amount: payment.amount,
      status: statusOf(payment),
      refunds: all.entries.get(payment.key) ?? [],
    })),
  }
}

const keyOf = ({ txHash, eventIndex }: ModelEvent) => `${txHash} ${eventIndex}`

/** Nobody pays themselves: neither where the money comes from the payee directly, nor where a bridge carried the payee's money. */
function isPayment({ payee }: ModelRequest, { reference, to, from, payer }: ModelEvent): boolean {
  return reference === 'REQUEST' && to === payee && from !== payee && payer !== payee
}

function isRefund(request: ModelRequest, event: ModelEvent, payments: readonly ModelEvent[]): boolean {
  const { payee, wallets, refundAddress } = request
  if (event.from === event.to) return false
  if (event.from !== payee && !wallets.has(event.from)) return false
  if (event.reference === 'REFUND') return event.to === refundAddress
  if (event.to === payee) return false
  const earlier = payments.filter(({ place }) => compare(place, event.place) < 0)
  if (earlier.some(({ payer }) => payer === event.to)) return true
  return earlier.some(({ payer }) => payer === undefined) && !wallets.has(event.to)
}

/** Whether events stand for an imported row, so that it counts nothing. */
function isOfAnEvent(row: ModelImport, payments: readonly ModelEvent[]): boolean {
  return payments.some(
    ({ txHash, eventIndex }) =>
      txHash === row.txHash && (row.eventIndex === undefined || row.eventIndex === eventIndex),
  )
}

/** The request's chain is followed, so a row without a transaction never counts. */
function counts({ payee }: ModelRequest, row: ModelImport, payments: readonly ModelEvent[]): boolean {
  if (row.status === 'FAILED' || row.txHash === undefined || row.payer === payee) return false
  return !row.gone && !isOfAnEvent(row, payments)
}

function paidByImport({ id, timeSec, amount, worth, payer, status }: ModelImport): Paid {
  const place = { timeSec, block: 0, transaction: 0, log: 0 }
  return { key: id, place, amount, worth, payer, final: status !== 'PENDING' }
}

interface Walked {
  readonly isCovered: boolean
  /** What the payee holds. */
  readonly held: bigint
  /** What was paid, whatever was returned of it. */
  readonly gross: bigint
  readonly entries: ReadonlyMap<string, readonly ModelEntry[]>
}

/** Takes payments and refunds in the order of the chain. Refunds that are not final are entries, and lower nothing. */
function walk(expected: bigint, payments: readonly Paid[], refunds: readonly Returned[]): Walked {
  const entries = new Map<string, ModelEntry[]>(payments.map(({ key }) => [key, []]))
  const before: Paid[] = []
  /** Refunds before the first payment return nothing; they stand on that payment. */
  const early: Returned[] = []
  let [held, isCovered] = [0n, false]
  const steps = [
    ...payments.map((payment) => ({ place: payment.place, payment })),
    ...refunds.map((refund) => ({ place: refund.place, refund })),
  ]
  for (const step of steps.toSorted((a, b) => compare(a.place, b.place))) {
    if ('payment' in step) {
      before.push(step.payment)
      for (const refund of early.splice(0)) addExcess(refund, step.payment, refund.amount, entries)
      held += step.payment.worth
      isCovered ||= held >= expected
      continue
    }
    if (before.length === 0) early.push(step.refund)
    for (const { payment, worth } of giveBack(step.refund, before, entries)) {
      const wentToPayer = payment.payer === step.refund.to
      if (step.refund.final && (isCovered || wentToPayer)) held -= worth
    }
  }
  return { isCovered, held, gross: worthOf(payments), entries }
}

/** @returns what the refund returned of each payment; what was more than all of them is left out */
function giveBack(refund: Returned, before: readonly Paid[], entries: Map<string, ModelEntry[]>) {
  const newestFirst = before.toReversed()
  const own = newestFirst.filter(({ payer }) => payer === refund.to)
  const others = newestFirst.filter(({ payer }) => payer !== refund.to)
  const { txHash, eventIndex } = refund
  const parts: { payment: Paid; worth: bigint }[] = []
  let left = refund.amount
  for (const payment of [...own, ...others]) {
    const list = entries.get(payment.key) ?? []
    const returned = returnedOf(list)
    const space = payment.amount - returned
    const amount = left < space ? left : space
    if (amount === 0n) continue
    list.push({ txHash, eventIndex, amount, excess: false })
    parts.push({ payment, worth: worthOfPart(payment, returned + amount) - worthOfPart(payment, returned) })
    left -= amount
  }
  const newest = newestFirst[0]
  if (left > 0n && newest !== undefined) addExcess(refund, newest, left, entries)
  return parts
}

function addExcess(
  { txHash, eventIndex }: Returned,
  { key }: Paid,
  amount: bigint,
  entries: Map<string, ModelEntry[]>,
) {
  entries.get(key)?.push({ txHash, eventIndex, amount, excess: true })
}

/** What a part of a payment counts for, rounded down; all of it counts for all. */
const worthOfPart = ({ amount, worth }: Paid, part: bigint) => (worth * part) / amount
const worthOf = (payments: readonly Paid[]) => payments.reduce((total, { worth }) => total + worth, 0n)
const returnedOf = (entries: readonly ModelEntry[]) =>
  entries.reduce((total, { amount, excess }) => (excess ? total : total + amount), 0n)

function requestStatus({ cancelled, expired }: Expected, all: Walked, final: Walked): string {
  if (all.isCovered && all.held === 0n) return 'REFUNDED'
  if (final.isCovered) return 'PAID'
  if (all.isCovered) return 'PENDING'
  if (cancelled) return 'CANCELLED'
  if (expired) return 'EXPIRED'
  return all.held > 0n ? 'PARTIALLY_PAID' : 'OPEN'
}

function compare(a: Place, b: Place): number {
  return a.timeSec - b.timeSec || a.block - b.block || a.transaction - b.transaction || a.log - b.log
}
