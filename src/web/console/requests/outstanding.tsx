import { useQuery } from '@tanstack/react-query'
import {
  ListPaymentRequestsRequest_IncludeTotal as IncludeTotal,
  type PaymentRequest,
  PaymentRequest_Status as Status,
  Pagination_TotalRelation as TotalRelation,
  type Waybill,
} from '@waybill/client'
import { useState } from 'react'
import { formatAmount } from '../../look/format-amount.ts'
import { requestTexts } from '../../look/texts.ts'
import { ErrorNotice } from '../parts/notices.tsx'
import { missingScope } from '../parts/scope-notice.tsx'
import { Amount } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'
import { type OutstandingSum, sumOutstanding } from './outstanding-sums.ts'

/** So many are added up without being asked for. */
const FEW = 500
/** Beyond it the sum is of the newest alone, and says so. */
const MAX_ADDED = 2_000

const unpaid = { status: [Status.OPEN, Status.PARTIALLY_PAID], limit: 100 }

interface Added {
  readonly sums: readonly OutstandingSum[]
  readonly requests: number
  readonly hasMore: boolean
}

/** What is outstanding, by currency: added up from the requests, by themselves where they are few. */
export function Outstanding() {
  const waybill = useWaybill()
  const { title, note } = requestTexts.outstanding
  const [isAsked, setAsked] = useState(false)
  const count = useQuery({ queryKey: ['requests', 'unpaid'], queryFn: ({ signal }) => countUnpaid(waybill, signal) })
  const isWanted = isAsked || (count.data !== undefined && count.data.total <= FEW)
  const added = useQuery({
    queryKey: ['requests', 'outstanding'],
    queryFn: ({ signal }) => addUp(waybill, signal),
    enabled: isWanted,
    staleTime: 30_000,
  })
  const error = count.error ?? added.error
  // The list says it.
  if (missingScope(error) !== undefined) return null
  return (
    <section className="owed" aria-labelledby="outstanding">
      <div>
        <h2 id="outstanding">{title}</h2>
        <p className="quiet small owed-note">{note}</p>
      </div>
      {error !== null && <ErrorNotice error={error} onRetry={() => void (count.error ? count : added).refetch()} />}
      {error === null && added.data !== undefined && <Sums added={added.data} />}
      {error === null && added.data === undefined && (
        <Ask total={count.data} isWanted={isWanted} onAsk={() => setAsked(true)} />
      )}
    </section>
  )
}

interface Unpaid {
  readonly total: number
  readonly isAtLeast: boolean
}

async function countUnpaid(waybill: Waybill, signal: AbortSignal): Promise<Unpaid> {
  const asked = { ...unpaid, limit: 1, includeTotal: IncludeTotal.EXACT }
  const { pagination } = await waybill.listPaymentRequests(asked, { signal })
  return { total: pagination?.total ?? 0, isAtLeast: pagination?.totalRelation !== TotalRelation.EXACT }
}

async function addUp(waybill: Waybill, signal: AbortSignal): Promise<Added> {
  const requests: PaymentRequest[] = []
  for await (const request of waybill.eachPaymentRequest(unpaid, { signal })) {
    if (requests.length === MAX_ADDED) return { ...sumsOf(requests), hasMore: true }
    requests.push(request)
  }
  return { ...sumsOf(requests), hasMore: false }
}

function sumsOf(requests: readonly PaymentRequest[]) {
  const sums = sumOutstanding(requests, new Date())
  return { sums, requests: requests.length }
}

function Ask({ total, isWanted, onAsk }: { total: Unpaid | undefined; isWanted: boolean; onAsk: () => void }) {
  const { add, adding } = requestTexts.outstanding
  if (total === undefined || isWanted)
    return (
      <p className="owed-wait quiet" role="status">
        {adding}
      </p>
    )
  return (
    <p className="owed-wait">
      <button type="button" className="button" onClick={onAsk}>
        {add(total.total.toLocaleString() + (total.isAtLeast ? '+' : ''))}
      </button>
    </p>
  )
}

function Sums({ added: { sums, requests, hasMore } }: { added: Added }) {
  const { nothing, cut, of } = requestTexts.outstanding
  if (sums.length === 0) return <p className="owed-wait quiet">{nothing}</p>
  return (
    <>
      <ul className="sums">
        {sums.map(({ symbol, amount, requests: count, parts }) => (
          <li key={symbol} className="sum">
            <strong>
              <Amount value={amount} currency={symbol} />
            </strong>
            <span className="quiet small">{of(count)}</span>
            {parts.length > 1 && (
              <span className="unseen">
                {parts.map((part) => `${part.network}: ${formatAmount(part.amount)}`).join(', ')}
              </span>
            )}
          </li>
        ))}
      </ul>
      {hasMore && <p className="small">{cut(requests)}</p>}
    </>
  )
}
