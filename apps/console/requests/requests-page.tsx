import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type PaymentRequest, PaymentRequest_Status as Status, type Waybill } from '@waybill/client'
import { isAboveZero } from '../../shared/decimals.ts'
import { requestTexts, stateTexts } from '../../shared/texts.ts'
import { Paging, Table } from '../parts/blocks.tsx'
import { Button, Form, textOf } from '../parts/fields.tsx'
import { Link, LinkButton } from '../parts/link.tsx'
import { navigate, placeOf, rememberPlace, useLocation } from '../parts/location.ts'
import { Answer, Empty, isNotFound } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Amount, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { readPaymentReference, readSearch } from './find-request.ts'
import { Outstanding } from './outstanding.tsx'
import { RequestBadges } from './request-badges.tsx'

const { list: texts } = requestTexts

const ROWS = 20

export function RequestsPage() {
  const { query } = useLocation()
  rememberPlace('requests', placeOf('/requests', {}, query))
  return (
    <Page title={texts.title} actions={<NewRequest />}>
      <div className="stack">
        <Outstanding />
        <Search key={query.get('q')} query={query} />
        <Tabs query={query} />
        <List query={query} />
      </div>
    </Page>
  )
}

const NewRequest = () => <LinkButton to="/requests/new" text={texts.create} kind="main" />

interface ListProps {
  readonly query: URLSearchParams
}

function Search({ query }: ListProps) {
  const q = query.get('q') ?? ''
  const find = (typed: FormData) => navigate(placeOf('/requests', { q: textOf(typed, 'q'), cursor: '' }, query))
  return (
    <Form role="search" className="narrow row" onSend={find}>
      <input
        name="q"
        type="search"
        className="input grow"
        aria-label={texts.searchLabel}
        defaultValue={q}
        placeholder={texts.searchHint}
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
      />
      <Button text={texts.search} type="submit" />
      {q !== '' && (
        <LinkButton to={placeOf('/requests', { q: '', cursor: '' }, query)} text={texts.clear} kind="plain" />
      )}
    </Form>
  )
}

function Tabs({ query }: ListProps) {
  const shown = viewNameOf(query.get('status'))
  return (
    <nav className="row gap-1" aria-label={texts.tabs}>
      {viewNames.map((view) => (
        <Link
          key={view}
          to={placeOf('/requests', { status: view === 'ALL' ? '' : view, cursor: '' }, query)}
          className="tab"
          aria-current={view === shown ? 'page' : undefined}
        >
          {viewTexts[view]}
        </Link>
      ))}
    </nav>
  )
}

function List({ query }: ListProps) {
  const waybill = useWaybill()
  const shown = {
    view: viewNameOf(query.get('status')),
    q: query.get('q') ?? '',
    cursor: query.get('cursor') ?? undefined,
  }
  const found = useQuery({
    queryKey: ['requests', shown],
    queryFn: ({ signal }) => findRequests(waybill, shown, signal),
    placeholderData: keepPreviousData,
  })
  return (
    <Answer query={found} lines={20}>
      {({ requests, pagination, isNear }) => (
        <div className="request-list" aria-busy={found.isPlaceholderData}>
          {isNear && requests.length > 0 && <p>{texts.near(shown.q)}</p>}
          {requests.length === 0 ? <NoRequests shown={shown} /> : <RequestTable requests={requests} />}
          <Paging pagination={pagination} />
        </div>
      )}
    </Answer>
  )
}

/** What of the list is in the link. */
interface Shown {
  readonly view: ViewName
  readonly q: string
  readonly cursor: string | undefined
}

/** Newest first. */
async function findRequests(waybill: Waybill, shown: Shown, signal: AbortSignal) {
  const { view, q, cursor } = shown
  const named = cursor === undefined ? await findByReference(waybill, q, signal) : undefined
  // A cursor carries the filters.
  const asked = cursor === undefined ? { ...filtersOfView(view), ...readSearch(q), limit: ROWS } : { cursor }
  const { requests, pagination } = await waybill.listPaymentRequests(asked, { signal })
  const others = requests.filter(({ requestId }) => requestId !== named?.requestId)
  const found = named === undefined ? requests : [named, ...others]
  if (found.length > 0 || q === '') return { requests: found, pagination, isNear: false }
  return { requests: await findNear(waybill, shown, signal), pagination, isNear: true }
}

/** The service finds a reference that is typed whole; of the newest requests also one of which a part is remembered. */
async function findNear(waybill: Waybill, { view, q }: Shown, signal: AbortSignal) {
  const { requests } = await waybill.listPaymentRequests({ ...filtersOfView(view), limit: 100 }, { signal })
  return requests.filter(({ reference }) => reference?.toUpperCase().includes(q.toUpperCase()))
}

/** The list has no filter by payment reference, which names one request at most. */
async function findByReference(waybill: Waybill, q: string, signal: AbortSignal): Promise<PaymentRequest | undefined> {
  const paymentReference = readPaymentReference(q)
  if (paymentReference === undefined) return undefined
  return waybill.getPaymentRequest({ paymentReference }, { signal }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined
    throw error
  })
}

function RequestTable({ requests }: { requests: readonly PaymentRequest[] }) {
  const { columns, table, never } = texts
  const rows = requests.map((request) => {
    const { paymentReference, reference, invoiceCurrency, expiresAt } = request
    return [
      <Link
        to={`/requests/${paymentReference}`}
        className={reference === undefined ? 'row-link mono' : 'row-link'}
        title={reference}
      >
        {reference ?? paymentReference}
      </Link>,
      <RequestBadges request={request} />,
      <Amount value={request.amount} currency={invoiceCurrency} bare />,
      <Paid amount={request.paidAmount} currency={invoiceCurrency} />,
      <Paid amount={request.outstandingAmount} currency={invoiceCurrency} />,
      invoiceCurrency,
      <Time at={request.createdAt} />,
      expiresAt === undefined ? <span className="quiet">{never}</span> : <Time at={expiresAt} />,
    ]
  })
  const links = requests.map(({ paymentReference }) => `/requests/${paymentReference}`)
  return (
    <Table label={table} columns={columns} rows={rows} links={links} numbers={[2, 4]} className="cards request-table" />
  )
}

/** Zero is quiet, so that what is left stands out. */
function Paid({ amount, currency }: { amount: string; currency: string }) {
  return (
    <span className={isAboveZero(amount) ? undefined : 'quiet'}>
      <Amount value={amount} currency={currency} bare />
    </span>
  )
}

function NoRequests({ shown: { view, q } }: { shown: Shown }) {
  const { none, noneHelp, notFound, notFoundHelp, payments, all } = texts
  const isAll = view === 'ALL'
  if (q !== '')
    return (
      <Empty title={notFound(q)}>
        <p>{notFoundHelp}</p>
        <Link to={placeOf('/payments', { q })}>{payments(q)}</Link>
        {!isAll && <Link to={placeOf('/requests', { q })}>{all}</Link>}
      </Empty>
    )
  return (
    <Empty title={isAll ? none.yet : none.here}>
      <p>{isAll ? noneHelp.first : noneHelp.other}</p>
      {isAll && <NewRequest />}
    </Empty>
  )
}

/** The lists of requests that people ask for. */
const viewTexts = { ALL: texts.all, ...stateTexts.request, OVERPAID: stateTexts.overpaid }
export type ViewName = keyof typeof viewTexts
export const viewNames = Object.keys(viewTexts) as readonly ViewName[]

/** The filters of a view. */
export function filtersOfView(name: ViewName): { readonly status?: Status[]; readonly overpaid?: boolean } {
  if (name === 'ALL') return {}
  return name === 'OVERPAID' ? { overpaid: true } : { status: [Status[name]] }
}

/** The view that a link names; all requests where it names none that exists. */
export function viewNameOf(text: string | null): ViewName {
  return viewNames.find((name) => name === text?.toUpperCase()) ?? 'ALL'
}
