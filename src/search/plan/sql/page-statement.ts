import { allOf, commonTable, join, raw, type Statement, unionAll } from '../../../postgres/statement.ts'
import { filterFields } from '../../filter/search-fields.ts'
import { directionOf, keysOf, type PageQuery } from '../../query/page-query.ts'
import {
  accountIs,
  checksOfNamed,
  columnsOf,
  conditionsOfNamed,
  invoiceSymbolCondition,
  noneOf,
} from '../../sql/filter-conditions.ts'
import { afterPosition, keyColumnsOf, keyRanges, orderOfAnswer, orderTerms } from '../../sql/keyset.ts'
import { ALL, type Step } from '../ladder.ts'
import { branchTypes, indexes, isAside } from '../sources.ts'
import { isMerged, isWhole, rangesLeft, type Way, type WayPart } from '../ways.ts'

/** Which page, and which columns of its rows. */
export interface PageRequest {
  readonly query: PageQuery
  /** Columns of `payments`; the first is the id. */
  readonly columns: readonly string[]
}

/**
 * The statement of one attempt at a page.
 *
 * After the requested columns a row has `last_change`, of the same snapshot, `cut`, and in the order of changes `last_changed_at`. A page that is not full ends with a row without a
 * payment, in which `cut` says whether there are entries beyond the limit, so that payments may be missing. PostgreSQL stops at the limit of
 * the page, and therefore looks for such entries only where the page is not full.
 *
 * @example payer A and network GNOSIS, at most 1,500 entries
 * with more as materialized (select exists (select from (…the keys of 1,501 entries…) entries offset 1500) as cut)
 * select * from (
 *   (select id, amount, …, (select last_change …) as last_change, false as cut from (…1,500 entries…) entries where network = ? limit 21)
 *   union all
 *   (select null, null, …, (select last_change …), (select cut from more))
 * ) page limit 21
 */
export function pageStatement({ way, limit, isCovered: isGuessed }: Step, { query, columns }: PageRequest): Statement {
  const isBounded = limit !== ALL && !isWhole(way)
  // entries that stand aside may lack the other columns
  const isCovered = isGuessed && (way.covering !== undefined || !isAside(way.parts))
  const read = (names: readonly string[], entries: number) =>
    entriesOf({ way, isCovered, names, limit: entries }, query)
  const needsRows = isAside(way.parts) && !isCovered
  const ofRows = needsRows ? (way.kind === 'walk' ? keyColumnsOf(query) : ['id']) : ['*']
  const needed = isCovered ? [...keyColumnsOf(query), ...columnsOf(query.filter, way.residual)] : ofRows
  // entries without their rows are read once, for both questions
  const isKept = way.kind === 'gather' && isCovered && isBounded
  const found = read([...new Set(needed)], isWhole(way) ? rowLimit(query) : limit + Number(isKept))
  const checks = checksOfNamed(query.filter, way.residual)
  const entries = needsRows ? rowsOf(found, query, checks) : found
  const asked = needsRows ? [] : checks
  // a gather whose entries are too many is not sorted, and its rows are not read
  const ofGather =
    way.kind === 'walk' ? [] : [afterPosition(query), ...(isBounded ? [raw('not (select cut from more)')] : [])]
  const order = way.kind === 'walk' ? '' : `\n${orderOfAnswer(keysOf(query), directionOf(query))}`
  const rows = rowLimit(query)
  const from = isKept ? raw('gathered entries') : raw('(\n?\n) entries', [entries])
  const page = raw(`from ?\nwhere ?${order} limit ${rows}`, [from, allOf([...asked, ...ofGather])])
  const { accountId } = query.filter
  const ofAccount = (column: string) =>
    `(select ${column} from account_changes where account_id = :accountId) as ${column}`
  const stamp = query.sortBy === 'changed' ? `, ${ofAccount('last_changed_at')}` : ''
  const lastChange = ofAccount('last_change')
  const names = columns.join(', ')
  const selected = isCovered
    ? `select p.*, ${lastChange}, false as cut${stamp} from (select id :page) page
cross join lateral (select ${names} from payments where account_id = :accountId and id = page.id offset 0) p limit ${rows}`
    : `select ${names}, ${lastChange}, false as cut${stamp} :page`
  // of a gather the index alone is read, whatever its columns are
  const keys = read(way.kind === 'walk' ? keyColumnsOf(query) : ['id'], limit + 1)
  const ofKeys = isKept ? from : raw('(\n?\n) entries', [keys])
  const more = raw(`select exists (select from ? offset ${limit}) as cut`, [ofKeys])
  const tables = [
    ...(isKept ? [commonTable('gathered', entries, 'materialized')] : []),
    ...(isBounded ? [commonTable('more', more, 'materialized')] : []),
  ]
  return raw(
    `${tables.length === 0 ? '' : 'with :tables\n'}select * from (
(${selected})
union all
(select ${columns.map(() => 'null').join(', ')}, ${lastChange}, ${isBounded ? '(select cut from more)' : 'false'}${stamp})
) page limit ${rows}`,
    { accountId, page, tables: join(tables, ', ') },
  )
}

/**
 * The row limit in the text. It is no binding, because PostgreSQL plans for the limit that it sees; so that the texts stay few, it is
 * rounded up.
 */
function rowLimit({ rows }: PageQuery): number {
  return LIMITS.find((limit) => limit >= rows) ?? rows
}

const LIMITS = [11, 21, 51, 101, 1_001, 10_001]

/** The rows of entries that are of another table, in their order, if they pass the checks. */
function rowsOf(found: Statement, { filter }: PageQuery, checks: readonly Statement[]): Statement {
  const isRow = [accountIs(filter.accountId), raw('id = found.id'), ...checks]
  return raw('select p.* from (\n?\n) found\ncross join lateral (select * from payments where ? offset 0) p', [
    found,
    allOf(isRow),
  ])
}

/** Which entries of a way are read. */
interface EntriesTerms {
  readonly way: Way
  /** Whether by the index that has every column needed. */
  readonly isCovered: boolean
  /** Columns, or `*`: whole rows pass through without being copied. */
  readonly names: readonly string[]
  /** At most so many entries. */
  readonly limit: number
}

/**
 * The entries of a way: branch by branch, for a walk merged in the order of the answer. The order and the limit of every branch leave
 * PostgreSQL one index to read it by, and one way: branch after branch, never in parallel, which the order of the answer relies on.
 *
 * @example payer A by date
 * select * from (
 *   (select * from payments where account_id = ? and payer = ? and status = ? order by timestamp desc, id desc limit 21)
 *   union all
 *   (…)
 * ) merged order by timestamp desc, id desc limit 21
 */
function entriesOf({ way, isCovered, names, limit }: EntriesTerms, query: PageQuery): Statement {
  const parts = (isCovered ? way.covering : undefined) ?? way.parts
  const select = `select ${names.join(', ')} from ${isAside(parts) ? 'payment_metadata' : 'payments'}`
  const branchesOf = isMerged(parts) ? eachBranch : allBranches
  const runs = runsOf(way.kind, parts, query).map((run) => {
    const branches = run.parts.flatMap((part) => {
      const asked = [...conditionsOf(part, query), ...run.bounds]
      const order = run.order ?? orderOfIndex(part)
      return branchesOf(part, query, (ofBranch) =>
        raw(`${select}\nwhere ?${order} limit ${limit}`, [allOf([...ofBranch, ...asked])]),
      )
    })
    if (branches.length === 1 && isMerged(parts)) return unionAll(branches)
    return raw(`select * from (?) merged${run.order ?? ''} limit ${limit}`, [unionAll(branches)])
  })
  if (runs.length === 0) return raw(`${select} where false`)
  return runs.length === 1 ? unionAll(runs) : raw(`select * from (?) runs limit ${limit}`, [unionAll(runs)])
}

/** Branches that are merged. Runs follow each other in the order of the answer. */
interface Run {
  readonly parts: readonly WayPart[]
  readonly bounds: readonly Statement[]
  /** Of the answer; undefined where each branch has the order of its index. */
  readonly order?: string
}

/** A gather is one run. A walk has one for each status in the order of status, and for known and unknown amounts in that of the amount. */
function runsOf(kind: Way['kind'], parts: readonly WayPart[], query: PageQuery): Run[] {
  const some = parts.filter(({ tuples, symbols }) => tuples.length > 0 || symbols !== undefined)
  if (some.length === 0) return []
  if (kind === 'gather') return [{ parts: some, bounds: [] }]
  const { position, sortBy, filter } = query
  const direction = directionOf(query)
  const keys = keysOf(query)
  const atPosition = some.map((part) => ({ ...part, within: rangesLeft(part.within, query) }))
  if (sortBy === 'status') return runsByStatus(some, atPosition, query)
  const order = `\norder by ${orderTerms(keys, direction)}`
  const ranges = keyRanges(keys, direction, filter, position)
  const inOrder = direction === 'asc' ? ranges : ranges.toReversed()
  return inOrder.map((range) => ({ parts: atPosition, bounds: [range], order }))
}

/** The run of the position's status begins there, those of earlier statuses are left out. Within a status the order is that of time. */
function runsByStatus(parts: readonly WayPart[], atPosition: readonly WayPart[], query: PageQuery): Run[] {
  const { position, filter } = query
  const direction = directionOf(query)
  const keys = keysOf(query).slice(1)
  const order = `\norder by ${orderTerms(keys, direction)}`
  const rankOf = ({ columns }: WayPart, tuple: WayPart['tuples'][number]) => Number(tuple[columns.indexOf('status')])
  const ranks = new Set(parts.flatMap((part) => part.tuples.map((tuple) => rankOf(part, tuple))))
  const current = position && Number(position.keys[0])
  const left = [...ranks].filter(
    (rank) => current === undefined || (direction === 'asc' ? rank >= current : rank <= current),
  )
  return left.map((rank) => {
    const ofRank = (part: WayPart) => ({ ...part, tuples: part.tuples.filter((tuple) => rankOf(part, tuple) === rank) })
    if (position === undefined || rank !== current) return { parts: parts.map(ofRank), bounds: [], order }
    const bounds = keyRanges(keys, direction, filter, { ...position, keys: position.keys.slice(1) })
    return { parts: atPosition.map(ofRank), bounds, order }
  })
}

function conditionsOf({ index, within, filter, except }: WayPart, query: PageQuery): Statement[] {
  const field = filterFields.find(({ name }) => name === except?.filter)
  const values = except && query.filter[except.filter]
  return [
    ...conditionsOfNamed(query.filter, filter === undefined ? within : [filter]),
    ...(index === 'payments_source_network' ? [raw('source_network <> network')] : []),
    ...(except && values && field?.kind === 'list' ? [noneOf(except.column, field.value, values)] : []),
  ]
}

/** The order of a whole branch, by which PostgreSQL takes the index. */
function orderOfIndex({ index, columns }: WayPart): string {
  const { order, hasStatus, then = [] } = indexes[index]
  if (order === undefined) return ''
  const keys = [...(hasStatus && !columns.includes('status') ? ['status'] : []), order, ...then, 'id']
  return `\norder by ${keys.join(', ')}`
}

type Branches = (part: WayPart, query: PageQuery, select: (ofBranch: readonly Statement[]) => Statement) => Statement[]

/** A select for each branch, with its values. */
const eachBranch: Branches = ({ columns, tuples }, { filter }, select) =>
  tuples.map((tuple) =>
    select([
      accountIs(filter.accountId),
      ...columns.map((column, at) => raw(`${column} = ?::${branchTypes[column]}`, [tuple[at] ?? null])),
    ]),
  )

/**
 * One select for all branches, whose text does not depend on their number.
 *
 * @example select k.* from (select * from unnest(?::bytea[], ?::smallint[])) d(payer, status) cross join lateral (…) k
 */
const allBranches: Branches = ({ columns, tuples, symbols = [] }, { filter }, select) => {
  const arrays = columns.map((_, at) => tuples.map((tuple) => tuple[at] ?? null))
  const tables = [
    raw(`select * from unnest(${columns.map((column) => `?::${branchTypes[column]}[]`).join(', ')})`, arrays),
    ...symbols.map((symbol) => idsOfSymbol(symbol, filter.accountId)),
  ]
  const ofBranch = columns.map((column) => raw(`${column} = d.${column}`))
  return [
    raw(`select k.* from (?) d(${columns.join(', ')})\ncross join lateral (?) k`, [
      unionAll(tables),
      select([accountIs(filter.accountId), ...ofBranch]),
    ]),
  ]
}

/** The invoice currencies of a symbol that an account has, each found by one descent of the index from the one before. */
function idsOfSymbol(symbol: string, accountId: number): Statement {
  const next = (from: string) => `select invoice_currency from payments
where account_id = :accountId and invoice_currency ${from} and invoice_currency < :end::text order by invoice_currency limit 1`
  return raw(
    `with recursive ids(invoice_currency) as (
(${next('>= :start::text')})
union all
select (${next('> ids.invoice_currency')}) from ids where invoice_currency is not null
) select invoice_currency from ids where :isOfSymbol`,
    { accountId, start: `${symbol}-`, end: `${symbol}.`, isOfSymbol: invoiceSymbolCondition(symbol) },
  )
}
