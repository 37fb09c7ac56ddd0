import { PaymentRequest_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { gatherPage, type ListPage, readPaymentReference, readSearch, viewNameOf, views } from './request-views.ts'

const now = new Date('2026-11-23T12:00:00Z')

interface Row {
  readonly index: number
  readonly status: Status
  readonly overpaidAmount: string
}

/** Paid requests, newest first, each fortieth over-paid; cursors are `older:INDEX` and `newer:INDEX`. */
function listOf(count: number): ListPage<Row> {
  const rows = Array.from({ length: count }, (_, index) => ({
    index,
    status: Status.PAID,
    overpaidAmount: index % 40 === 39 ? '1' : '0',
  }))
  return async (from) => {
    const [direction, at] = 'cursor' in from ? from.cursor.split(':') : ['older', '0']
    const limit = 'cursor' in from ? 100 : from.limit
    const start = direction === 'older' ? Number(at) : Math.max(0, Number(at) - limit)
    const end = direction === 'older' ? Math.min(count, start + limit) : Number(at)
    return {
      requests: rows.slice(start, end),
      pagination: {
        ...(end < count && { nextCursor: `older:${end}` }),
        ...(start > 0 && { prevCursor: `newer:${start}` }),
      },
    }
  }
}

it('gives a page of the service as it is where all of it belongs to the view', async () => {
  const page = await gatherPage(listOf(50), views.PAID, { now })
  expect(page).toMatchObject({ newer: undefined, older: 'older:20', looked: 20, isCut: false })
  expect(page.requests).toHaveLength(20)
})

it('walks both ways over what is picked and shows each once', async () => {
  const list = listOf(2_400)
  const first = await gatherPage(list, views.OVERPAID, { now })
  expect(first.requests.length).toBeGreaterThanOrEqual(20)
  const second = await gatherPage(list, views.OVERPAID, { now, cursor: first.older })
  const back = await gatherPage(list, views.OVERPAID, { now, cursor: second.newer, direction: 'newer' })
  expect(back.requests).toEqual(first.requests)
  const seen = [...first.requests, ...second.requests].map(({ index }) => index)
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, index) => index * 40 + 39))
})

it('stops at the bound and says so', async () => {
  const page = await gatherPage(listOf(5_000), views.CANCELLED, { now })
  expect(page).toMatchObject({ requests: [], looked: 2_000, isCut: true, older: 'older:2000' })
})

it.each([
  [null, 'ALL'],
  ['open', 'OPEN'],
  ['OVERPAID', 'OVERPAID'],
  ['toString', 'ALL'],
  ['settled', 'ALL'],
])('the status %s in a link names the view %s', (text, name) => {
  expect(viewNameOf(text)).toBe(name)
})

it.each([
  ['', {}],
  [' INV-2026-0042 ', { reference: ['INV-2026-0042'] }],
  [`01${'a'.repeat(64)}`, { requestId: [`01${'a'.repeat(64)}`] }],
  [`02${'a'.repeat(64)}`, { reference: [`02${'a'.repeat(64)}`] }],
  [`0x${'Ab'.repeat(20)}`, { payee: [`0x${'Ab'.repeat(20)}`] }],
])('searches %o by %o', (text, asked) => {
  expect(readSearch(text)).toEqual(asked)
})

it.each([
  ['0x1122334455667788', '0x1122334455667788'],
  [' 11223344556677AA ', '0x11223344556677aa'],
  ['112233445566778', undefined],
  ['0x11223344556677zz', undefined],
])('reads %s as the payment reference %s', (text, reference) => {
  expect(readPaymentReference(text)).toBe(reference)
})
