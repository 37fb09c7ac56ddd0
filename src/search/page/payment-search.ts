import type { Knex } from 'knex'
import { type ChainDirectory } from '../../chains/chain-directory.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Account } from '../../domain/account.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Payment } from '../../domain/payment.ts'
import { parsePaymentId } from '../../domain/payment-id.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { parseFilter } from '../filter/parse-filter.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { amountBasis } from '../filter/payment-filter.ts'
import { sortKeysOf } from '../filter/search-fields.ts'
import type { SearchInput } from '../filter/search-input.ts'
import type { PlanThresholds } from '../plan/plan-terms.ts'
import { createAccountNamesReader } from '../sql/account-names-repository.ts'
import { type ChainProgress, createPaymentRepository } from '../sql/payment-repository.ts'
import { createTotalRepository } from '../sql/total-repository.ts'
import { countMatches, type Total } from '../totals/count-matches.ts'
import { encodeWatchCursor, watchSeal } from '../watch/watch-cursor.ts'
import {
  type CarriedSearch,
  checkCursorMatches,
  decodeSearchCursor,
  encodeSearchCursor,
  type PagePosition,
  searchSeal,
} from './search-cursor.ts'

/** The payments a page holds when the caller names no limit, and at most. */
const DEFAULT_LIMIT = 20
const LARGEST_LIMIT = 100

/** One page of a search. */
export interface PaymentPage {
  readonly payments: readonly Payment[]
  readonly pagination: {
    /** After clamping. */
    readonly limit: number
    readonly nextCursor?: string
    /** Absent on the first page. */
    readonly prevCursor?: string
    /** Where it was asked for. */
    readonly total?: Total
  }
  /** One for each configured chain, in the order of the configuration. */
  readonly asOf: readonly ChainAsOf[]
  /** Stands behind the last change that the page shows, whatever it changed. */
  readonly watchCursor: string
}

/** How far a chain has been looked at; without a block, not at all. */
export interface ChainAsOf {
  readonly network: string
  readonly block?: bigint
  readonly time?: Date
}

/** Finds payments of an account. */
export interface PaymentSearch {
  /**
   * Returns one page of the payments that match all filters.
   *
   * @param readPosition - where the database stands: cursors carry it, where several servers answer. Asked when all is read
   * @throws WaybillError of kind INVALID_INPUT for what cannot be read; the signal's reason when it fires
   */
  search(
    account: Account,
    input: SearchInput,
    signal?: AbortSignal,
    readPosition?: () => Promise<bigint>,
  ): Promise<PaymentPage>
  /** Reads the filters alone, for whatever else works on the same payments. */
  parseFilter(account: Account, input: SearchInput, signal?: AbortSignal): Promise<PaymentFilter>
  /**
   * Returns one payment.
   *
   * @throws INVALID_PAYMENT_ID, PAYMENT_NOT_FOUND
   */
  get(account: Account, id: string, signal?: AbortSignal): Promise<Payment>
}

export interface PaymentSearchOptions {
  readonly knex: Knex
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  /** 32 bytes that all processes on the database share. */
  readonly cursorSecret: Uint8Array
  /** Of the planner, where they are not the usual ones. */
  readonly thresholds?: PlanThresholds
}

export function createPaymentSearch({
  knex,
  chains,
  tokens,
  cursorSecret,
  thresholds,
}: PaymentSearchOptions): PaymentSearch {
  const repository = createPaymentRepository(knex, thresholds)
  const totals = createTotalRepository(knex)
  const namesOf = createAccountNamesReader(knex)

  const parseGiven = (account: Account, input: SearchInput, signal: AbortSignal | undefined) =>
    parseFilter(input, { chains, tokens, account: namesOf(account.id, signal) })

  const search: PaymentSearch['search'] = async (account, input, signal, readPosition) => {
    const seal = searchSeal(cursorSecret, account.id)
    const limit = parseLimit(input.limit)
    const given = await parseGiven(account, input, signal)
    const carried = input.cursor === undefined ? undefined : decodeSearchCursor(seal, input.cursor)
    if (carried !== undefined) checkCursorMatches(carried, { ...input, filter: given })
    const asked: AskedSearch = {
      filter: { ...(carried?.filter ?? given), accountId: account.id },
      sortBy: carried?.sortBy ?? input.sortBy ?? 'date',
      sortOrder: carried?.sortOrder ?? input.sortOrder ?? 'desc',
      limit: limit ?? carried?.limit ?? DEFAULT_LIMIT,
      position: carried?.position,
    }
    // One row more than the page holds tells whether there is a page after it.
    const query = { ...asked, rows: asked.limit + 1 }
    const { payments: walked, lastChange, progress } = await repository.pageAsOf(query, signal)
    const total = await countMatches(totals, asked.filter, input.includeTotal ?? 'none', signal)
    const page = cutPage(asked, walked)
    const seen = (await readPosition?.())?.toString()
    const cursorAt = (position: PagePosition) =>
      encodeSearchCursor(seal, { ...asked, filter: carried?.filter ?? given, position, seen })
    return {
      payments: page.payments,
      pagination: {
        limit: asked.limit,
        ...(page.next === undefined ? {} : { nextCursor: cursorAt(page.next) }),
        ...(page.previous === undefined ? {} : { prevCursor: cursorAt(page.previous) }),
        ...(total === undefined ? {} : { total }),
      },
      asOf: asOfChains(chains, progress),
      watchCursor: encodeWatchCursor(watchSeal(cursorSecret, account.id), lastChange),
    }
  }

  async function get(account: Account, text: string, signal?: AbortSignal): Promise<Payment> {
    const id = parsePaymentId(text)
    if (id === undefined) throw waybillError('INVALID_PAYMENT_ID', { field: 'id', value: text })
    const payment = await repository.byId(account.id, id, signal)
    if (payment === undefined) throw waybillError('PAYMENT_NOT_FOUND', { value: id })
    return payment
  }

  return {
    search,
    get,
    parseFilter: async (account, input, signal) => ({
      ...(await parseGiven(account, input, signal)),
      accountId: account.id,
    }),
  }
}

interface AskedSearch extends Omit<CarriedSearch, 'filter' | 'position'> {
  readonly filter: PaymentFilter
  readonly position: PagePosition | undefined
}

/** Undefined when nothing was asked for: 0 is what clients without presence send. */
function parseLimit(limit: number | undefined): number | undefined {
  if (limit === undefined || limit === 0) return undefined
  if (!Number.isInteger(limit) || limit < 0) throw waybillError('INVALID_LIMIT', { value: limit })
  return Math.min(limit, LARGEST_LIMIT)
}

interface CutPage {
  /** In the order that was asked for. */
  readonly payments: readonly Payment[]
  readonly next: PagePosition | undefined
  readonly previous: PagePosition | undefined
}

/** Turns what was walked, one more than the page holds if there are so many, into the page and the positions around it. */
function cutPage(asked: AskedSearch, walked: readonly Payment[]): CutPage {
  const { position, limit } = asked
  const hasMore = walked.length > limit
  const kept = walked.slice(0, limit)
  const backward = position?.direction === 'backward'
  const payments = backward ? kept.toReversed() : kept
  const first = payments[0]
  const last = payments.at(-1)
  if (first === undefined || last === undefined) return emptyPage(position)
  return {
    payments,
    // the page that this one was reached from is there as well
    next: hasMore || backward ? positionOf(asked, last, 'forward') : undefined,
    previous: (backward ? hasMore : position !== undefined) ? positionOf(asked, first, 'backward') : undefined,
  }
}

/** Whatever was there is gone: what remains is the way back, beginning with the payment that the cursor stood at. */
function emptyPage(position: PagePosition | undefined): CutPage {
  if (position === undefined) return { payments: [], next: undefined, previous: undefined }
  const back = { ...position, inclusive: !position.inclusive } as const
  return position.direction === 'forward'
    ? { payments: [], next: undefined, previous: { ...back, direction: 'backward' } }
    : { payments: [], next: { ...back, direction: 'forward' }, previous: undefined }
}

function positionOf(asked: AskedSearch, payment: Payment, direction: PagePosition['direction']): PagePosition {
  const keys = sortKeysOf(asked.sortBy, amountBasis(asked.filter)).map(({ valueOf }) => valueOf(payment))
  return { keys, id: payment.id, inclusive: false, direction }
}

function asOfChains(chains: ChainDirectory, progress: readonly ChainProgress[]): ChainAsOf[] {
  const byChain = new Map(progress.map((chain) => [chain.chainId, chain]))
  return chains.configured.map(({ name, chainId }) => {
    const chain = byChain.get(caip2Of(chainId))
    return chain === undefined
      ? { network: name }
      : { network: name, block: chain.scannedBlock, time: chain.scannedTime }
  })
}
