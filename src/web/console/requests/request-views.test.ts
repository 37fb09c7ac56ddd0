import { PaymentRequest_Status as Status } from '@waybill/client'
import { expect, it } from 'vitest'
import { statesOf } from './request-badges.tsx'
import { readPaymentReference, readSearch, type ViewName, viewNameOf, viewNames, views } from './request-views.ts'

const now = new Date('2026-11-23T12:00:00Z')
const past = { $typeName: 'google.protobuf.Timestamp' as const, seconds: 1n, nanos: 0 }

const every = [Status.OPEN, Status.PARTIALLY_PAID, Status.PENDING, Status.PAID, Status.REFUNDED].flatMap((status) =>
  ['0', '1'].flatMap((overpaidAmount) =>
    [{}, { cancelledAt: past }].flatMap((cancelled) =>
      [{}, { expiresAt: past }].map((expiring) => ({ status, overpaidAmount, ...cancelled, ...expiring })),
    ),
  ),
)

/** What the service answers for the filters of a view. */
function isListed(request: (typeof every)[number], name: ViewName): boolean {
  const { status, overpaid, expired, cancelled } = views[name]
  const isShort = request.status === Status.OPEN || request.status === Status.PARTIALLY_PAID
  const isOr = (asked: boolean | undefined, is: boolean) => asked === undefined || asked === is
  return (
    (status === undefined || status.includes(request.status)) &&
    isOr(overpaid, request.overpaidAmount !== '0') &&
    isOr(expired, isShort && 'expiresAt' in request) &&
    isOr(cancelled, 'cancelledAt' in request)
  )
}

it.each(viewNames.filter((name) => !['ALL', 'PAID'].includes(name)))(
  'lists under %s the requests with its badge',
  (name) => {
    const listed = every.filter((request) => isListed(request, name))
    expect(listed).toEqual(every.filter((request) => statesOf(request, now).some((state) => state === name)))
  },
)

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
