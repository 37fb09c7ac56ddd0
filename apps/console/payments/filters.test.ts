import { expect, it } from 'vitest'
import {
  filtersOf,
  findUnknownName,
  searchFilters,
  searchOfPage,
  sortOf,
  withFilters,
  withoutFilter,
  withoutOrder,
  withSort,
} from './filters.ts'

const query = (text: string) => new URLSearchParams(text)

it('adds a filter once, however often it is chosen', () => {
  const once = withFilters(query(''), [{ field: 'status', value: 'FAILED' }])
  expect(withFilters(once, [{ field: 'status', value: 'FAILED' }]).toString()).toBe('status=FAILED')
  expect(withFilters(once, [{ field: 'status', value: 'PENDING' }]).toString()).toBe('status=FAILED&status=PENDING')
  expect(filtersOf(query('status=FAILED&status=FAILED'))).toEqual([{ field: 'status', value: 'FAILED' }])
})

it('replaces a filter of one value, and begins paging anew', () => {
  expect(withFilters(query('q=a&cursor=x'), [{ field: 'q', value: 'b' }]).toString()).toBe('q=b')
  expect(withoutFilter(query('network=BSC&network=BASE&cursor=x'), { field: 'network', value: 'BSC' }).toString()).toBe(
    'network=BASE',
  )
})

it('names the zone of its days, and no zone without days', () => {
  const days = withFilters(query('zone=Asia/Kolkata'), [{ field: 'from', value: '2026-03-01' }])
  expect(days.get('zone')).toBe('Asia/Kolkata')
  expect(withoutFilter(days, { field: 'from', value: '2026-03-01' }).toString()).toBe('')
  expect(withFilters(query(''), [{ field: 'to', value: '2026-03-01' }]).get('zone')).toBe(
    Intl.DateTimeFormat().resolvedOptions().timeZone,
  )
})

it('is the same question in any order and on any page', () => {
  const asked = query('status=FAILED&by=day&sortBy=amount&sortOrder=asc&cursor=x')
  expect(withoutOrder(asked).toString()).toBe('status=FAILED&by=day')
})

it('asks for whole days of the zone, and names a zone with days alone', () => {
  const days = { fromDate: '2026-03-01', toDate: '2026-03-31' }
  const asked = (zone: string) => searchFilters(query(`from=2026-03-01&to=2026-03-31&zone=${zone}`))
  expect(asked('Asia/Kolkata')).toMatchObject({ ...days, timeZone: 'Asia/Kolkata' })
  const viewers = Intl.DateTimeFormat().resolvedOptions().timeZone
  for (const unknown of ['IST', 'EST5EDT', 'Mars/Olympus'])
    expect(asked(unknown)).toMatchObject({ ...days, timeZone: viewers })
  expect(searchFilters(query('q=a&zone=Asia/Kolkata'))).not.toHaveProperty('timeZone')
})

it.each([
  ['status=NONSENSE', { status: [0] }],
  ['type=nonsense', { type: [0] }],
  ['from=yesterday', { fromDate: 'yesterday' }],
  ['from=2026-02-31', { fromDate: '2026-02-31' }],
  ['to=2026-13-01', { toDate: '2026-13-01' }],
])('sends %s on as it is, for the service to refuse, and never searches without it', (text, sent) => {
  expect(searchFilters(query(text))).toMatchObject(sent)
})

it('finds the filter whose value is the name of nothing', () => {
  expect(findUnknownName(query('status=FAILED&type=direct&network=NONSENSE'))).toBe(undefined)
  expect(findUnknownName(query('status=FAILED&status=BOGUS'))).toEqual({ field: 'status', value: 'BOGUS' })
  expect(findUnknownName(query('exclude.type=bogus'))).toEqual({ field: 'exclude.type', value: 'bogus' })
})

it('sorts by a column, then turns it round; the default is not written', () => {
  const amount = withSort(query('status=FAILED&cursor=x'), 'amount')
  expect(amount.toString()).toBe('status=FAILED&sortBy=amount')
  expect(withSort(amount, 'amount').toString()).toBe('status=FAILED&sortBy=amount&sortOrder=asc')
  expect(withSort(withSort(query(''), 'date'), 'date').toString()).toBe('')
  expect(sortOf(query('sortBy=nonsense&sortOrder=nonsense'))).toEqual({ by: 'date', order: 'desc' })
})

it('pages with the cursor of the link', () => {
  expect(searchOfPage(query('cursor=abc'), 50)).toMatchObject({ cursor: 'abc', limit: 50 })
  expect(searchOfPage(query(''), 50)).not.toHaveProperty('cursor')
})
