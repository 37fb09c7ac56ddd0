import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type PaymentRequest, type Waybill, WaybillCallError } from '@waybill/client'
import { requestTexts, stateTexts } from '../../look/texts.ts'
import { isAboveZero } from '../parts/decimals.ts'
import { textIn } from '../parts/form-text.ts'
import { Link } from '../parts/link.tsx'
import { navigate, searchOf, useLocation } from '../parts/location.ts'
import { Empty, ErrorNotice, Waiting } from '../parts/notices.tsx'
import { Page } from '../parts/page.tsx'
import { Amount, Time } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { rememberRequests } from './last-requests.ts'
import { Outstanding } from './outstanding.tsx'
import { RequestBadges } from './request-badges.tsx'
import { readPaymentReference, readSearch, type ViewName, viewNameOf, viewNames, views } from './request-views.ts'

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
  rememberRequests(placeOf(shown))
  return (
    <Page
      title={texts.title}
      actions={
        <Link to="/requests/new" className="button main">
          {texts.create}
        </Link>
      }
    >
      <div className="stack">
        <Outstanding />
        <Search key={shown.q} shown={shown} />
        <Tabs shown={shown} />
        <List shown={shown} />
      </div>
    </Page>
  )
}

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
  return (
    <form
      role="search"
      className="request-search"
      onSubmit={(event) => {
        event.preventDefault()
        navigate(placeOf({ view, q: textIn(event.currentTarget, 'q') }))
      }}
    >
      <label htmlFor="find" className="unseen">
        {texts.searchLabel}
      </label>
      <input
        id="find"
        name="q"
        type="search"
        className="input"
        defaultValue={q}
        placeholder={texts.searchHint}
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
      />
      <button type="submit" className="button">
        {texts.search}
      </button>
      {q !== '' && (
        <Link to={placeOf({ view })} className="button plain">
          {texts.clear}
        </Link>
      )}
    </form>
  )
}

function Tabs({ shown }: { shown: Shown }) {
  return (
    <nav className="tabs row" aria-label={texts.tabs}>
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

interface Found {
  /** Newest first. */
  readonly requests: readonly PaymentRequest[]
  readonly newer: string | undefined
  readonly older: string | undefined
}

function List({ shown }: { shown: Shown }) {
  const waybill = useWaybill()
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: ['requests', shown],
    queryFn: ({ signal }) => findRequests(waybill, shown, signal),
    placeholderData: keepPreviousData,
  })
  if (error !== null) return <ErrorNotice error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Waiting lines={20} />
  return (
    <div className="request-list" aria-busy={isPlaceholderData}>
      {data.requests.length === 0 ? <NoRequests shown={shown} /> : <Table requests={data.requests} />}
      <Paging shown={shown} found={data} />
    </div>
  )
}

async function findRequests(waybill: Waybill, shown: Shown, signal: AbortSignal): Promise<Found> {
  const { view, q, cursor } = shown
  const named = cursor === undefined ? await findByReference(waybill, q, signal) : undefined
  // A cursor carries the filters.
  const asked = cursor === undefined ? { ...views[view], ...readSearch(q), limit: ROWS } : { cursor }
  const { requests, pagination } = await waybill.listPaymentRequests(asked, { signal })
  const others = requests.filter(({ requestId }) => requestId !== named?.requestId)
  return {
    requests: named === undefined ? requests : [named, ...others],
    newer: pagination?.prevCursor,
    older: pagination?.nextCursor,
  }
}

/** The list has no filter by payment reference, which names one request at most. */
async function findByReference(waybill: Waybill, q: string, signal: AbortSignal): Promise<PaymentRequest | undefined> {
  const paymentReference = readPaymentReference(q)
  if (paymentReference === undefined) return undefined
  return waybill.getPaymentRequest({ paymentReference }, { signal }).catch((error: unknown) => {
    if (error instanceof WaybillCallError && error.code === 'not_found') return undefined
    throw error
  })
}

function Table({ requests }: { requests: readonly PaymentRequest[] }) {
  const { columns, table } = texts
  return (
    <div className="table-scroll" role="group" tabIndex={0} aria-label={table}>
      <table className="table request-table">
        <thead>
          <tr>
            <th scope="col">{columns.reference}</th>
            <th scope="col">{columns.state}</th>
            <th scope="col" className="right">
              {columns.amount}
            </th>
            <th scope="col" className="right">
              {columns.paid}
            </th>
            <th scope="col" className="right">
              {columns.outstanding}
            </th>
            <th scope="col">{columns.currency}</th>
            <th scope="col">{columns.created}</th>
            <th scope="col">{columns.expires}</th>
          </tr>
        </thead>
        <tbody>
          {requests.map((request) => (
            <Row key={request.paymentReference} request={request} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({ request }: { request: PaymentRequest }) {
  const { columns, never } = texts
  const { paymentReference, reference, invoiceCurrency } = request
  return (
    <tr>
      <td className="request-name" title={reference}>
        <Link to={`/requests/${paymentReference}`} className={reference === undefined ? 'mono' : undefined}>
          {reference ?? paymentReference}
        </Link>
      </td>
      <td>
        <RequestBadges request={request} />
      </td>
      <td className="right" data-name={columns.amount}>
        <Amount value={request.amount} currency={invoiceCurrency} bare />
      </td>
      <Paid name={columns.paid} amount={request.paidAmount} currency={invoiceCurrency} />
      <Paid name={columns.outstanding} amount={request.outstandingAmount} currency={invoiceCurrency} />
      <td data-name={columns.currency}>{invoiceCurrency}</td>
      <td data-name={columns.created}>
        <Time at={request.createdAt} />
      </td>
      <td data-name={columns.expires}>
        {request.expiresAt === undefined ? <span className="quiet">{never}</span> : <Time at={request.expiresAt} />}
      </td>
    </tr>
  )
}

/** Zero is quiet, so that what is left stands out. */
function Paid({ name, amount, currency }: { name: string; amount: string; currency: string }) {
  return (
    <td className={isAboveZero(amount) ? 'right' : 'right quiet'} data-name={name}>
      <Amount value={amount} currency={currency} bare />
    </td>
  )
}

function NoRequests({ shown: { view, q } }: { shown: Shown }) {
  const { none, noneHelp, notFound, notFoundHelp, create, all } = texts
  if (q !== '')
    return (
      <Empty title={notFound(q)}>
        <p>{notFoundHelp}</p>
        {view !== 'ALL' && <Link to={placeOf({ q })}>{all}</Link>}
      </Empty>
    )
  return (
    <Empty title={none[view]}>
      <p>{view === 'ALL' ? noneHelp.first : noneHelp.other}</p>
      {view === 'ALL' && (
        <Link to="/requests/new" className="button main">
          {create}
        </Link>
      )}
    </Empty>
  )
}

function Paging({ shown, found }: { shown: Shown; found: Found }) {
  const { newer, older } = texts
  const to = (cursor: string) => placeOf({ ...shown, cursor })
  if (found.newer === undefined && found.older === undefined) return undefined
  return (
    <nav className="paging" aria-label={texts.pages}>
      {found.newer === undefined ? (
        <span />
      ) : (
        <Link to={to(found.newer)} className="button">
          <span aria-hidden="true">←</span> {newer}
        </Link>
      )}
      {found.older === undefined ? (
        <span />
      ) : (
        <Link to={to(found.older)} className="button">
          {older} <span aria-hidden="true">→</span>
        </Link>
      )}
    </nav>
  )
}
