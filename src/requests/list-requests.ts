import type { Account } from '../domain/account.ts'
import { cutPage, requireSame } from '../domain/pages/cut-page.ts'
import { openCursor, sealCursor } from '../domain/pages/sealed-cursor.ts'
import { type IncludeTotal, MAX_CHEAP_COUNT, MAX_COUNT, MAX_EXACT_COUNT, type Total } from '../domain/pages/total.ts'
import { DEFAULT_PAGE_LIMIT, requirePageLimit } from '../domain/require-input.ts'
import { readAllInOrder, readOnce } from '../errors/gather-errors.ts'
import { type FilterInput, findCurrencies, parseRequestFilter, type RequestFilter } from './rules/request-filter.ts'
import type { KnownCurrencies } from './rules/request-terms.ts'
import type { PagePosition } from './sql/request-attempts.ts'
import type { MatchingRequests } from './sql/request-conditions.ts'
import type { RequestListRepository } from './sql/request-list-repository.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'

/** What a caller asks for. Absent fields were not given. */
export interface ListInput extends FilterInput {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
}

/** A page of requests, newest first. */
export interface ListedRequests {
  readonly requests: readonly RequestWithBalance[]
  readonly limit: number
  readonly nextCursor: string | undefined
  readonly prevCursor: string | undefined
  /** Undefined where it was not asked for. */
  readonly total: Total | undefined
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
  const currencies = readOnce(() => lists.currencies(account, signal))
  const { seal, given, carried, sentLimit } = await readList({ known, cursorSecret }, account, input, currencies)
  const filter = carried?.filter ?? given
  const limit = sentLimit ?? carried?.limit ?? DEFAULT_PAGE_LIMIT
  const matching = await match(filter, currencies, now())
  // One request more than the page holds tells whether another page follows.
  const query = { matching, rows: limit + 1, position: carried?.position }
  const found = await lists.page(account, query, signal)
  const total = await countMatches(lists, account, matching, input.includeTotal ?? 'none', signal)
  const cursorAt = (position: PagePosition) => sealCursor(seal, { filter, limit, position } satisfies Carried)
  const { entries, ...cursors } = cutPage(found, { limit, position: carried?.position }, positionOf, cursorAt)
  return { requests: entries, limit, ...cursors, total }
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
  const currencies = readOnce(() => lists.currencies(account, signal))
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
  const currencies = readOnce(() => options.lists.currencies(account, signal))
  return readList(options, account, input, currencies)
}

async function readList(
  { known, cursorSecret }: Pick<ListOptions, 'known' | 'cursorSecret'>,
  account: Account,
  input: ListInput,
  currencies: ReadCurrencies,
) {
  // The version is raised when a filter is added or means something else, too: processes that do not know it refuse the cursor.
  const seal = { secret: cursorSecret, scope: `${account.name}/requests`, version: 5 }
  const sent = await readAllInOrder({
    given: () => parseRequestFilter(input, { ...known, currencies }),
    carried: () => (input.cursor === undefined ? undefined : (openCursor(seal, input.cursor) as Carried)),
    sentLimit: () => requirePageLimit(input.limit),
  })
  if (sent.carried !== undefined) requireSame({ ...sent.carried.filter }, { ...sent.given }, Object.keys(sent.given))
  return { seal, ...sent }
}

async function countMatches(
  lists: RequestListRepository,
  account: Account,
  matching: MatchingRequests,
  includeTotal: IncludeTotal,
  signal: AbortSignal | undefined,
): Promise<Total | undefined> {
  if (includeTotal === 'none') return undefined
  const limit = includeTotal === 'exact' ? MAX_EXACT_COUNT : MAX_CHEAP_COUNT
  const count = await lists.count(account, matching, limit + 1, signal)
  if (count <= limit) return { count, relation: 'EXACT' }
  if (includeTotal === 'exact') return { count: limit, relation: 'AT_LEAST' }
  const expected = await lists.estimate(account, matching, signal)
  return { count: Math.min(Math.max(Math.round(expected), count), MAX_COUNT), relation: 'ESTIMATED' }
}

function positionOf({ request }: RequestWithBalance, direction: PagePosition['direction']): PagePosition {
  return { createdAtMs: request.createdAt.getTime(), requestId: request.requestId, direction, inclusive: false }
}

/** The contents of a cursor. */
interface Carried {
  readonly filter: RequestFilter
  readonly limit: number
  readonly position: PagePosition
}
