import { allOf, commonTable, join, raw, type Statement } from '../../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../../query/page-query.ts'
import { checksOfNamed, columnsOf } from '../../sql/filter-conditions.ts'
import { afterPosition, keyColumnsOf, orderOfAnswer } from '../../sql/keyset.ts'
import { ALL, type Step } from '../ladder.ts'
import { isWhole } from '../ways.ts'
import { entriesOf } from './entries.ts'

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
export function pageStatement({ way, limit, isCovered }: Step, { query, columns }: PageRequest): Statement {
  const isBounded = limit !== ALL && !isWhole(way)
  const read = (names: readonly string[], entries: number) =>
    entriesOf({ way, isCovered, names, limit: entries }, query)
  const needed = isCovered ? [...keyColumnsOf(query), ...columnsOf(query.filter, way.residual)] : ['*']
  // entries without their rows are read once, for both questions
  const isKept = way.kind === 'gather' && isCovered && isBounded
  const entries = read([...new Set(needed)], isWhole(way) ? rowLimit(query) : limit + Number(isKept))
  const asked = checksOfNamed(query.filter, way.residual)
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
  const found = isCovered
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
(${found})
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
