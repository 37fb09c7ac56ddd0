import type { Account } from '../domain/account.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import type { RequestLine } from '../domain/request-line.ts'
import { requirePaymentReference } from '../domain/require-input.ts'
import { type WaybillError, waybillError } from '../errors/waybill-error.ts'
import {
  explainOtherTerms,
  hashTerms,
  type KnownCurrencies,
  parseTerms,
  requestOfTerms,
  type Terms,
} from './rules/request-terms.ts'
import type { CancelledRequest, RequestRepository } from './sql/request-repository.ts'

/** Checked terms, and their request. */
export interface ReadRequest {
  readonly terms: Terms
  readonly request: PaymentRequest
}

/** What an import did with a request. */
export type RequestOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'bad'; readonly error: WaybillError }

/** Creates the import of requests. */
export function createRequestImport(options: {
  readonly repository: Pick<RequestRepository, 'insertAll' | 'cancel'>
  readonly known: KnownCurrencies
  readonly now: () => Date
}) {
  const { repository, known, now } = options
  return {
    /** @throws WaybillError for invalid terms, or a payment reference that does not follow from them */
    read(input: RequestLine): ReadRequest {
      const terms = parseTerms(input, known)
      const named = { ...terms, requestId: terms.requestId ?? drawRequestId(terms, input.createdAt) }
      const made = requestOfTerms(named, input.createdAt ?? now())
      refuseOtherReference(input, terms, made)
      const { cancelledAt } = input
      return { terms: named, request: cancelledAt === undefined ? made : { ...made, cancelledAt } }
    },
    /**
     * Stores the new requests, in one transaction. Other terms for a stored request are refused. The same terms change nothing, except that a
     * request that was cancelled elsewhere is cancelled here.
     */
    async write(account: Account, batch: readonly ReadRequest[]): Promise<readonly RequestOutcome[]> {
      const requests = batch.map(({ request }) => request)
      const { inserted, stored } = await repository.insertAll(account, requests)
      const cancelled = new Map<string, CancelledRequest>()
      const outcomes = batch.map(({ terms, request }): RequestOutcome => {
        // Of several lines with the same id, the first was stored.
        if (inserted.delete(request.requestId)) return { kind: 'written' }
        const { requestId, cancelledAt: at } = request
        const known = stored.get(requestId)
        const outcome = outcomeOf(terms, known)
        const isCancel = at !== undefined && known?.cancelledAt === undefined && !cancelled.has(requestId)
        if (outcome.kind !== 'unchanged' || !isCancel) return outcome
        cancelled.set(requestId, { requestId, at })
        return { kind: 'written' }
      })
      if (cancelled.size > 0) await repository.cancel(account, [...cancelled.values()])
      return outcomes
    },
  }
}

function outcomeOf(terms: Terms, stored: PaymentRequest | undefined): RequestOutcome {
  if (stored === undefined) throw new Error('the conflicting request no longer exists; import the line again')
  const error = explainOtherTerms(terms, stored)
  return error === undefined ? { kind: 'unchanged' } : { kind: 'bad', error }
}

/** The id of a line without one. It follows from the terms, so that the same line is the same request each time it is imported. */
function drawRequestId(terms: Terms, createdAt: Date | undefined): string {
  return `01${hashTerms(terms, { createdAt }).toString('hex')}`
}

/** Payers use the reference that they were given, so a request that would get another one is refused. */
function refuseOtherReference(input: RequestLine, terms: Terms, request: PaymentRequest): void {
  if (input.paymentReference === undefined) return
  const field = 'paymentReference'
  const given = requirePaymentReference(field, input.paymentReference)
  if (terms.requestId === undefined || terms.salt === undefined) {
    const detail = 'it follows from requestId and salt, of which one is missing; send both, or leave it out'
    throw waybillError('INVALID_FIELD', { field, detail })
  }
  if (given === request.paymentReference) return
  const detail = `requestId, salt and payee make ${request.paymentReference}`
  throw waybillError('INVALID_FIELD', { field, detail })
}
