import type { Knex } from 'knex'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { type Account, isAccountName } from '../../domain/account.ts'
import { cutPage } from '../../domain/pages/cut-page.ts'
import { openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import {
  DEFAULT_PAGE_LIMIT,
  requireDateRange,
  requireFewValues,
  requirePageLimit,
  requireTxHash,
} from '../../domain/require-input.ts'
import { readAllInOrder, readEach } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import {
  findAccountIds,
  type ListedUnmatched,
  listUnmatched,
  type UnmatchedFilter,
  type UnmatchedPosition,
} from '../sql/unmatched-repository.ts'

/** What a caller asks for. Absent and empty fields were not given. */
export interface UnmatchedInput {
  /** Names. */
  readonly account?: readonly string[] | undefined
  readonly network?: readonly string[] | undefined
  readonly reason?: readonly UnmatchedReason[] | undefined
  readonly txHash?: readonly string[] | undefined
  readonly fromDate?: string | undefined
  readonly toDate?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** A page of unmatched events, newest first. */
export interface UnmatchedEvents {
  readonly events: readonly ListedUnmatched[]
  readonly limit: number
  readonly nextCursor: string | undefined
  readonly prevCursor: string | undefined
}

/** What listing needs. */
export interface UnmatchedLists {
  readonly knex: Knex
  readonly chains: ChainDirectory
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
}

/**
 * Lists unmatched events page by page.
 *
 * @param account - the only account whose events the caller may see; undefined: those of all accounts and of none
 * @throws WaybillError INVALID_FIELD, UNKNOWN_ACCOUNT, UNKNOWN_NETWORK, INVALID_TX_HASH, INVALID_DATE, INVALID_RANGE, TOO_MANY_VALUES, INVALID_LIMIT,
 *   INVALID_CURSOR, CURSOR_MISMATCH
 */
export async function pageUnmatched(
  lists: UnmatchedLists,
  account: Account | undefined,
  input: UnmatchedInput,
  signal?: AbortSignal,
): Promise<UnmatchedEvents> {
  const seal = { secret: lists.cursorSecret, scope: `${account?.id ?? 'all'}/unmatched`, version: 2 }
  const given = await parseFilter(lists, account, input)
  const carried = input.cursor === undefined ? undefined : (openCursor(seal, input.cursor) as Carried)
  if (carried !== undefined) checkMatches(carried.filter, given)
  const filter = carried?.filter ?? given
  const limit = requirePageLimit(input.limit) ?? carried?.limit ?? DEFAULT_PAGE_LIMIT
  const visible = account === undefined ? filter : onlyOf(account, filter)
  // One event more than the page holds tells whether another page follows.
  const found = await listUnmatched(lists.knex, visible, { rows: limit + 1, position: carried?.position }, signal)
  const cursorAt = (position: UnmatchedPosition) => sealCursor(seal, { filter, limit, position } satisfies Carried)
  const { entries, ...cursors } = cutPage(found, { limit, position: carried?.position }, positionOf, cursorAt)
  return { events: entries, limit, ...cursors }
}

/** Narrows a filter to an account, so that events of others do not exist for the caller. */
function onlyOf({ id }: Account, filter: UnmatchedFilter): UnmatchedFilter {
  const isAsked = filter.accountIds === undefined || filter.accountIds.includes(id)
  return { ...filter, accountIds: isAsked ? [id] : [] }
}

/** Reads the filters. Each given value becomes part of the filter or an error. */
async function parseFilter(
  { knex, chains }: UnmatchedLists,
  account: Account | undefined,
  input: UnmatchedInput,
): Promise<UnmatchedFilter> {
  const { account: names = [], network = [], reason = [], txHash = [] } = input
  const lists = Object.entries({ account: names, network, reason, txHash })
  readEach(lists, ([field, values]) => requireFewValues(field, values))
  const { accountIds, chainIds, txHashes, dates } = await readAllInOrder({
    accountIds: async () => {
      readEach(names, requireAccountName)
      const known = account === undefined ? await findAccountIds(knex, names) : new Map([[account.name, account.id]])
      return readEach(names, (name) => accountIdOf(known, name, account === undefined)).flat()
    },
    chainIds: () => readEach(network, (text) => chainIdsOf(chains, text)).flat(),
    txHashes: () => readEach(txHash, (text) => requireTxHash('txHash', text)),
    dates: () => requireDateRange(input),
  })
  return {
    accountIds: ifGiven(names, accountIds),
    chainIds: ifGiven(network, chainIds),
    reasons: ifGiven(reason, reason),
    txHashes: ifGiven(txHash, txHashes),
    ...dates,
  }
}

/** @throws WaybillError INVALID_FIELD */
function requireAccountName(name: string): void {
  if (isAccountName(name)) return
  const detail = 'a name has 1 to 64 of a-z, 0-9, ".", "_" and "-"'
  throw waybillError('INVALID_FIELD', { field: 'account', detail })
}

/** In one order and without repeats, so that equal filters are equal JSON, which cursors carry. */
function ifGiven<T extends string | number>(given: readonly unknown[], values: readonly T[]): readonly T[] | undefined {
  if (given.length === 0) return undefined
  return [...new Set(values)].toSorted((a, b) => (a < b ? -1 : 1))
}

/** @param mayKnow - whether the caller may learn which accounts there are */
function accountIdOf(known: ReadonlyMap<string, number>, name: string, mayKnow: boolean): readonly number[] {
  const id = known.get(name)
  if (id === undefined && mayKnow) throw waybillError('UNKNOWN_ACCOUNT', { value: name })
  return id === undefined ? [] : [id]
}

/** @returns none for a real chain whose name has another id in this configuration, as in a demo */
function chainIdsOf(chains: ChainDirectory, text: string): readonly string[] {
  const resolved = chains.resolve(text)
  if (resolved.kind === 'elsewhere') return []
  const chainId = resolved.kind === 'chain' ? chains.chainIdOf(resolved.name) : undefined
  if (chainId !== undefined) return [chainId]
  const suggestion = resolved.kind === 'unknown' ? resolved.suggest() : ''
  throw waybillError('UNKNOWN_NETWORK', { field: 'network', value: text, suggestion })
}

function positionOf(event: ListedUnmatched, direction: UnmatchedPosition['direction']): UnmatchedPosition {
  const { timestamp, chainId, blockNumber, txHash, eventIndex, accountId } = event
  return {
    key: [timestamp.getTime(), chainId, blockNumber, txHash, eventIndex, accountId],
    direction,
    inclusive: false,
  }
}

/** The contents of a cursor. */
interface Carried {
  readonly filter: UnmatchedFilter
  readonly limit: number
  readonly position: UnmatchedPosition
}

const filterNames = {
  accountIds: 'account',
  chainIds: 'network',
  reasons: 'reason',
  txHashes: 'txHash',
  fromDate: 'fromDate',
  toDate: 'toDate',
} as const satisfies Partial<Record<keyof UnmatchedFilter, string>>

/** @throws WaybillError CURSOR_MISMATCH with the first given filter that differs from the cursor's */
function checkMatches(carried: UnmatchedFilter, sent: UnmatchedFilter): void {
  for (const [name, field] of Object.entries(filterNames) as [keyof typeof filterNames, string][]) {
    if (sent[name] === undefined || JSON.stringify(sent[name]) === JSON.stringify(carried[name])) continue
    throw waybillError('CURSOR_MISMATCH', { field })
  }
}
