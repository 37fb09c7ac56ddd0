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
import {
  type Direction,
  type GatheredPage,
  gatherPage,
  readPaymentReference,
  readSearch,
  type ViewName,
  viewNameOf,
  viewNames,
  views,
} from './request-views.ts'

/** What of the list is in the link. */
interface Shown {
  readonly view: ViewName
  readonly q: string
  readonly cursor: string | undefined
  readonly direction: Direction
}

const { list: texts } = requestTexts

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
    direction: query.get('walk') === 'newer' ? 'newer' : 'older',
  }
}

function placeOf({ view, q, cursor, direction }: Partial<Shown>): string {
  const query = new URLSearchParams()
  if (view !== undefined && view !== 'ALL') query.set('status', view)
  if (q !== undefined && q !== '') query.set('q', q)
  if (cursor !== undefined) query.set('cursor', cursor)
  if (cursor !== undefined && direction === 'newer') query.set('walk', 'newer')
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
    <nav className="tabs" aria-label={texts.tabs}>
      {viewNames.map((view) => (
        <Link
          key={view}
          to={placeOf({ view, q: shown.q })}
          className="tab"
          aria-current={view === shown.view ? 'page' : undefined}
        >
          {view === 'ALL' ? texts.all : stateTexts.request[view]}
        </Link>
      ))}
    </nav>
  )
}

type Found = GatheredPage<PaymentRequest>

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
      {data.requests.length === 0 ? <NoRequests shown={shown} found={data} /> : <Table requests={data.requests} />}
      <Paging shown={shown} found={data} />
    </div>
  )
}

async function findRequests(waybill: Waybill, shown: Shown, signal: AbortSignal): Promise<Found> {
  const { view, q, cursor, direction } = shown
  const named = cursor === undefined ? await findByReference(waybill, q, signal) : undefined
  const status = [...views[view].status]
  const { requestId = [], payee = [], reference = [] } = readSearch(q)
  const filter = { status, requestId: [...requestId], payee: [...payee], reference: [...reference] }
  const page = await gatherPage<PaymentRequest>(
    (from) => waybill.listPaymentRequests('cursor' in from ? from : { ...filter, ...from }, { signal }),
    views[view],
    { cursor, direction, now: new Date() },
  )
  if (named === undefined) return page
  return { ...page, requests: [named, ...page.requests.filter(({ requestId }) => requestId !== named.requestId)] }
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

function NoRequests({ shown: { view, q }, found }: { shown: Shown; found: Found }) {
  const { none, noneHelp, notFound, notFoundHelp, create, all, lookedAt } = texts
  if (q !== '')
    return (
      <Empty title={notFound(q)}>
        <p>{notFoundHelp}</p>
        {view !== 'ALL' && <Link to={placeOf({ q })}>{all}</Link>}
      </Empty>
    )
  return (
    <Empty title={none[view]}>
      {found.isCut ? <p>{lookedAt(found.looked)}</p> : <p>{view === 'ALL' ? noneHelp.first : noneHelp.other}</p>}
      {view === 'ALL' && (
        <Link to="/requests/new" className="button main">
          {create}
        </Link>
      )}
    </Empty>
  )
}

function Paging({ shown, found }: { shown: Shown; found: Found }) {
  const { newer, older, lookFurther, lookedAt } = texts
  const to = (cursor: string, direction: Direction) => placeOf({ ...shown, cursor, direction })
  if (found.newer === undefined && found.older === undefined) return undefined
  return (
    <nav className="paging" aria-label={texts.pages}>
      {found.newer === undefined ? (
        <span />
      ) : (
        <Link to={to(found.newer, 'newer')} className="button">
          <span aria-hidden="true">←</span> {newer}
        </Link>
      )}
      {found.isCut && <span className="quiet small">{lookedAt(found.looked)}</span>}
      {found.older === undefined ? (
        <span />
      ) : (
        <Link to={to(found.older, 'older')} className="button">
          {found.isCut ? lookFurther : older} <span aria-hidden="true">→</span>
        </Link>
      )}
    </nav>
  )
}
