import type { Account } from '../domain/account.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import { requirePaymentReference } from '../domain/require-input.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type ListedRequests, type ListInput, listRequests } from './list-requests.ts'
import {
  differingTerms,
  hashTerms,
  type KnownCurrencies,
  parseTerms,
  requestOfTerms,
  type Terms,
  type TermsInput,
} from './request-terms.ts'
import type { RequestListRepository } from './sql/request-list-repository.ts'
import type { RequestRepository, RequestWithBalance } from './sql/request-repository.ts'

/** What a caller may send beside the terms of a new request. */
export interface CreateOptions {
  /** Header `idempotency-key`. */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Terms, and when the request was created elsewhere. */
export interface DatedTerms {
  readonly terms: TermsInput
  readonly createdAt: Date
}

/** Payment requests of accounts. */
export interface Requests {
  /**
   * Stores a request, or returns the stored one of the same id and terms.
   *
   * @throws WaybillError for invalid terms, REQUEST_TERMS_DIFFER, IDEMPOTENCY_KEY_REUSED, INVALID_IDEMPOTENCY_KEY, and EXPIRY_PAST for a new
   *   request whose expiry is past
   */
  create(account: Account, input: TermsInput, options?: CreateOptions): Promise<RequestWithBalance>
  /**
   * Stores many requests that were created elsewhere. A request whose id is stored stays as it is.
   *
   * @throws WaybillError for the first invalid terms; then none is stored
   */
  storeAll(account: Account, entries: readonly DatedTerms[], signal?: AbortSignal): Promise<void>
  /** @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND */
  get(account: Account, paymentReference: string, signal?: AbortSignal): Promise<RequestWithBalance>
  /**
   * Cancels a request, whatever its status. A cancelled request keeps its time of cancellation.
   *
   * @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND
   */
  cancel(account: Account, paymentReference: string, signal?: AbortSignal): Promise<RequestWithBalance>
  /** @throws WaybillError as {@link listRequests} does */
  list(account: Account, input: ListInput, signal?: AbortSignal): Promise<ListedRequests>
}

/**
 * Called with the requests that a call stored or found stored, so that earlier payments are attached to them. A found request is included
 * because the process may have stopped between storing it and this call.
 */
export type RequestsStored = (account: Account, requests: readonly PaymentRequest[]) => Promise<void>

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

/** Creates the service of payment requests. */
export function createRequests(options: {
  readonly repository: RequestRepository
  readonly lists: RequestListRepository
  readonly known: KnownCurrencies
  readonly cursorSecret: Uint8Array
  readonly now: () => Date
  readonly onStored: RequestsStored
}): Requests {
  const { repository, known, now, onStored } = options

  async function create(account: Account, input: TermsInput, { idempotencyKey, signal }: CreateOptions = {}) {
    const terms = parseTerms(input, known)
    const request = requestOfTerms(terms, now())
    if (terms.expiresAt !== undefined && terms.expiresAt <= request.createdAt) {
      await refuseUnlessMade(account, terms, { idempotencyKey, signal })
    }
    const requestId =
      idempotencyKey === undefined
        ? request.requestId
        : await claimIdempotencyKey(account, { key: idempotencyKey, terms, requestId: request.requestId }, signal)
    const stored = await repository.insert(account, withRequestId(request, terms, requestId), signal)
    refuseOtherTerms(terms, stored)
    await onStored(account, [stored])
    return load(account, stored.requestId, signal)
  }

  /** A repeated call gets the request of the first call, even when that has expired meanwhile. */
  async function refuseUnlessMade(account: Account, terms: Terms, { idempotencyKey: key, signal }: CreateOptions) {
    const isMade =
      key !== undefined
        ? (await repository.findIdempotencyClaim(account, key, signal)) !== undefined
        : terms.requestId !== undefined && (await repository.findById(account, terms.requestId, signal)) !== undefined
    if (isMade) return
    throw waybillError('EXPIRY_PAST', { field: 'expiresAt', value: terms.expiresAt?.toISOString() ?? '' })
  }

  async function claimIdempotencyKey(
    account: Account,
    { key, terms, requestId }: { key: string; terms: Terms; requestId: string },
    signal?: AbortSignal,
  ): Promise<string> {
    if (!IDEMPOTENCY_KEY.test(key)) {
      throw waybillError('INVALID_IDEMPOTENCY_KEY', { detail: 'it is empty, too long, or has other characters' })
    }
    const termsHash = hashTerms(terms)
    const claim = await repository.claimIdempotencyKey(account, { key, termsHash, requestId, createdAt: now() }, signal)
    if (!claim.termsHash.equals(termsHash)) throw waybillError('IDEMPOTENCY_KEY_REUSED', {})
    return claim.requestId
  }

  async function load(account: Account, requestId: string, signal?: AbortSignal): Promise<RequestWithBalance> {
    const found = await repository.findById(account, requestId, signal)
    if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: requestId })
    return found
  }

  async function storeAll(account: Account, entries: readonly DatedTerms[], signal?: AbortSignal) {
    const made = entries.map(({ terms, createdAt }) => requestOfTerms(parseTerms(terms, known), createdAt))
    await repository.insertMany(account, made, signal)
    await onStored(account, made)
  }

  async function get(account: Account, text: string, signal?: AbortSignal): Promise<RequestWithBalance> {
    const reference = requirePaymentReference('paymentReference', text)
    const found = await repository.findByReference(account, reference, signal)
    if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: reference })
    return found
  }

  return {
    create,
    storeAll,
    get,
    async cancel(account, text, signal) {
      const { request } = await get(account, text, signal)
      await repository.cancel(account, request.requestId, now(), signal)
      return load(account, request.requestId, signal)
    },
    list: (account, input, signal) => listRequests(options, account, input, signal),
  }
}

/** The request with the id that the first call with this idempotency key drew. */
function withRequestId(request: PaymentRequest, terms: Terms, requestId: string): PaymentRequest {
  return requestId === request.requestId ? request : requestOfTerms({ ...terms, requestId }, request.createdAt)
}

function refuseOtherTerms(terms: Terms, stored: PaymentRequest): void {
  const different = differingTerms(terms, stored)
  if (different.length === 0) return
  throw waybillError('REQUEST_TERMS_DIFFER', { value: stored.requestId, detail: different.join(', ') })
}
