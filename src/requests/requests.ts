import { createHash } from 'node:crypto'
import type { Account } from '../domain/account.ts'
import { parsePaymentReference } from '../domain/payment-reference.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { type ListedRequests, type ListInput, listRequests } from './list-requests.ts'
import {
  differingTerms,
  type KnownCurrencies,
  parseTerms,
  requestOfTerms,
  type Terms,
  type TermsInput,
} from './request-terms.ts'
import type { RequestListRepository } from './sql/request-list-repository.ts'
import type { RequestRepository, RequestWithBalance } from './sql/request-repository.ts'

/** What a caller may add to a new request. */
export interface CreateOptions {
  /** Header `idempotency-key`. */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal
}

/** Terms, and when they were made. */
export interface DatedTerms {
  readonly terms: TermsInput
  readonly createdAt: Date
}

/** Payment requests of accounts. */
export interface Requests {
  /**
   * Stores a request, or returns the stored one of the same id and terms.
   *
   * @throws WaybillError for terms that are not valid, REQUEST_TERMS_DIFFER, IDEMPOTENCY_KEY_REUSED, INVALID_IDEMPOTENCY_KEY, and EXPIRY_PAST
   *   where a new one would be expired from the start
   */
  create(account: Account, input: TermsInput, options?: CreateOptions): Promise<RequestWithBalance>
  /**
   * Stores many requests that were made elsewhere at known times; those whose id is stored are left as they are.
   *
   * @throws WaybillError for the first terms that are not valid; then none is stored
   */
  storeAll(account: Account, entries: readonly DatedTerms[], signal?: AbortSignal): Promise<void>
  /** @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND */
  get(account: Account, paymentReference: string, signal?: AbortSignal): Promise<RequestWithBalance>
  /**
   * Cancels a request, whatever its status; one that was cancelled stays as it is.
   *
   * @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND
   */
  cancel(account: Account, paymentReference: string, signal?: AbortSignal): Promise<RequestWithBalance>
  /** @throws WaybillError as {@link listRequests} does */
  list(account: Account, input: ListInput, signal?: AbortSignal): Promise<ListedRequests>
}

/**
 * Told of the requests that a call stored or found stored, so that payments which came before it are attached. Also of those
 * found: the process may have died between storing one and telling of it.
 */
export type RequestsStored = (account: Account, requests: readonly PaymentRequest[]) => Promise<void>

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

/** Makes the service of requests. */
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
      await refuseUnlessMade(account, terms, { idempotencyKey, ...(signal && { signal }) })
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

  /** A call that is made again is answered with the request of the first one, also when that has expired meanwhile. */
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
    const reference = parsePaymentReference(text)
    if (reference === undefined) {
      throw waybillError('INVALID_PAYMENT_REFERENCE', { field: 'paymentReference', value: text })
    }
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

/** The request under the id that an earlier call with the same idempotency key drew. */
function withRequestId(request: PaymentRequest, terms: Terms, requestId: string): PaymentRequest {
  return requestId === request.requestId ? request : requestOfTerms({ ...terms, requestId }, request.createdAt)
}

function refuseOtherTerms(terms: Terms, stored: PaymentRequest): void {
  const different = differingTerms(terms, stored)
  if (different.length === 0) return
  throw waybillError('REQUEST_TERMS_DIFFER', { value: stored.requestId, detail: different.join(', ') })
}

function hashTerms(terms: Terms): Buffer {
  const sorted = Object.entries(terms).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(sorted)).digest()
}
