import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type PaymentRequest, PaymentRequest_Status as Status, type Waybill } from '@waybill/client'
import { useState } from 'react'
import type { RequestState } from '../../shared/request-state.ts'
import { requestTexts, stateTexts } from '../../shared/texts.ts'
import { Paging, Table } from '../parts/blocks.tsx'
import { isAboveZero } from '../parts/decimals.ts'
import { Button, Form } from '../parts/fields.tsx'
import { Link, LinkButton } from '../parts/link.tsx'
import { navigate, rememberPlace, searchOf, useLocation } from '../parts/location.ts'
import { Empty, ErrorNotice, failureOf, isNotFound, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Amount, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { readPaymentReference, readSearch } from './find-request.ts'
import { Outstanding } from './outstanding.tsx'
import { RequestBadges } from './request-badges.tsx'

/** What of the list is in the link. */
interface Shown {
  readonly view: ViewName
  readonly q: string
  readonly cursor: string | undefined
}

const { list: texts } = requestTexts

const ROWS = 20

export function RequestsPage() {
  const { query } = useLocation()
  const shown = readShown(query)
  rememberPlace('requests', placeOf(shown))
  return (
    <Page title={texts.title} actions={<NewRequest />}>
      <div className="stack">
        <Outstanding />
        <Search key={shown.q} shown={shown} />
        <Tabs shown={shown} />
        <List shown={shown} />
      </div>
    </Page>
  )
}

const NewRequest = () => <LinkButton to="/requests/new" text={texts.create} kind="main" />

function readShown(query: URLSearchParams): Shown {
  return {
    view: viewNameOf(query.get('status')),
    q: query.get('q') ?? '',
    cursor: query.get('cursor') ?? undefined,
  }
}

function placeOf({ view, q, cursor }: Partial<Shown>): string {
  const query = new URLSearchParams()
  if (view !== undefined && view !== 'ALL') query.set('status', view)
  if (q !== undefined && q !== '') query.set('q', q)
  if (cursor !== undefined) query.set('cursor', cursor)
  return `/requests${searchOf(query)}`
}

function Search({ shown: { q, view } }: { shown: Shown }) {
  const [typed, setTyped] = useState(q)
  return (
    <Form role="search" className="narrow row" onSend={() => navigate(placeOf({ view, q: typed.trim() }))}>
      <label htmlFor="find" className="unseen">
        {texts.searchLabel}
      </label>
      <input
        id="find"
        type="search"
        className="input grow"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        placeholder={texts.searchHint}
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
      />
      <Button text={texts.search} type="submit" />
      {q !== '' && <LinkButton to={placeOf({ view })} text={texts.clear} kind="plain" />}
    </Form>
  )
}

function Tabs({ shown }: { shown: Shown }) {
  return (
    <nav className="row gap-1" aria-label={texts.tabs}>
      {viewNames.map((view) => (
        <Link
          key={view}
          to={placeOf({ view, q: shown.q })}
          className="tab"
          aria-current={view === shown.view ? 'page' : undefined}
        >
          {nameOfView(view)}
        </Link>
      ))}
    </nav>
  )
}

function nameOfView(view: ViewName): string {
  if (view === 'ALL') return texts.all
  return view === 'OVERPAID' ? stateTexts.overpaid : stateTexts.request[view]
}

function List({ shown }: { shown: Shown }) {
  const waybill = useWaybill()
  const found = useQuery({
    queryKey: ['requests', shown],
    queryFn: ({ signal }) => findRequests(waybill, shown, signal),
    placeholderData: keepPreviousData,
  })
  const { data, refetch, isPlaceholderData } = found
  const failure = failureOf(found)
  if (failure !== undefined) return <ErrorNotice error={failure} onRetry={() => void refetch()} />
  if (data === undefined) return <Waiting lines={20} />
  return (
    <div className="request-list" aria-busy={isPlaceholderData}>
      {data.isNear && data.requests.length > 0 && <p>{texts.near(shown.q)}</p>}
      {data.requests.length === 0 ? <NoRequests shown={shown} /> : <RequestTable requests={data.requests} />}
      <Paging pagination={data.pagination} placeOf={(cursor) => placeOf({ ...shown, cursor })} />
    </div>
  )
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
  if (q !== '')
    return (
      <Empty title={notFound(q)}>
        <p>{notFoundHelp}</p>
        <Link to={`/payments${searchOf(new URLSearchParams({ q }))}`}>{payments(q)}</Link>
        {view !== 'ALL' && <Link to={placeOf({ q })}>{all}</Link>}
      </Empty>
    )
  return (
    <Empty title={none[view]}>
      <p>{view === 'ALL' ? noneHelp.first : noneHelp.other}</p>
      {view === 'ALL' && <NewRequest />}
    </Empty>
  )
}

/** The lists of requests that people ask for, as the service filters them. */
export type ViewName = 'ALL' | RequestState | 'OVERPAID'

/** Each has a text that says that it is empty. */
export const viewNames = Object.keys(requestTexts.list.none) as readonly ViewName[]

/** The filters of a view. */
export function filtersOfView(name: ViewName): { readonly status?: Status[]; readonly overpaid?: boolean } {
  if (name === 'ALL') return {}
  return name === 'OVERPAID' ? { overpaid: true } : { status: [Status[name]] }
}

/** The view that a link names; all requests where it names none that exists. */
export function viewNameOf(text: string | null): ViewName {
  return viewNames.find((name) => name === text?.toUpperCase()) ?? 'ALL'
}
