import { useQuery } from '@tanstack/react-query'
import { type PaymentRequestSummary, PaymentRequest_Status as Status } from '@waybill/client'
import { addDecimals } from '../../shared/decimals.ts'
import { requestTexts } from '../../shared/texts.ts'
import { Failure, hasFailed } from '../parts/notices.tsx'
import { Amount } from '../parts/shown-values.tsx'
import { useWaybill } from '../parts/signed-in.tsx'

/** A request that is cancelled or expired is not paid any more. */
const owed = { status: [Status.OPEN, Status.PARTIALLY_PAID] }

/** What is outstanding, by currency. */
export function Outstanding() {
  const waybill = useWaybill()
  const { title, note, adding } = requestTexts.outstanding
  const summary = useQuery({
    queryKey: ['requests', 'outstanding'],
    queryFn: async ({ signal }) => sumOutstanding((await waybill.summarizePaymentRequests(owed, { signal })).groups),
    staleTime: 30_000,
  })
  if (hasFailed(summary)) return <Failure query={summary} isBeside />
  const { data } = summary
  return (
    <section className="owed card row gap-wide" aria-labelledby="outstanding">
      <div>
        <h2 id="outstanding">{title}</h2>
        <p className="quiet small">{note}</p>
      </div>
      {data === undefined ? (
        <p className="quiet" role="status">
          {adding}
        </p>
      ) : (
        <Sums sums={data} />
      )}
    </section>
  )
}

function Sums({ sums }: { sums: readonly OutstandingSum[] }) {
  const { nothing, of } = requestTexts.outstanding
  if (sums.length === 0) return <p className="quiet">{nothing}</p>
  return (
    <ul className="sums row gap-wide">
      {sums.map(({ symbol, amount, requests }) => (
        <li key={symbol} className="sum">
          <strong>
            <Amount value={amount} currency={symbol} />
          </strong>
          <span className="quiet small">{of(requests)}</span>
        </li>
      ))}
    </ul>
  )
}

/** What is left of the requests of one invoice currency. */
type OwedGroup = Pick<PaymentRequestSummary['groups'][number], 'symbol' | 'count' | 'outstandingAmount'>

/** What is outstanding in one currency, on whatever chain. */
type OutstandingSum = ReturnType<typeof sumOutstanding>[number]

/**
 * What is outstanding, by the symbol of the currency: exact.
 *
 * @returns the currencies with most requests first
 */
export function sumOutstanding(groups: readonly OwedGroup[]) {
  return [...Map.groupBy(groups, ({ symbol }) => symbol)]
    .map(([symbol, ofSymbol]) => ({
      /** `USDC`, `EUR` */
      symbol,
      amount: addDecimals(ofSymbol.map(({ outstandingAmount }) => outstandingAmount)),
      requests: ofSymbol.reduce((sum, { count }) => sum + count, 0),
    }))
    .toSorted((a, b) => b.requests - a.requests || (a.symbol < b.symbol ? -1 : 1))
}
