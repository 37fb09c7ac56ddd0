/** The rows of a page that stays current: decides what a change does to them. Nothing here asks the service. */
import { type Payment, type WatchPaymentsResponse, WatchPaymentsResponse_Type } from '@waybill/client'

export interface LiveRows {
  readonly rows: readonly Payment[]
  /** Ids of rows whose payment no longer exists, or no longer matches. They keep their place, so that nothing jumps. */
  readonly gone: ReadonlySet<string>
  /** Payments that came while the tail was paused, newest first, as many as fit a page. */
  readonly held: readonly Payment[]
  /** How many came while the tail was paused, those included that are not held. */
  readonly heldCount: number
}

export const MAX_ROWS = 100

export function startRows(rows: readonly Payment[]): LiveRows {
  return { rows, gone: new Set(), held: [], heldCount: 0 }
}

/** Rows that are followed, and the answer of the search that they began with. */
export interface FollowedPage {
  readonly answer: { readonly payments: readonly Payment[] } | undefined
  readonly live: LiveRows
}

/** The rows to show: as an answer has them until they are followed, then as they are, also when none is left. */
export function liveRowsOf({ answer, live }: FollowedPage, latest: FollowedPage['answer']): LiveRows {
  return latest === undefined || latest === answer ? live : startRows(latest.payments)
}

export interface TailState {
  /** Whether new payments may be shown at the top: the first page, newest first. */
  readonly isTail: boolean
  readonly isPaused: boolean
}

/** Takes over the changes of a moment, in order. */
export function applyChanges(before: LiveRows, changes: readonly WatchPaymentsResponse[], tail: TailState): LiveRows {
  return changes.reduce((state, change) => applyChange(state, change, tail), before)
}

function applyChange(state: LiveRows, { type, id, payment }: WatchPaymentsResponse, tail: TailState): LiveRows {
  if (type === WatchPaymentsResponse_Type.REMOVED && id !== undefined) return remove(state, id, tail)
  if (payment === undefined) return state
  if (state.rows.some((row) => row.id === payment.id)) return replace(state, payment)
  if (state.held.some((row) => row.id === payment.id)) {
    return { ...state, held: state.held.map((row) => (row.id === payment.id ? payment : row)) }
  }
  if (!tail.isTail || type !== WatchPaymentsResponse_Type.ADDED) return state
  if (!isAboveLast(payment, state.rows)) return state
  if (tail.isPaused) {
    return { ...state, held: place(payment, state.held).slice(0, MAX_ROWS), heldCount: state.heldCount + 1 }
  }
  return { ...state, rows: place(payment, state.rows).slice(0, MAX_ROWS) }
}

function replace(state: LiveRows, payment: Payment): LiveRows {
  const gone = state.gone.has(payment.id) ? new Set([...state.gone].filter((id) => id !== payment.id)) : state.gone
  return { ...state, gone, rows: state.rows.map((row) => (row.id === payment.id ? payment : row)) }
}

function remove(state: LiveRows, id: string, { isPaused }: TailState): LiveRows {
  const isHeld = state.held.some((row) => row.id === id)
  const held = isHeld ? state.held.filter((row) => row.id !== id) : state.held
  const heldCount = isHeld ? state.heldCount - 1 : state.heldCount
  if (!state.rows.some((row) => row.id === id)) return { ...state, held, heldCount }
  if (isPaused) return { ...state, held, heldCount, gone: new Set([...state.gone, id]) }
  return { ...state, held, heldCount, rows: state.rows.filter((row) => row.id !== id) }
}

/** Shows what was held. */
export function resume({ rows, gone, held }: LiveRows): LiveRows {
  const left = rows.filter(({ id }) => !gone.has(id))
  return startRows(held.reduceRight((before, payment) => place(payment, before), left).slice(0, MAX_ROWS))
}

/** An old payment, such as an imported one, belongs to a later page. */
function isAboveLast(payment: Payment, rows: readonly Payment[]): boolean {
  const last = rows.at(-1)
  return last === undefined || isNewer(payment, last)
}

function place(payment: Payment, rows: readonly Payment[]): Payment[] {
  const at = rows.findIndex((row) => isNewer(payment, row))
  return at < 0 ? [...rows, payment] : rows.toSpliced(at, 0, payment)
}

/** The order of the search: newest first, equal times by id. */
function isNewer(left: Payment, right: Payment): boolean {
  const [leftAt, rightAt] = [left.timestamp?.seconds ?? 0n, right.timestamp?.seconds ?? 0n]
  return leftAt === rightAt ? left.id > right.id : leftAt > rightAt
}
