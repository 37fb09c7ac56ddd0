import type { Account } from '../../domain/account.ts'
import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import {
  isUnpaid,
  type RequestStatus,
  rankOfSettledStatus,
  requestStatuses,
  type SettledStatus,
  unpaidStatuses,
} from '../../domain/payment-request.ts'
import { allOf, anyOf, raw, type Statement, TRUE, timeText } from '../../postgres/statement.ts'
import type { FilteredCurrencies, RequestFilter } from '../rules/request-filter.ts'

/** The requests of an account that a list, a count or a summary has. */
export interface MatchingRequests {
  readonly filter: RequestFilter
  /** What the filter's networks and currencies mean in the account. */
  readonly currencies: FilteredCurrencies
  /** The moment that expiry is judged by. */
  readonly now: Date
}

/** The highest rank of a status in which something is still to be paid. */
export const MAX_UNPAID = unpaidStatuses.length

/** In the words of the indexes. The invoice currency of a filter is fiat, and no payment currency. */
export const IS_INVOICED_OTHERWISE = 'invoice_currency <> payment_currency'
export const IS_OVERPAID = 'overpaid is not false'

export function accountIs({ id }: Account): Statement {
  return raw('account_id = ?::int', [id])
}

/** The whole condition on a row of `requests`. */
export function conditionOf(account: Account, { filter, currencies, now }: MatchingRequests): Statement {
  const { requestId, reference, payee, network, currency, fromDate, toDate } = filter
  return allOf([
    accountIs(account),
    oneOf('request_id', requestId?.map(hexToBytes), 'bytea'),
    oneOf('reference', reference, 'text'),
    oneOf('payee', payee?.map(addressToBytes), 'bytea'),
    oneOf('network', network, 'text'),
    currency === undefined
      ? TRUE
      : anyOf([
          oneOf('payment_currency', currencies.payment, 'text'),
          allOf([oneOf('invoice_currency', currencies.invoice, 'text'), raw(IS_INVOICED_OTHERWISE)]),
        ]),
    fromDate === undefined ? TRUE : raw('created_at >= ?::timestamptz', [timeText(fromDate)]),
    toDate === undefined ? TRUE : raw('created_at <= ?::timestamptz', [timeText(toDate)]),
    statusIs(filter, now),
  ])
}

function oneOf(column: string, values: readonly (string | Buffer)[] | undefined, type: string): Statement {
  return values === undefined ? TRUE : raw(`${column} = any(?::${type}[])`, [values])
}

/** What is paid is stored. Whether a request that is still to be paid is cancelled or expired follows from its terms and the moment. */
function statusIs({ status = requestStatuses, overpaid }: RequestFilter, now: Date): Statement {
  if (status === requestStatuses && overpaid === undefined) return TRUE
  const at = timeText(now.getTime())
  const isPayable = `status <= ${MAX_UNPAID} and cancelled_at is null`
  const unpaid = status.filter(isUnpaid)
  const paid = status.filter((each) => ranksOf([each]).every((rank) => rank > MAX_UNPAID))
  const ofPaid = overpaid === undefined ? TRUE : raw(overpaid ? IS_OVERPAID : 'overpaid = false')
  const alternatives = [
    unpaid.length > 0 &&
      raw(`? and ${isPayable} and (expires_at is null or expires_at > ?::timestamptz)`, [rankIn(unpaid), at]),
    status.includes('CANCELLED') && raw(`status <= ${MAX_UNPAID} and cancelled_at is not null`),
    status.includes('EXPIRED') && raw(`${isPayable} and expires_at <= ?::timestamptz`, [at]),
    paid.length > 0 && allOf([rankIn(paid), raw(`status > ${MAX_UNPAID}`), ofPaid]),
  ]
  const asked = overpaid === true ? alternatives.slice(-1) : alternatives
  return anyOf(asked.filter((one) => one !== false))
}

function rankIn(statuses: readonly RequestStatus[]): Statement {
  return raw('status = any(?::smallint[])', [ranksOf(statuses)])
}

/** The ranks of the stored statuses that requests of these statuses have. */
export function ranksOf(statuses: readonly RequestStatus[]): number[] {
  const stored = statuses.flatMap((each): readonly SettledStatus[] =>
    each === 'CANCELLED' || each === 'EXPIRED' ? unpaidStatuses : [each],
  )
  return [...new Set(stored.map(rankOfSettledStatus))]
}
