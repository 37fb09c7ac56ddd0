import type { Account } from '../domain/account.ts'
import { type CursorSeal, openCursor, sealCursor } from '../domain/sealed-cursor.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type FilterInput, filterNames, matchesCell, parseRequestFilter, type RequestFilter } from './request-filter.ts'
import type { KnownCurrencies } from './request-terms.ts'
import type {
  PagePosition,
  PageQuery,
  RequestCell,
  RequestListRepository,
  RequestSelection,
} from './sql/request-list-repository.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** Counting stops here, so that its cost is bounded. */
const COUNT_EXACT_TO = 10_000

/** The same where an estimate is asked for. */
const COUNT_CHEAPLY_TO = 1_000

/** The largest count that the wire's 32 bits hold. */
const LARGEST_COUNT = 2 ** 31 - 1

export type IncludeTotal = 'none' | 'estimated' | 'exact'

/** What a caller asks for; absent is not given. */
export interface ListInput extends FilterInput {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
}

/** How many requests match, and how exact the count is. */
export interface RequestTotal {
  readonly count: number
  readonly relation: 'EXACT' | 'AT_LEAST' | 'ESTIMATED'
}

/** A page of requests, newest first. */
export interface ListedRequests {
  readonly requests: readonly RequestWithBalance[]
  readonly limit: number
  readonly nextCursor?: string
  readonly prevCursor?: string
  /** Where it was asked for. */
  readonly total?: RequestTotal
}

/** What lists are made of. */
export interface ListOptions {
  readonly lists: RequestListRepository
  readonly known: KnownCurrencies
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
}

/**
 * Lists an account's requests that match all filters, newest first.
 *
 * @throws WaybillError INVALID_LIMIT, INVALID_CURSOR, CURSOR_MISMATCH, and what {@link parseRequestFilter} throws
 */
export async function listRequests(
  { lists, known, cursorSecret }: ListOptions,
  account: Account,
  input: ListInput,
  signal?: AbortSignal,
): Promise<ListedRequests> {
  const seal = { secret: cursorSecret, scope: `${account.name}/requests` }
  const cells = once(() => lists.cells(account, undefined, signal))
  const given = await parseRequestFilter(input, { ...known, cells })
  const carried = input.cursor === undefined ? undefined : readCursor(seal, input.cursor)
  if (carried !== undefined) checkMatches(carried.filter, given)
  const filter = carried?.filter ?? given
  const limit = parseLimit(input.limit) ?? carried?.limit ?? DEFAULT_LIMIT
  const selection = await select(filter, { lists, account, cells, signal })
  // One more than the page holds tells whether there is a page after it.
  const query = { selection, rows: limit + 1, position: carried?.position } satisfies PageQuery
  const found = matchesNothing(selection) ? [] : await lists.page(account, query, signal)
  const total = await countMatches(lists, { account, selection, includeTotal: input.includeTotal ?? 'none', signal })
  const page = cutPage(found, limit, carried?.position)
  const cursorAt = (position: PagePosition) => writeCursor(seal, { filter, limit, position })
  return {
    requests: page.requests,
    limit,
    ...(page.next !== undefined && { nextCursor: cursorAt(page.next) }),
    ...(page.previous !== undefined && { prevCursor: cursorAt(page.previous) }),
    ...(total !== undefined && { total }),
  }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

interface Selecting {
  readonly lists: RequestListRepository
  readonly account: Account
  readonly cells: () => Promise<readonly RequestCell[]>
  readonly signal: AbortSignal | undefined
}

/** Turns the networks, currencies and payees of a filter into those combinations of them that the account's requests have. */
async function select(filter: RequestFilter, { lists, account, cells, signal }: Selecting): Promise<RequestSelection> {
  const { status, reference, requestId, payee, network, currency, fromDate, toDate } = filter
  const isNamed = requestId !== undefined || reference !== undefined
  const byPayee = payee !== undefined && !isNamed
  const needsCells = network !== undefined || currency !== undefined || byPayee
  const all = needsCells ? await (byPayee ? lists.cells(account, payee, signal) : cells()) : undefined
  return {
    ...(status !== undefined && { statuses: status }),
    ...(reference !== undefined && { references: reference }),
    ...(requestId !== undefined && { requestIds: requestId }),
    ...(payee !== undefined && { payees: payee }),
    ...(all !== undefined && { cells: all.filter((cell) => matchesCell(filter, cell)) }),
    ...(fromDate !== undefined && { from: new Date(fromDate) }),
    ...(toDate !== undefined && { to: new Date(toDate) }),
  }
}

function matchesNothing({ cells }: RequestSelection): boolean {
  return cells?.length === 0
}

interface Counting {
  readonly account: Account
  readonly selection: RequestSelection
  readonly includeTotal: IncludeTotal
  readonly signal: AbortSignal | undefined
}

async function countMatches(
  lists: RequestListRepository,
  { account, selection, includeTotal, signal }: Counting,
): Promise<RequestTotal | undefined> {
  if (includeTotal === 'none') return undefined
  if (matchesNothing(selection)) return { count: 0, relation: 'EXACT' }
  const most = includeTotal === 'exact' ? COUNT_EXACT_TO : COUNT_CHEAPLY_TO
  const count = await lists.count(account, selection, most + 1, signal)
  if (count <= most) return { count, relation: 'EXACT' }
  if (includeTotal === 'exact') return { count: most, relation: 'AT_LEAST' }
  const expected = await lists.estimate(account, selection, signal)
  return { count: Math.min(Math.max(Math.round(expected), count), LARGEST_COUNT), relation: 'ESTIMATED' }
}

interface CutPage {
  /** Newest first. */
  readonly requests: readonly RequestWithBalance[]
  readonly next: PagePosition | undefined
  readonly previous: PagePosition | undefined
}

/** Turns what was found, one more than the page holds if there are so many, into the page and the positions around it. */
function cutPage(found: readonly RequestWithBalance[], limit: number, position: PagePosition | undefined): CutPage {
  const hasMore = found.length > limit
  const backward = position?.direction === 'NEWER'
  const kept = found.slice(0, limit)
  const requests = backward ? kept.toReversed() : kept
  const [first, last] = [requests.at(0), requests.at(-1)]
  if (first === undefined || last === undefined) return emptyPage(position)
  return {
    requests,
    // On the way back there is at least the page that this one was reached from.
    next: hasMore || backward ? positionOf(last, 'OLDER') : undefined,
    previous: (backward ? hasMore : position !== undefined) ? positionOf(first, 'NEWER') : undefined,
  }
}

/** Nothing behind the cursor matches any more: the page is empty but for a cursor back, which begins with the request that this one stood at. */
function emptyPage(position: PagePosition | undefined): CutPage {
  if (position === undefined) return { requests: [], next: undefined, previous: undefined }
  const back = { ...position, inclusive: !position.inclusive }
  return position.direction === 'OLDER'
    ? { requests: [], next: undefined, previous: { ...back, direction: 'NEWER' } }
    : { requests: [], next: { ...back, direction: 'OLDER' }, previous: undefined }
}

function positionOf({ request }: RequestWithBalance, direction: PagePosition['direction']): PagePosition {
  return { createdAt: request.createdAt, requestId: request.requestId, direction, inclusive: false }
}

/** Undefined when nothing was asked for: 0 is what clients without presence send. */
function parseLimit(limit: number | undefined): number | undefined {
  if (limit === undefined || limit === 0) return undefined
  if (!Number.isInteger(limit) || limit < 0) throw waybillError('INVALID_LIMIT', { value: limit })
  return Math.min(limit, MAX_LIMIT)
}

/** Raised when the payload changes its shape: older cursors are then refused, not misread. */
const VERSION = 2

interface CursorPayload {
  readonly v: number
  readonly f: RequestFilter
  readonly l: number
  /** Created at in milliseconds, request id, inclusive, direction. */
  readonly p: readonly [number, string, number, PagePosition['direction']]
}

interface Carried {
  readonly filter: RequestFilter
  readonly limit: number
  readonly position: PagePosition
}

function writeCursor(seal: CursorSeal, { filter, limit, position }: Carried): string {
  const { createdAt, requestId, inclusive, direction } = position
  const p = [createdAt.getTime(), requestId, inclusive ? 1 : 0, direction] as const
  return sealCursor(seal, { v: VERSION, f: filter, l: limit, p } satisfies CursorPayload)
}

/** @throws INVALID_CURSOR for anything that this seal did not make */
function readCursor(seal: CursorSeal, cursor: string): Carried {
  const payload = openCursor(seal, cursor)
  if (payload === undefined) {
    throw waybillError('INVALID_CURSOR', { detail: 'it was not made here for this account and list, or was changed' })
  }
  if (!isPayload(payload)) throw waybillError('INVALID_CURSOR', { detail: 'it is of another version' })
  const [createdAtMs, requestId, inclusive, direction] = payload.p
  const position = { createdAt: new Date(createdAtMs), requestId, inclusive: inclusive === 1, direction }
  return { filter: payload.f, limit: payload.l, position }
}

function isPayload(payload: unknown): payload is CursorPayload {
  return typeof payload === 'object' && payload !== null && 'v' in payload && payload.v === VERSION
}

/** @throws CURSOR_MISMATCH naming the first filter that was sent and is not what the cursor carries */
function checkMatches(carried: RequestFilter, sent: RequestFilter): void {
  for (const name of filterNames) {
    if (sent[name] === undefined || JSON.stringify(sent[name]) === JSON.stringify(carried[name])) continue
    throw waybillError('CURSOR_MISMATCH', { field: name })
  }
}
