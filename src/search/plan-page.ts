import { addressToBytes } from '../domain/address.ts'
import { paymentStatuses, rankOfStatus } from '../domain/payment.ts'
import type { AccountStatistics } from './account-statistics-repository.ts'
import { currencyFields, type Estimate, estimateMatches, invoiceIdsOf } from './estimate-matches.ts'
import { amountBasis, type PaymentFilter } from './payment-filter.ts'
import type { PageQuery } from './payment-query-repository.ts'
import type { Branches, FieldName, Part, Plan, Shape, WalkPart } from './search-plan.ts'
import { directionOf } from './shapes/shape-query.ts'

/** Where one way of reading gives way to another; in entries of an index, unless they say otherwise. */
export interface PlanThresholds {
  /** Payments of an account that is simply walked. */
  readonly small: number
  /** Of a walk of which nothing is known beforehand. */
  readonly walk: number
  /** Of a walk that is expected to need so many. */
  readonly longestWalk: number
  /** Gathered from an index that has all that is asked. */
  readonly gather: number
  /** Gathered where the rows themselves are asked. */
  readonly gatherRows: number
  /** Cells, or months, in one statement. */
  readonly branches: number
}

export const DEFAULT_THRESHOLDS: PlanThresholds = {
  small: 3_000,
  walk: 1_500,
  longestWalk: 20_000,
  gather: 10_000,
  gatherRows: 1_000,
  branches: 600,
}

/** To begin a branch costs as much as reading so many entries. */
const BRANCH_COST = 25
/** Of two estimates that are wrong by as much. */
const MARGIN = 4

const dates = ['fromDate', 'toDate'] as const
const amounts = ['minAmount', 'maxAmount'] as const
const pointFields = ['txHash', 'requestId', 'paymentReference', 'reference', 'q'] as const
const walletFields = ['payer', 'payee', 'walletAddress'] as const

/** All that planning a page looks at. */
interface Terms {
  readonly query: PageQuery
  readonly filter: PaymentFilter
  /** Every filter that was given. */
  readonly given: readonly FieldName[]
  readonly statistics: AccountStatistics
  readonly estimate: Estimate
  readonly thresholds: PlanThresholds
}

/**
 * Chooses how to read a page.
 *
 * @returns the shapes to try, the cheapest first; the last one is whole whatever it costs
 */
export function planPage(
  query: PageQuery,
  statistics: AccountStatistics,
  thresholds: PlanThresholds = DEFAULT_THRESHOLDS,
): Plan {
  const filter = readText(query.filter)
  const terms: Terms = {
    query: { ...query, filter },
    filter,
    given: (Object.keys(filter) as (keyof PaymentFilter)[]).filter(
      (name): name is FieldName => name !== 'accountId' && filter[name] !== undefined,
    ),
    statistics,
    estimate: estimateMatches(filter, statistics),
    thresholds,
  }
  if (hasAny(terms, pointFields)) return planNamed(terms)
  if (hasAny(terms, walletFields)) return planWallets(terms)
  return query.sortBy === 'amount' ? planByAmount(terms) : planByTime(terms)
}

/** Whether the plan depends on statistics: they are not read where it does not. */
export function needsStatistics({ filter, sortBy }: PageQuery): boolean {
  const readable = readText(filter)
  const has = (names: readonly FieldName[]) => names.some((name) => readable[name] !== undefined)
  if (has(pointFields)) return has(currencyFields) && sortBy === 'amount'
  if (has(['network', 'type', ...currencyFields, ...amounts])) return true
  return sortBy === 'amount' && has(['status', ...dates])
}

/** A text that can mean one thing alone is the filter of that thing. */
export function readText(filter: PaymentFilter): PaymentFilter {
  const { q, ...others } = filter
  const [only] = q ?? []
  if (q?.length !== 1 || only === undefined || only.as === 'id' || filter[only.as] !== undefined) return filter
  return { ...others, [only.as]: [only.value] }
}

/** What an identifier names is mostly little: it is gathered. Where it is much, it is walked. */
function planNamed(terms: Terms): Plan {
  const { thresholds, given, query } = terms
  if (given.includes('q')) return [PLAIN]
  const name = pointFields.find((field) => given.includes(field)) as FieldName
  const residual = given.filter((field) => field !== name)
  const part: Part = { index: namedIndexes[name] ?? '', within: [name], residual }
  const gathered = (most: number): Shape => ({ kind: 'gather', parts: [part], overlap: false, most })
  const all: Shape = { kind: 'gather', parts: [part], overlap: false }
  const column = namedColumns[name]
  const first = gathered(thresholds.gatherRows)
  if (column === undefined) return [first, all]
  const branches: Branches = {
    columns: [column.name],
    tuples: (terms.filter[name] as string[]).map((value) => [column.bind(value)]),
  }
  if (query.sortBy === 'date') {
    const walked = walkParts(terms, { index: column.index, branches, answered: [name, ...dates], within: dates })
    return [first, ...exactOrBounded(terms, walked, thresholds.walk)]
  }
  const ofAccount = query.sortBy === 'amount' ? amountParts(terms) : statusParts(terms, {})
  return [first, bounded(ofAccount, thresholds.walk), all]
}

const hex = (text: string) => Buffer.from(text.replace(/^0x/, ''), 'hex')

const namedIndexes: Partial<Record<FieldName, string>> = {
  txHash: 'payments_account_id_tx_hash_event_index_network_key, payments_source_tx',
  requestId: 'payments_request',
  paymentReference: 'payments_payment_reference',
  reference: 'payments_merchant_reference',
}

const namedColumns: Partial<
  Record<
    FieldName,
    { name: 'request_id' | 'payment_reference' | 'reference'; index: string; bind: (value: string) => Buffer | string }
  >
> = {
  requestId: { name: 'request_id', index: 'payments_request', bind: hex },
  paymentReference: { name: 'payment_reference', index: 'payments_payment_reference', bind: hex },
  reference: { name: 'reference', index: 'payments_merchant_reference', bind: (value) => value },
}

/** Payers and payees have indexes of their own, by date and by US dollars; a wallet is both. */
function planWallets(terms: Terms): Plan {
  const { given, thresholds, filter, query } = terms
  const name = walletFields.find((field) => given.includes(field)) as (typeof walletFields)[number]
  const columns = name === 'walletAddress' ? (['payer', 'payee'] as const) : [name]
  const values = (filter[name] ?? []).map((address) => addressToBytes(address))
  const overlap = columns.length > 1
  const others = walletFields.filter((field) => field !== name && given.includes(field))
  const parts = (byAmount: boolean) =>
    columns.flatMap((column) =>
      byAmount
        ? amountParts(terms, { column, values, answered: name })
        : statusParts(terms, { column, values, answered: name }),
    )
  const byTime = query.sortBy !== 'amount'
  const gather = { kind: 'gather' as const, parts: parts(false), overlap }
  const most = others.length > 0 ? thresholds.gatherRows : thresholds.gather
  const inOrder = byTime || amountBasis(filter) === 'amountInUsd'
  if (inOrder) {
    const walks = parts(!byTime)
    const exact: Shape = { kind: 'walk', parts: walks, overlap }
    if (!hasResidual(walks)) return [...inSlices(terms, walks, overlap), exact]
    const expected = query.rows / Math.max(shareLeft(terms), 1e-9)
    const entries = clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk)
    const walk = bounded(walks, others.length > 0 ? thresholds.walk : entries, overlap, terms)
    return [...(expected > thresholds.longestWalk ? [{ ...gather, most }, walk] : [walk, { ...gather, most }]), exact]
  }
  return [{ ...gather, most }, bounded(amountParts(terms), thresholds.walk), gather]
}

/** By date or by status, of all payments of the account. */
function planByTime(terms: Terms): Plan {
  const { thresholds, query, statistics, estimate, given } = terms
  if (query.sortBy === 'date' && given.every((name) => isOneOf(dates, name))) {
    return [
      walk([{ index: 'payments_date', within: boundsLeft(terms, dates), residual: [], fixedKeys: 0, after: true }]),
    ]
  }
  const parts = statusParts(terms, {})
  const exact = walk(parts)
  if (!hasResidual(parts)) return [exact]
  const candidates = statistics.n * estimate.ofStatus * estimate.ofDates
  if (candidates <= thresholds.small) return [exact]
  const hasAmounts = hasAny(terms, amounts)
  const cells = cellParts(terms)
  const expected = expectedEntries(terms) * (hasAmounts ? 5 : 1)
  const costOfCells =
    cells === undefined ? Infinity : BRANCH_COST * estimate.cells.length + query.rows / Math.max(estimate.inCells, 1e-3)
  const ofCells =
    cells === undefined || hasAmounts
      ? []
      : [
          ...inSlices(terms, cells.parts, true),
          ...(hasResidual(cells.parts) ? [bounded(cells.parts, thresholds.walk, true)] : [walk(cells.parts, true)]),
        ]
  const walked = bounded(parts, clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk), false, terms)
  const gathered = gathers(terms)
  if (hasAmounts) return [bounded(parts, thresholds.walk, false, terms), ...gathered, ...months(terms), exact]
  const ordered =
    costOfCells < expected
      ? [...ofCells, ...gathered, walked]
      : [...(expected > thresholds.longestWalk ? [...gathered, walked] : [walked, ...gathered]), ...ofCells]
  return [...ordered, exact]
}

/** By amount, of all payments of the account. */
function planByAmount(terms: Terms): Plan {
  const { thresholds, statistics, estimate, query } = terms
  const parts = amountParts(terms)
  const exact = walk(parts)
  if (!hasResidual(parts) || statistics.n <= thresholds.small) return [exact]
  const share = estimate.ofStatus * estimate.ofSmall * estimate.ofDates
  const expected = query.rows / Math.max(share, 1e-9)
  const gathered = gathers(terms)
  const walked = bounded(parts, clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk))
  const matches = statistics.n * share
  const first = matches <= expected && gathered.length > 0 ? [...gathered, walked] : [walked, ...gathered]
  return [...first, ...monthWalk(terms), exact]
}

/** What can be read whole and sorted: an amount range, cells, or a stretch of time. The fewest expected first. */
function gathers(terms: Terms): Shape[] {
  const { thresholds, statistics, estimate, given, filter } = terms
  const most = thresholds.gather
  const found: { n: number; shape: Shape }[] = []
  const ofTime = statistics.n * estimate.ofStatus * estimate.ofDates
  if (ofTime <= most)
    found.push({ n: ofTime, shape: { kind: 'gather', parts: statusParts(terms, {}), overlap: false, most } })
  const cells = cellParts(terms)
  const ofCells = statistics.n * estimate.ofStatus * estimate.ofSmall * estimate.ofDates
  if (cells !== undefined && ofCells / Math.max(estimate.inCells, 1e-9) <= most) {
    found.push({ n: ofCells + BRANCH_COST * estimate.cells.length, shape: { kind: 'gather', ...cells, most } })
  }
  if (hasAny(terms, amounts)) {
    found.push({ n: most / 2, shape: { kind: 'gather', parts: amountParts(terms), overlap: false, most } })
  } else if (given.includes('invoiceCurrency') || given.includes('currency')) {
    const ids = invoiceBranches(filter, statistics)
    const n = (ids ?? []).reduce((sum, id) => sum + (statistics.shareOfInvoice.get(id) ?? 0), 0) * statistics.n
    if (ids !== undefined && n <= most) {
      const part: Part = {
        index: 'payments_invoice_amount',
        branches: { columns: ['invoice_currency'], tuples: ids.map((id) => [id]) },
        within: [],
        residual: given,
      }
      found.push({ n, shape: { kind: 'gather', parts: [part], overlap: false, most } })
    }
  }
  return found.toSorted((one, other) => one.n - other.n).map(({ shape }) => shape)
}

/** How many entries a walk by date or status is expected to read until the page is full. */
function expectedEntries({ query, statistics, estimate }: Terms): number {
  const density = Math.max(estimate.ofSmall, 1e-9)
  if (query.sortBy === 'date') return query.rows / density
  const ranks = ranksOf(query.filter).map((rank) =>
    statistics.cells.reduce((n, cell) => (cell.status === rank ? n + cell.n : n), 0),
  )
  let [entries, rows] = [0, 0]
  for (const n of directionOf(query) === 'asc' ? ranks : ranks.toReversed()) {
    if (rows >= query.rows) break
    entries += Math.min(n, (query.rows - rows) / density)
    rows += n * density
  }
  return entries
}

interface OfWallet {
  readonly column?: 'payer' | 'payee'
  readonly values?: readonly Buffer[]
  readonly answered?: FieldName
}

/** Walks of one status each, of all payments or of wallets. */
function statusParts(terms: Terms, { column, values = [], answered }: OfWallet): WalkPart[] {
  const ranks = ranksOf(terms.filter)
  const branches: Branches =
    column === undefined
      ? { columns: ['status'], tuples: ranks.map((rank) => [rank]) }
      : { columns: [column, 'status'], tuples: values.flatMap((value) => ranks.map((rank) => [value, rank])) }
  return walkParts(terms, {
    index: `payments_${column ?? 'status'}`,
    branches,
    answered: ['status', ...dates, ...(answered === undefined ? [] : [answered])],
    within: dates,
  })
}

/** Walks of one cell each, where the filter leaves few; payments that only come from a network are a walk of their own. */
function cellParts(terms: Terms): { readonly parts: WalkPart[]; readonly overlap: boolean } | undefined {
  const { estimate, filter, statistics, thresholds, given } = terms
  const { cells } = estimate
  if (cells.length > thresholds.branches || cells.length === statistics.cells.length) return undefined
  const whole = currencyFields.filter((name) =>
    filter[name]?.every(({ of, id }) => of === 'payment' && id === undefined),
  )
  const ofCells = walkParts(terms, {
    index: 'payments_cell',
    branches: {
      columns: ['status', 'network', 'currency_symbol'],
      tuples: cells.map(({ status, network, symbol }) => [status, network, symbol]),
    },
    answered: ['status', 'network', ...whole, ...dates],
    within: dates,
  })
  if (filter.network === undefined) return { parts: ofCells, overlap: false }
  if (terms.query.sortBy === 'status') {
    // the index of sources has no order by status: what comes from there is asked of its whole, unless there is too much
    return filter.network.some((network) => statistics.shareOfSource.has(network))
      ? undefined
      : { parts: ofCells, overlap: false }
  }
  const elsewhere: WalkPart = {
    index: 'payments_source_network',
    branches: { columns: ['source_network'], tuples: filter.network.map((network) => [network]) },
    within: boundsLeft(terms, dates),
    residual: given.filter((name) => name !== 'network' && !isOneOf(dates, name)),
    fromElsewhere: true,
    fixedKeys: 0,
    after: true,
  }
  return { parts: cells.length === 0 ? [elsewhere] : [...ofCells, elsewhere], overlap: true }
}

/** Walks by the amount that the filter chooses. */
function amountParts(terms: Terms, { column, values = [], answered }: OfWallet = {}): WalkPart[] {
  const { filter, given, statistics } = terms
  const within = boundsLeft(terms, amounts)
  const part = (index: string, branches: Branches | undefined, done: readonly FieldName[]): WalkPart => ({
    index,
    ...(branches === undefined ? {} : { branches }),
    within,
    residual: given.filter((name) => !done.includes(name) && !isOneOf(amounts, name)),
    fixedKeys: 0,
    after: true,
  })
  const basis = amountBasis(filter)
  if (basis === 'amountInUsd') {
    if (column === undefined || answered === undefined) return [part('payments_usd', undefined, [])]
    const branches = { columns: [column], tuples: values.map((value) => [value]) }
    return [part(`payments_${column}_usd`, branches, [answered])]
  }
  if (basis === 'amount') {
    const of = currencyFields.find((name) => filter[name]?.every((match) => match.of === 'payment')) as FieldName
    const matches = filter[of as (typeof currencyFields)[number]] ?? []
    const whole = matches.every(({ id }) => id === undefined)
    const tuples = [...new Set(matches.map(({ symbol }) => symbol))].map((symbol) => [symbol])
    return [part('payments_amount', { columns: ['currency_symbol'], tuples }, whole ? [of] : [])]
  }
  const of = currencyFields.find((name) => filter[name]?.every((match) => match.of === 'invoice')) as FieldName
  const ids = invoiceBranches(filter, statistics) ?? []
  return [part('payments_invoice_amount', { columns: ['invoice_currency'], tuples: ids.map((id) => [id]) }, [of])]
}

/** The currencies of invoices that a filter asks for, where it asks for nothing else. */
function invoiceBranches(filter: PaymentFilter, statistics: AccountStatistics): readonly string[] | undefined {
  const name = currencyFields.find((field) => filter[field]?.every((match) => match.of === 'invoice'))
  return name && [...new Set(filter[name]?.flatMap((match) => invoiceIdsOf(match, statistics)))]
}

interface PartTerms {
  readonly index: string
  readonly branches: Branches
  readonly answered: readonly FieldName[]
  readonly within: readonly FieldName[]
}

/** Walks by time of branches; in the order of status, those of the position's status begin there, and those before it are left out. */
function walkParts(terms: Terms, { index, branches, answered, within }: PartTerms): WalkPart[] {
  const { query, given } = terms
  const part = {
    index,
    residual: given.filter((name) => !answered.includes(name)),
    within: within.filter((name) => given.includes(name)),
  }
  if (query.sortBy !== 'status') {
    return [{ ...part, branches, within: boundsLeft(terms, within), fixedKeys: 0, after: true }]
  }
  const { position } = query
  if (position === undefined) return [{ ...part, branches, fixedKeys: 1, after: false }]
  const at = branches.columns.indexOf('status')
  const from = Number(position.keys[0])
  const isBeyond = (rank: number) => (directionOf(query) === 'asc' ? rank > from : rank < from)
  const some = (after: boolean, keep: (rank: number) => boolean): WalkPart[] => {
    const tuples = branches.tuples.filter((tuple) => keep(Number(tuple[at])))
    const kept = after ? boundsLeft(terms, part.within) : part.within
    return tuples.length === 0
      ? []
      : [{ ...part, branches: { ...branches, tuples }, within: kept, fixedKeys: 1, after }]
  }
  const parts = [...some(true, (rank) => rank === from), ...some(false, isBeyond)]
  // a walk from the position on finds nothing, and says so
  return parts.length > 0 ? parts : [{ ...part, branches: { ...branches, tuples: [] }, fixedKeys: 1, after: false }]
}

/** Of a range along the order, the bound that lies behind the position says nothing more, and must not be where the walk begins. */
function boundsLeft({ query, given }: Terms, range: readonly FieldName[]): FieldName[] {
  const isAlong = (name: FieldName) => isOneOf(query.sortBy === 'amount' ? amounts : dates, name)
  const behind = directionOf(query) === 'asc' ? ['fromDate', 'minAmount'] : ['toDate', 'maxAmount']
  const saysMore = (name: FieldName) => query.position === undefined || !isAlong(name) || !behind.includes(name)
  return range.filter((name) => given.includes(name) && saysMore(name))
}

/** Many branches give few rows each to a page, so little is read of each at first. */
function inSlices(terms: Terms, parts: readonly WalkPart[], overlap: boolean): Shape[] {
  const count = parts.reduce((sum, { branches }) => sum + (branches?.tuples.length ?? 1), 0)
  if (count < 10 || hasResidual(parts)) return []
  return [bounded(parts, terms.query.rows * 4, overlap, terms)]
}

/** Divides entries among branches as payments are divided among statuses and cells. */
function bounded(parts: readonly WalkPart[], entries: number, overlap = false, terms?: Terms): Shape {
  const weights = parts.map((part) => weightsOf(part, terms))
  const total = weights.flat().reduce((sum, weight) => sum + weight, 0)
  return {
    kind: 'walk',
    overlap,
    parts: parts.map((part, nth) => ({
      ...part,
      entries: (weights[nth] ?? []).map((weight) => Math.ceil((entries * weight) / Math.max(total, 1e-9)) + 5),
    })),
  }
}

function weightsOf({ branches }: WalkPart, terms: Terms | undefined): number[] {
  if (branches === undefined) return [1]
  const { columns, tuples } = branches
  const status = columns.indexOf('status')
  const [network, symbol] = [columns.indexOf('network'), columns.indexOf('currency_symbol')]
  if (terms === undefined || status < 0 || terms.query.sortBy === 'status') return tuples.map(() => 1)
  const key = (...values: unknown[]) => values.join(' ')
  const n = new Map<string, number>()
  for (const cell of terms.statistics.cells) {
    const of = network < 0 ? key(cell.status) : key(cell.status, cell.network, cell.symbol)
    n.set(of, (n.get(of) ?? 0) + cell.n)
  }
  return tuples.map(
    (tuple) => n.get(network < 0 ? key(tuple[status]) : key(tuple[status], tuple[network], tuple[symbol])) ?? 1,
  )
}

const DAY_MS = 86_400_000
const MONTH_MS = 30 * DAY_MS
const MONTHS_SINCE_MS = Date.UTC(2000, 0, 1)

/** The months of a range of dates that is given whole and is not too long. */
function monthsOf({ filter, thresholds, query }: Terms): number[] {
  const { fromDate, toDate } = filter
  if (fromDate === undefined || toDate === undefined) return []
  const first = Math.floor((fromDate - MONTHS_SINCE_MS) / MONTH_MS)
  const last = Math.floor((toDate - MONTHS_SINCE_MS) / MONTH_MS)
  if (last - first + 1 > thresholds.branches) return []
  const starts = Array.from({ length: last - first + 1 }, (_, nth) => MONTHS_SINCE_MS + (first + nth) * MONTH_MS)
  return directionOf(query) === 'asc' ? starts : starts.toReversed()
}

function months(terms: Terms): Shape[] {
  const starts = terms.query.sortBy === 'date' && amountBasis(terms.filter) === 'amountInUsd' ? monthsOf(terms) : []
  return starts.length === 0 ? [] : [{ kind: 'months', months: starts }]
}

function monthWalk(terms: Terms): Shape[] {
  if (
    amountBasis(terms.filter) !== 'amountInUsd' ||
    terms.given.some((name) => ![...dates, ...amounts].includes(name as never))
  )
    return []
  const tuples = monthsOf(terms).map((ms) => [new Date(ms).toISOString()])
  if (tuples.length === 0) return []
  const [part] = amountParts(terms)
  return part === undefined
    ? []
    : [walk([{ ...part, index: 'payments_month_usd', branches: { columns: ['month'], tuples } }])]
}

const PLAIN: Shape = { kind: 'plain' }

function walk(parts: readonly WalkPart[], overlap = false): Shape {
  return { kind: 'walk', parts, overlap }
}

function exactOrBounded(terms: Terms, parts: readonly WalkPart[], entries: number): Shape[] {
  return hasResidual(parts) ? [bounded(parts, entries, false, terms), walk(parts)] : [walk(parts)]
}

/** What the small filters and dates leave of the payments of a wallet. */
function shareLeft({ estimate, given }: Terms): number {
  return estimate.ofSmall * (given.some((name) => isOneOf(dates, name)) ? estimate.ofDates : 1)
}

function ranksOf({ status }: PaymentFilter): number[] {
  return (status ?? paymentStatuses).map(rankOfStatus)
}

function hasResidual(parts: readonly Part[]): boolean {
  return parts.some(({ residual }) => residual.length > 0)
}

function hasAny({ given }: Terms, names: readonly FieldName[]): boolean {
  return names.some((name) => given.includes(name))
}

function isOneOf(names: readonly FieldName[], name: FieldName): boolean {
  return names.includes(name)
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
