import type { Account } from '../domain/account.ts'
import { cutPage } from '../domain/pages/cut-page.ts'
import { type CursorSeal, openCursorOfVersion, sealCursor } from '../domain/pages/sealed-cursor.ts'
import { DEFAULT_PAGE_LIMIT, requirePageLimit } from '../domain/require-input.ts'
import { readAllInTurn } from '../errors/gather-errors.ts'
import { waybillError } from '../errors/waybill-error.ts'
import {
  type FilterInput,
  filterNames,
  findCurrencies,
  parseRequestFilter,
  type RequestFilter,
} from './request-filter.ts'
import type { KnownCurrencies } from './request-terms.ts'
import type { PagePosition } from './sql/request-attempts.ts'
import type { MatchingRequests } from './sql/request-conditions.ts'
import type { RequestListRepository } from './sql/request-list-repository.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'

/** An exact count stops here, so that its cost is bounded. */
const MAX_EXACT_COUNT = 10_000

/** Instead of estimating, matches are counted up to this number. */
const MAX_CHEAP_COUNT = 1_000

/** The largest count that the API's int32 holds. */
const MAX_COUNT = 2 ** 31 - 1

export type IncludeTotal = 'none' | 'estimated' | 'exact'

/** What a caller asks for. Absent fields were not given. */
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
  readonly nextCursor: string | undefined
  readonly prevCursor: string | undefined
  /** Undefined where it was not asked for. */
  readonly total: RequestTotal | undefined
}

/** What lists are made of. */
export interface ListOptions {
  readonly lists: RequestListRepository
  readonly known: KnownCurrencies
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
  readonly now: () => Date
}

/**
 * Lists an account's requests that match all filters, newest first.
 *
 * @throws WaybillError INVALID_LIMIT, INVALID_CURSOR, CURSOR_MISMATCH, and what {@link parseRequestFilter} throws
 */
export async function listRequests(
  { lists, known, cursorSecret, now }: ListOptions,
  account: Account,
  input: ListInput,
  signal?: AbortSignal,
): Promise<ListedRequests> {
  const currencies = once(() => lists.currencies(account, signal))
  const { seal, given, carried, sentLimit } = await readList({ known, cursorSecret }, { account, input, currencies })
  const filter = carried?.filter ?? given
  const limit = sentLimit ?? carried?.limit ?? DEFAULT_PAGE_LIMIT
  const matching = await match(filter, currencies, now())
  // One request more than the page holds tells whether another page follows.
  const query = { matching, rows: limit + 1, position: carried?.position }
  const found = await lists.page(account, query, signal)
  const total = await countMatches(lists, { account, matching, includeTotal: input.includeTotal ?? 'none', signal })
  const page = cutPage(found, limit, carried?.position, positionOf)
  const cursorAt = (position: PagePosition) => writeCursor(seal, { filter, limit, position })
  return {
    requests: page.entries,
    limit,
    nextCursor: page.next && cursorAt(page.next),
    prevCursor: page.previous && cursorAt(page.previous),
    total,
  }
}

/**
 * What the filters match, read as {@link listRequests} does, where no order is asked for.
 *
 * @throws WaybillError as {@link parseRequestFilter}
 */
export async function findMatching(
  { lists, known, now }: Omit<ListOptions, 'cursorSecret'>,
  account: Account,
  input: FilterInput,
  signal?: AbortSignal,
): Promise<MatchingRequests> {
  const currencies = once(() => lists.currencies(account, signal))
  return match(await parseRequestFilter(input, { ...known, currencies }), currencies, now())
}

type ReadCurrencies = () => Promise<readonly string[]>

async function match(filter: RequestFilter, currencies: ReadCurrencies, now: Date): Promise<MatchingRequests> {
  const isOfCurrencies = filter.network !== undefined || filter.currency !== undefined
  return { filter, currencies: findCurrencies(filter, isOfCurrencies ? await currencies() : []), now }
}

/** Reads what was sent, as {@link listRequests} does. @throws WaybillError of kind INVALID_INPUT */
export function checkList(
  options: ListOptions,
  account: Account,
  input: ListInput,
  signal?: AbortSignal,
): Promise<unknown> {
  const currencies = once(() => options.lists.currencies(account, signal))
  return readList(options, { account, input, currencies })
}

interface SentList {
  readonly account: Account
  readonly input: ListInput
  readonly currencies: ReadCurrencies
}

async function readList(
  { known, cursorSecret }: Pick<ListOptions, 'known' | 'cursorSecret'>,
  { account, input, currencies }: SentList,
) {
  const seal = { secret: cursorSecret, scope: `${account.name}/requests` }
  const sent = await readAllInTurn({
    given: () => parseRequestFilter(input, { ...known, currencies }),
    carried: () => (input.cursor === undefined ? undefined : readCursor(seal, input.cursor)),
    sentLimit: () => requirePageLimit(input.limit),
  })
  if (sent.carried !== undefined) checkMatches(sent.carried.filter, sent.given)
  return { seal, ...sent }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

interface Counting {
  readonly account: Account
  readonly matching: MatchingRequests
  readonly includeTotal: IncludeTotal
  readonly signal: AbortSignal | undefined
}

async function countMatches(
  lists: RequestListRepository,
  { account, matching, includeTotal, signal }: Counting,
): Promise<RequestTotal | undefined> {
  if (includeTotal === 'none') return undefined
  const limit = includeTotal === 'exact' ? MAX_EXACT_COUNT : MAX_CHEAP_COUNT
  const count = await lists.count(account, matching, limit + 1, signal)
  if (count <= limit) return { count, relation: 'EXACT' }
  if (includeTotal === 'exact') return { count: limit, relation: 'AT_LEAST' }
  const expected = await lists.estimate(account, matching, signal)
  return { count: Math.min(Math.max(Math.round(expected), count), MAX_COUNT), relation: 'ESTIMATED' }
}

function positionOf({ request }: RequestWithBalance, direction: PagePosition['direction']): PagePosition {
  return { createdAt: request.createdAt, requestId: request.requestId, direction, inclusive: false }
}

/** Raised when a filter is added or means something else: processes that do not know it refuse the cursor. */
const VERSION = 4

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

/** @throws WaybillError INVALID_CURSOR for anything that this seal did not make */
function readCursor(seal: CursorSeal, cursor: string): Carried {
  const opened = openCursorOfVersion<CursorPayload>(seal, cursor, VERSION)
  if (!opened.ok) throw waybillError('INVALID_CURSOR', { detail: opened.detail })
  const { payload } = opened
  const [createdAtMs, requestId, inclusive, direction] = payload.p
  const position = { createdAt: new Date(createdAtMs), requestId, inclusive: inclusive === 1, direction }
  return { filter: payload.f, limit: payload.l, position }
}

/** @throws WaybillError CURSOR_MISMATCH with the first given filter that differs from the cursor's */
function checkMatches(carried: RequestFilter, sent: RequestFilter): void {
  for (const name of filterNames) {
    if (sent[name] === undefined || JSON.stringify(sent[name]) === JSON.stringify(carried[name])) continue
    throw waybillError('CURSOR_MISMATCH', { field: name })
  }
}
