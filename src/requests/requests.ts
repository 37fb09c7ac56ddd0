import type { Account } from '../domain/account.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import { requirePaymentReference } from '../domain/require-input.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { checkList, type ListInput, listRequests } from './list-requests.ts'
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

/** Terms, and when the request was created and cancelled elsewhere. */
export interface DatedTerms {
  readonly terms: TermsInput
  readonly createdAt: Date
  readonly cancelledAt?: Date | undefined
}

export type Requests = ReturnType<typeof createRequests>

/**
 * Called with the requests that a call stored or found stored, so that earlier payments are attached to them. A found request is included
 * because the process may have stopped between storing it and this call.
 */
export type RequestsStored = (account: Account, requests: readonly PaymentRequest[]) => Promise<void>

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

/** What the service of payment requests is made of. */
export interface RequestsOptions {
  readonly repository: RequestRepository
  readonly lists: RequestListRepository
  readonly known: KnownCurrencies
  /** 32 bytes, the same for all processes on one database. */
  readonly cursorSecret: Uint8Array
  readonly now: () => Date
  readonly onStored: RequestsStored
}

/** Creates the service of payment requests of accounts. */
export function createRequests(options: RequestsOptions) {
  const { repository, known, now, onStored } = options
  return {
    /**
     * Stores a request, or returns the stored one of the same id and terms.
     *
     * @throws WaybillError for invalid terms, REQUEST_TERMS_DIFFER, IDEMPOTENCY_KEY_REUSED, INVALID_IDEMPOTENCY_KEY, and EXPIRY_PAST for a new
     *   request whose expiry is past
     */
    create: (account: Account, input: TermsInput, how: CreateOptions = {}) =>
      createRequest(options, account, input, how),

    /**
     * Stores many requests that were created elsewhere. A request whose id is stored stays as it is.
     *
     * @throws WaybillError for the first invalid terms; then none is stored
     */
    async storeAll(account: Account, entries: readonly DatedTerms[], signal?: AbortSignal): Promise<void> {
      const requests = entries.map(({ terms, createdAt, cancelledAt }) => ({
        ...requestOfTerms(parseTerms(terms, known), createdAt),
        cancelledAt,
      }))
      await repository.insertAll(account, requests, signal)
      await onStored(account, requests)
    },

    /** @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND */
    get: (account: Account, text: string, signal?: AbortSignal) => getByReference(repository, account, text, signal),

    /**
     * Cancels a request, whatever its status. A cancelled request keeps its time of cancellation.
     *
     * @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND
     */
    async cancel(account: Account, text: string, signal?: AbortSignal): Promise<RequestWithBalance> {
      const { request } = await getByReference(repository, account, text, signal)
      await repository.cancel(account, [{ requestId: request.requestId, at: now() }], signal)
      return getById(repository, account, request.requestId, signal)
    },

    /** @throws WaybillError as {@link listRequests} does */
    list: (account: Account, input: ListInput, signal?: AbortSignal) => listRequests(options, account, input, signal),

    /** Reads what was sent for `create`, `list` and `get`, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    check: {
      create: (input: TermsInput) => void parseTerms(input, known),
      list: (account: Account, input: ListInput, signal?: AbortSignal) => checkList(options, account, input, signal),
      get: (text: string) => void requirePaymentReference('paymentReference', text),
    },
  }
}

async function createRequest(
  options: RequestsOptions,
  account: Account,
  input: TermsInput,
  { idempotencyKey, signal }: CreateOptions,
): Promise<RequestWithBalance> {
  const { repository, known, now, onStored } = options
  const terms = parseTerms(input, known)
  const drawn = requestOfTerms(terms, now())
  if (terms.expiresAt !== undefined && terms.expiresAt <= drawn.createdAt) {
    await refuseUnlessRepeated(repository, account, terms, { idempotencyKey, signal })
  }
  const claim = { key: idempotencyKey, terms, requestId: drawn.requestId, createdAt: now() }
  const requestId = await claimRequestId(repository, account, claim, signal)
  const stored = await repository.insert(account, withRequestId(drawn, terms, requestId), signal)
  refuseOtherTerms(terms, stored)
  await onStored(account, [stored])
  return getById(repository, account, stored.requestId, signal)
}

/** Refuses an expired request. A repeated call gets the request of the first call, even when that has expired meanwhile. */
async function refuseUnlessRepeated(
  repository: RequestRepository,
  account: Account,
  { requestId, expiresAt }: Terms,
  { idempotencyKey, signal }: CreateOptions,
): Promise<void> {
  const first =
    idempotencyKey !== undefined
      ? await repository.findIdempotencyClaim(account, idempotencyKey, signal)
      : requestId && (await repository.findById(account, requestId, signal))
  if (first) return
  throw waybillError('EXPIRY_PAST', { field: 'expiresAt', value: expiresAt?.toISOString() ?? '' })
}

interface NewClaim {
  readonly key: string | undefined
  readonly terms: Terms
  readonly requestId: string
  readonly createdAt: Date
}

/** @returns the id that the first call with this idempotency key drew; without a key, the given id */
async function claimRequestId(
  repository: RequestRepository,
  account: Account,
  { key, terms, requestId, createdAt }: NewClaim,
  signal?: AbortSignal,
): Promise<string> {
  if (key === undefined) return requestId
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw waybillError('INVALID_IDEMPOTENCY_KEY', { detail: 'it is empty, too long, or has other characters' })
  }
  const termsHash = hashTerms(terms)
  const claim = await repository.claimIdempotencyKey(account, { key, termsHash, requestId, createdAt }, signal)
  if (!claim.termsHash.equals(termsHash)) throw waybillError('IDEMPOTENCY_KEY_REUSED', {})
  return claim.requestId
}

async function getById(
  repository: RequestRepository,
  account: Account,
  requestId: string,
  signal?: AbortSignal,
): Promise<RequestWithBalance> {
  const found = await repository.findById(account, requestId, signal)
  if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: requestId })
  return found
}

async function getByReference(
  repository: RequestRepository,
  account: Account,
  text: string,
  signal?: AbortSignal,
): Promise<RequestWithBalance> {
  const reference = requirePaymentReference('paymentReference', text)
  const found = await repository.findByReference(account, reference, signal)
  if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: reference })
  return found
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
