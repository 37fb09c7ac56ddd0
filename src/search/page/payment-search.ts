import type { Knex } from 'knex'
import type { ChainDirectory } from '../../chains/chain-directory.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Account } from '../../domain/account.ts'
import { caip2Of } from '../../domain/chain.ts'
import { given } from '../../domain/collections.ts'
import { cutPage, requireSame } from '../../domain/pages/cut-page.ts'
import { openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import type { Total } from '../../domain/pages/total.ts'
import type { Payment } from '../../domain/payment.ts'
import { DEFAULT_PAGE_LIMIT, requirePageLimit, requirePaymentId } from '../../domain/require-input.ts'
import { DEFAULT_TIME_ZONE } from '../../domain/time-zone.ts'
import { readAllInOrder, readOnce } from '../../errors/gather-errors.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { parseFilter } from '../filter/parse-filter.ts'
import { amountBasis, type PaymentFilter, type SearchInput } from '../filter/payment-filter.ts'
import { type FilterValues, filterFields, sortKeysOf } from '../filter/search-fields.ts'
import type { LadderOptions } from '../plan/ladder.ts'
import { type CarriedSearch, encodeWatchCursor, type PagePosition, searchSeal, watchSeal } from '../query/page-query.ts'
import { createAccountNamesReader } from '../sql/account-names.ts'
import type { ChainProgress } from '../sql/chain-progress.ts'
import { countMatches } from '../sql/count-matches.ts'
import type { RemovedPayment } from '../sql/removed-payments.ts'
import { createPaymentRepository, type Entry, isRemoved } from './payment-repository.ts'

/** One page of a search. */
export interface PaymentPage {
  readonly payments: readonly Payment[]
  readonly pagination: {
    /** After clamping. */
    readonly limit: number
    /** Undefined on the last page. */
    readonly nextCursor?: string | undefined
    /** Undefined on the first page. */
    readonly prevCursor?: string | undefined
    /** Undefined where none was requested. */
    readonly total?: Total | undefined
  }
  /** One for each configured chain, in the order of the configuration. */
  readonly asOf: readonly ChainAsOf[]
  /** In the order of changes: the removed payments that belong to the page, and the moment up to which it knows all changes. */
  readonly removed: readonly RemovedPayment[]
  readonly completeTo?: Date | undefined
  /** A watch that begins here sends every change that the page does not reflect. */
  readonly watchCursor: string
  /** Whether the page of the cursor reflects changes that this page does not: a replica has not replayed them yet. */
  readonly isOlderThanCursor?: boolean
}

/** Up to which block all of a chain is read; without a block and time, nothing or an unknown part is. */
export interface ChainAsOf {
  readonly network: string
  readonly block?: bigint | undefined
  readonly time?: Date | undefined
}

export type PaymentSearch = ReturnType<typeof createPaymentSearch>

export interface PaymentSearchOptions {
  readonly knex: Knex
  /** Where names in filters are looked up; default `knex`. A replica does not know the newest. */
  readonly namesKnex?: Knex | undefined
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
  /** How pages are tried; tests give low limits. */
  readonly ladder?: LadderOptions | undefined
}

/** Makes what finds payments of an account. */
export function createPaymentSearch(options: PaymentSearchOptions) {
  const { knex, namesKnex = knex, chains, tokens, cursorSecret, ladder } = options
  const repository = createPaymentRepository(knex, ladder)
  const namesOf = createAccountNamesReader(namesKnex)

  const parseValues = ({ id }: Account, input: SearchInput, signal: AbortSignal | undefined, zone?: string) =>
    parseFilter(input, { chains, tokens, account: namesOf(id, signal) }, zone)

  async function readSent(account: Account, input: SearchInput, signal: AbortSignal | undefined) {
    const seal = searchSeal(cursorSecret, account.id)
    const carried = readOnce(() => given(input.cursor, (cursor) => openCursor(seal, cursor) as CarriedSearch))
    const sent = await readAllInOrder({
      limit: () => requirePageLimit(input.limit),
      // what is wrong with the cursor is reported once, by the last reader
      values: () => parseValues(account, input, signal, unlessWrong(carried)?.filter.timeZone),
      carried,
    })
    if (sent.carried !== undefined) checkSent(sent.carried, input, sent.values)
    return { seal, ...sent }
  }

  return {
    /**
     * Returns one page of the payments that match all filters.
     *
     * @throws WaybillError of kind INVALID_INPUT for an invalid filter, limit or cursor; the signal's reason when it fires
     */
    search: async (account: Account, input: SearchInput, signal?: AbortSignal): Promise<PaymentPage> => {
      const { seal, limit, values, carried } = await readSent(account, input, signal)
      const asked: AskedSearch = {
        filter: { ...(carried?.filter ?? values), accountId: account.id },
        sortBy: carried?.sortBy ?? input.sortBy ?? 'date',
        sortOrder: carried?.sortOrder ?? input.sortOrder ?? 'desc',
        limit: limit ?? carried?.limit ?? DEFAULT_PAGE_LIMIT,
        position: carried?.position,
      }

      // one row more than the page holds tells whether another page follows
      const query = { ...asked, rows: asked.limit + 1 }
      const found = await repository.pageAsOf(query, signal, input.noCache)
      const total = await countMatches(knex, asked.filter, input.includeTotal ?? 'none', signal)
      const { lastChange } = found
      const carry = { ...asked, filter: carried?.filter ?? values, lastChange: String(lastChange) }
      const { entries, ...cursors } = cutPage(
        found.entries,
        asked,
        (entry, direction) => positionOf(asked, entry, direction),
        (position) => sealCursor(seal, { ...carry, position } satisfies CarriedSearch),
      )
      return {
        payments: entries.filter((entry): entry is Payment => !isRemoved(entry)),
        pagination: { limit: asked.limit, ...cursors, total },
        asOf: asOfChains(chains, found.progress),
        removed: entries.filter(isRemoved),
        completeTo: found.lastChangedAt && earlierOf(found.lastChangedAt, asked.filter.changedTo),
        watchCursor: encodeWatchCursor(watchSeal(cursorSecret, account.id), lastChange),
        isOlderThanCursor: carried !== undefined && lastChange < BigInt(carried.lastChange),
      }
    },

    /** Reads what was sent, as `search` does. @throws WaybillError of kind INVALID_INPUT */
    check: (account: Account, input: SearchInput, signal?: AbortSignal): Promise<unknown> =>
      readSent(account, input, signal),
    /** Parses the filters alone, for the other operations on the same payments. */
    parseFilter: async (account: Account, input: SearchInput, signal?: AbortSignal): Promise<PaymentFilter> => ({
      ...(await parseValues(account, input, signal)),
      accountId: account.id,
    }),
    /**
     * Returns one payment.
     *
     * @throws INVALID_PAYMENT_ID, PAYMENT_NOT_FOUND
     */
    get: async (account: Account, text: string, signal?: AbortSignal): Promise<Payment> => {
      const id = requirePaymentId('id', text)
      const payment = await repository.byId(account.id, id, signal)
      if (payment === undefined) throw waybillError('PAYMENT_NOT_FOUND', { value: id })
      return payment
    },
  }
}

function unlessWrong<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof WaybillError) return undefined
    throw error
  }
}

/** A search with everything decided: what was sent, else what the cursor carries, else the default. */
interface AskedSearch extends Omit<CarriedSearch, 'filter' | 'position' | 'lastChange'> {
  readonly filter: PaymentFilter
  readonly position: PagePosition | undefined
}

function earlierOf(moment: Date, limitMs: number | undefined): Date {
  return limitMs !== undefined && limitMs < moment.getTime() ? new Date(limitMs) : moment
}

/** @throws WaybillError CURSOR_MISMATCH where a search that was sent with a cursor is another than that of the cursor */
function checkSent(carried: CarriedSearch, input: SearchInput, values: FilterValues): void {
  const filterNames = filterFields.map(({ name }) => name)
  requireSame({ timeZone: DEFAULT_TIME_ZONE, ...carried.filter }, values, filterNames)
  requireSame(carried, input, ['sortBy', 'sortOrder'])
}

function positionOf(asked: AskedSearch, entry: Entry, direction: PagePosition['direction']): PagePosition {
  const keys = sortKeysOf(asked.sortBy, amountBasis(asked.filter)).map(({ valueOf }) => valueOf(entry as Payment))
  return { keys, id: entry.id, inclusive: false, direction }
}

function asOfChains(chains: ChainDirectory, progress: readonly ChainProgress[]): ChainAsOf[] {
  const byChain = new Map(progress.map((chain) => [chain.chainId, chain]))
  return chains.configured.map(({ name, chainId }) => {
    const chain = byChain.get(caip2Of(chainId))
    return { network: name, block: chain?.readBlock, time: chain?.readTime }
  })
}
