/** What the one box suggests for what has been typed. */
import { dayIn, formatOnce } from '../../shared/format-time.ts'
import { readAmount } from '../../shared/read-amount.ts'
import { stateTexts, suggestTexts } from '../../shared/texts.ts'
import { placeOf } from '../parts/location.ts'
import type { Filter, FilterField } from './filters.ts'
import { addDays, lastDayOf } from './periods.ts'

export interface Suggestion {
  readonly id: string
  /** `Network` */
  readonly title: string
  /** `ETHEREUM` */
  readonly says: string
  readonly filters: readonly Filter[]
  /** The place that shows it, where no filter does. */
  readonly to?: string
}

/** Names that may be completed: closed sets, and what the account's payments have. */
export type KnownNames = Readonly<Record<'status' | 'network' | 'currency' | 'type', readonly string[]>>

const MAX_OF_KIND = 4
/** Fewer letters stand in nearly every name, so they have to begin a word. */
const LETTERS_WITHIN = 3

/** The first is what Enter takes. */
export function suggest(typed: string, known: KnownNames, { now, zone }: { now: Date; zone: string }): Suggestion[] {
  const text = typed.trim()
  if (text === '') return suggestDays('', now, zone).slice(0, 5)
  const identifiers = suggestIdentifiers(text)
  return [
    ...identifiers,
    ...suggestNames(text, known),
    ...suggestDays(text, now, zone),
    ...suggestTogether(text, known, { now, zone }),
    ...(identifiers.length === 0 ? suggestReference(text) : []),
    ...suggestYear(text),
    ...suggestAmounts(text),
    search(text),
  ]
}

/** The beginning of a reference, which may be its whole; also of digits alone, as order numbers are. `INV-*` says that it is no name. */
function suggestReference(text: string): Suggestion[] {
  const isPaymentId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
  const [, prefix] = /^([\p{L}\p{N}#].+?)\*?$/u.exec(text) ?? []
  if (prefix === undefined || isPaymentId) return []
  // Who asks why an order is not paid finds no payment of it.
  return /\d/.test(prefix) ? [of('referencePrefix', prefix), ofRequest(prefix)] : [of('referencePrefix', prefix)]
}

/** `failed yesterday`, `refunded in october`, `polygon usdc last week`: the first suggestion of each part. */
function suggestTogether(text: string, known: KnownNames, at: { now: Date; zone: string }): Suggestion[] {
  for (const { index, 0: gap } of text.matchAll(/\s+(?:(?:in|on|of|from)\s+)?/gi)) {
    const rest = text.slice(index + gap.length)
    const [first, second] = [text.slice(0, index), rest].map(
      (part) => [...suggestNames(part, known), ...suggestDays(part, at.now, at.zone)][0],
    )
    const other = second ?? suggestTogether(rest, known, at)[0]
    if (first === undefined || other === undefined) continue
    if (other.filters.some(({ field }) => first.filters.some((each) => each.field === field))) continue
    const says = `${first.says} · ${other.says}`
    return [{ id: `both:${says}`, title: suggestTexts.together, says, filters: [...first.filters, ...other.filters] }]
  }
  return []
}

function suggestNames(text: string, known: KnownNames): Suggestion[] {
  const fields = ['status', 'network', 'currency', 'type'] as const
  return fields.flatMap((field) => complete(field, text, known[field]))
}

function ofRequest(reference: string): Suggestion {
  return {
    id: 'request',
    title: suggestTexts.request,
    says: reference,
    filters: [],
    to: placeOf('/requests', { q: reference }),
  }
}

function search(text: string): Suggestion {
  return { id: 'q', title: suggestTexts.search, says: text, filters: [{ field: 'q', value: text }] }
}

function complete(field: FilterField, text: string, names: readonly string[]): Suggestion[] {
  const sought = text.toUpperCase()
  const found = names.filter((name) => isFoundIn(name, text))
  // Those that begin with it first.
  const sorted = found.toSorted((left, right) => position(left, sought) - position(right, sought))
  return sorted.slice(0, MAX_OF_KIND).map((value) => of(field, value))
}

function isFoundIn(name: string, text: string): boolean {
  const [within, sought] = [name.toUpperCase(), text.toUpperCase()]
  if (sought.length >= LETTERS_WITHIN || within.startsWith(sought)) return within.includes(sought)
  return within.split(/[\s-]+/).some((word) => word.startsWith(sought))
}

const position = (name: string, sought: string) => (name.toUpperCase().startsWith(sought) ? 0 : 1)

function of(field: FilterField, value: string): Suggestion {
  return {
    id: `${field}:${value}`,
    title: suggestTexts.fields[field],
    says: valueText(field, value),
    filters: [{ field, value }],
  }
}

/** A value as people read it. */
export function valueText(field: FilterField, value: string): string {
  const name = value.toUpperCase()
  if (field.endsWith('status') && name in stateTexts.payment)
    return stateTexts.payment[name as keyof typeof stateTexts.payment]
  return value
}

function suggestIdentifiers(text: string): Suggestion[] {
  if (/^(?:0x[0-9a-f]{40}|T[1-9A-HJ-NP-Za-km-z]{33})$/i.test(text)) {
    return (['walletAddress', 'payer', 'payee'] as const).map((field) => of(field, text))
  }
  if (/^0x[0-9a-f]{64}$/i.test(text)) return [of('txHash', text)]
  if (/^(?:0x)?[0-9a-f]{16}$/i.test(text)) return [of('paymentReference', text)]
  if (/^01[0-9a-f]{64}$/i.test(text)) return [of('requestId', text)]
  return []
}

/** `>100`, `<=5`, `10-20`, `19,90`; none where the viewer may mean one of two. */
function suggestAmounts(text: string): Suggestion[] {
  if (/^\d{4}-\d\d(?:-\d\d)?$/.test(text)) return []
  const [, sign, bound = text] = /^([<>])=?(.+)$/.exec(text) ?? []
  const only = readAmount(bound)
  const [least, most] = text.split(/-|–|\.\./, 2).map((part) => readAmount(part))
  if (typeof only === 'string') {
    const fields = sign === '>' ? (['minAmount'] as const) : sign === '<' ? (['maxAmount'] as const) : RANGE
    return fields.map((field) => of(field, only))
  }
  if (typeof least !== 'string' || typeof most !== 'string') return []
  const filters: Filter[] = [
    { field: 'minAmount', value: least },
    { field: 'maxAmount', value: most },
  ]
  return [{ id: 'range', title: suggestTexts.between, says: `${least} – ${most}`, filters }]
}

const RANGE = ['minAmount', 'maxAmount'] as const

/** Named spans of days, a day and a month by number. */
function suggestDays(text: string, now: Date, zone: string): Suggestion[] {
  const [, month, day] = /^\d{4}-(\d\d)(?:-(\d\d))?$/.exec(text) ?? []
  if (day !== undefined) return [span(text, text, text)]
  if (Number(month) >= 1 && Number(month) <= 12) return [span(text, `${text}-01`, lastDayOf('month', text))]
  const { spans } = suggestTexts
  const today = dayIn(now, zone)
  const firstOfMonth = today.replace(/\d\d$/, '01')
  const endOfLastMonth = addDays(firstOfMonth, -1)
  const monday = addDays(today, -((new Date(`${today}T00:00:00Z`).getUTCDay() + 6) % 7))
  const all = [
    span(spans.today, today, today),
    span(spans.yesterday, addDays(today, -1), addDays(today, -1)),
    span(spans.thisWeek, monday, addDays(monday, 6)),
    span(spans.lastWeek, addDays(monday, -7), addDays(monday, -1)),
    span(spans.last7, addDays(today, -6), today),
    span(spans.last30, addDays(today, -29), today),
    span(spans.thisMonth, firstOfMonth, today),
    span(spans.lastMonth, endOfLastMonth.replace(/\d\d$/, '01'), endOfLastMonth),
  ]
  return [...all.filter(({ says }) => isFoundIn(says, text)), ...suggestMonths(text, today)]
}

/** `october`, `oct 2025`: the last that has begun where no year is given. */
function suggestMonths(text: string, today: string): Suggestion[] {
  const [, name = '', year] = /^(\p{L}{3,})\s*(\d{4})?$/u.exec(text) ?? []
  if (name === '') return []
  return Array.from({ length: 12 }, (_, index) => `${index + 1}`.padStart(2, '0')).flatMap((month) => {
    const last = today.slice(5, 7) < month ? Number(today.slice(0, 4)) - 1 : today.slice(0, 4)
    const first = `${year ?? last}-${month}-01`
    const names = [undefined, 'en'].map((locale) => monthName(first, locale))
    if (!names.some((each) => each.toUpperCase().startsWith(name.toUpperCase()))) return []
    return [span(`${names[0]} ${first.slice(0, 4)}`, first, lastDayOf('month', first))]
  })
}

const monthName = (day: string, locale: string | undefined) =>
  formatOnce(Intl.DateTimeFormat, locale, { timeZone: 'UTC', month: 'long' }).format(new Date(`${day}T00:00:00Z`))

/** After the beginning of an order number, which is likelier. */
function suggestYear(text: string): Suggestion[] {
  return /^20\d\d$/.test(text) ? [span(suggestTexts.year(text), `${text}-01-01`, `${text}-12-31`)] : []
}

function span(says: string, from: string, to: string): Suggestion {
  const filters: Filter[] = [
    { field: 'from', value: from },
    { field: 'to', value: to },
  ]
  return { id: `days:${says}`, title: suggestTexts.days, says, filters }
}
