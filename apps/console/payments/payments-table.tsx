import { type Payment, Payment_Type } from '@waybill/client'
import { type KeyboardEvent, memo } from 'react'
import { symbolOf } from '../../shared/format-amount.ts'
import { paymentsTexts } from '../../shared/texts.ts'
import { Link, linkedRow } from '../parts/link.tsx'
import { PaymentBadge } from '../parts/payment-badge.tsx'
import { Amount, Badge, Copyable, Time, Unknown, Usd } from '../parts/shown-values.tsx'
import { type SortField, sortOf, withSort } from './filters.ts'

interface PaymentsTableProps {
  readonly rows: readonly Payment[]
  readonly gone: ReadonlySet<string>
  readonly query: URLSearchParams
  readonly onSort: (query: URLSearchParams) => void
}

/** The payments of a page. Arrow keys go from row to row, Enter opens one. */
export function PaymentsTable({ rows, gone, query, onSort }: PaymentsTableProps) {
  const { columns } = paymentsTexts
  return (
    <div className="table-scroll">
      <table className="table cards payments" onKeyDown={moveBetweenRows}>
        <caption className="unseen">{paymentsTexts.title}</caption>
        <thead>
          <tr>
            <SortHeader by="date" query={query} onSort={onSort} />
            <SortHeader by="status" query={query} onSort={onSort} />
            <SortHeader by="amount" query={query} onSort={onSort} isRight />
            <th scope="col" className="right">
              {columns.usd}
            </th>
            <th scope="col">{columns.network}</th>
            <th scope="col">{columns.payer}</th>
            <th scope="col">{columns.payee}</th>
            <th scope="col">{columns.reference}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((payment) => (
            <PaymentRow key={payment.id} payment={payment} isGone={gone.has(payment.id)} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function SortHeader({
  by,
  query,
  onSort,
  isRight = false,
}: Pick<PaymentsTableProps, 'query' | 'onSort'> & { by: SortField; isRight?: boolean }) {
  const sort = sortOf(query)
  const isSorted = sort.by === by
  const order = sort.order === 'asc' ? 'ascending' : 'descending'
  return (
    <th scope="col" className={isRight ? 'right' : undefined} aria-sort={isSorted ? order : undefined}>
      <button type="button" className="bare sort" onClick={() => onSort(withSort(query, by))}>
        {paymentsTexts.columns[by]}
        <span className="sort-mark" aria-hidden="true">
          ↓
        </span>
      </button>
    </th>
  )
}

interface PaymentRowProps {
  readonly payment: Payment
  readonly isGone: boolean
}

/** Shown again only when its payment changes: of a tail that is every row but the new ones. */
const PaymentRow = memo(function PaymentRow({ payment, isGone }: PaymentRowProps) {
  const { columns } = paymentsTexts
  const to = `/payments/${payment.id}`
  return (
    <tr {...linkedRow(to)} className={isGone ? 'linked gone' : 'linked'}>
      <td>
        <Link to={to} className="row-link">
          <Time at={payment.timestamp} />
        </Link>
      </td>
      <td data-name={columns.status}>
        {isGone ? (
          <Badge tone="quiet">{paymentsTexts.gone}</Badge>
        ) : (
          <PaymentBadge status={payment.status} superseded={payment.superseded} />
        )}
      </td>
      <td className="right" data-name={columns.amount}>
        <Amount value={payment.amount} currency={symbolOf(payment.currency)} />
      </td>
      <td className="right" data-name={columns.usd}>
        <Usd value={payment.amountInUsd} />
      </td>
      <td data-name={columns.network}>
        <Networks payment={payment} />
      </td>
      <td data-name={columns.payer}>
        <Copyable value={payment.payer} />
      </td>
      <td data-name={columns.payee}>
        <Copyable value={payment.payee} />
      </td>
      <td className="reference" data-name={columns.reference} title={payment.reference}>
        {payment.reference ?? <Unknown />}
      </td>
    </tr>
  )
})

function Networks({ payment: { sourceNetwork, network, type } }: { payment: Payment }) {
  const kind =
    type === undefined ? undefined : paymentsTexts.types[Payment_Type[type] as keyof typeof paymentsTexts.types]
  const isBridge = sourceNetwork !== undefined && sourceNetwork !== network
  return (
    <span title={kind}>
      {isBridge && <>{sourceNetwork} → </>}
      {network}
    </span>
  )
}

function moveBetweenRows(event: KeyboardEvent<HTMLTableElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step === undefined) return
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>('.row-link')]
  const row = (event.target as HTMLElement).closest('tr')
  const at = links.findIndex((link) => link.closest('tr') === row)
  const next = links[at + step]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
