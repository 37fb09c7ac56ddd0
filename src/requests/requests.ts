import type { Account } from '../domain/account.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import type { TermsInput } from '../domain/request-line.ts'
import { requirePaymentReference } from '../domain/require-input.ts'
import { waybillError } from '../errors/waybill-error.ts'
import { actorOf } from '../store/audit-repository.ts'
import { checkList, type ListInput, listRequests } from './list-requests.ts'
import {
  explainOtherTerms,
  hashTerms,
  type KnownCurrencies,
  parseTerms,
  parseUpdate,
  requestOfTerms,
  type Terms,
  type UpdateInput,
  updateRequest,
} from './rules/request-terms.ts'
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
  /** The origins of the account's publishable keys in force: where its pages are. */
  readonly originsOf: (account: Account) => Promise<ReadonlySet<string>>
}

/** Creates the service of payment requests of accounts. */
export function createRequests(options: RequestsOptions) {
  const { repository, known, now, onStored } = options

  async function get(account: Account, text: string, signal?: AbortSignal): Promise<RequestWithBalance> {
    const reference = requirePaymentReference('paymentReference', text)
    return requireFound(await repository.findByReference(account, reference, signal), reference)
  }

  /** Refuses an expired request. A repeated call gets the request of the first call, even when that has expired meanwhile. */
  async function refuseUnlessRepeated(account: Account, terms: Terms, { idempotencyKey, signal }: CreateOptions) {
    const { requestId, expiresAt } = terms
    const first =
      idempotencyKey !== undefined
        ? await repository.findIdempotencyClaim(account, idempotencyKey, signal)
        : requestId && (await repository.findById(account, requestId, signal))
    if (first) return
    throw waybillError('EXPIRY_PAST', { field: 'expiresAt', value: expiresAt?.toISOString() ?? '' })
  }

  /** @returns the request with the id that the first call with this idempotency key drew; without a key, as it was drawn */
  async function claimRequest(account: Account, terms: Terms, drawn: PaymentRequest, how: CreateOptions) {
    const { idempotencyKey: key, signal } = how
    if (key === undefined) return drawn
    if (!IDEMPOTENCY_KEY.test(key)) {
      throw waybillError('INVALID_IDEMPOTENCY_KEY', { detail: 'it is empty, too long, or has other characters' })
    }
    const { requestId, createdAt } = drawn
    const termsHash = hashTerms({ ...terms, expiresAt: undefined })
    const claim = await repository.claimIdempotencyKey(account, { key, termsHash, requestId, createdAt }, signal)
    if (!claim.termsHash.equals(termsHash)) throw waybillError('IDEMPOTENCY_KEY_REUSED', {})
    return claim.requestId === requestId ? drawn : requestOfTerms({ ...terms, requestId: claim.requestId }, createdAt)
  }

  return {
    /**
     * Stores a request, or returns the stored one of the same id and terms.
     *
     * @throws WaybillError for invalid terms, REQUEST_TERMS_DIFFER, IDEMPOTENCY_KEY_REUSED, INVALID_IDEMPOTENCY_KEY, and EXPIRY_PAST for a new
     *   request whose expiry is past
     */
    async create(account: Account, input: TermsInput, how: CreateOptions = {}): Promise<RequestWithBalance> {
      const terms = parseTerms(input, known)
      if (terms.returnUrl !== undefined) refuseForeignPage(terms.returnUrl, await options.originsOf(account))
      const drawn = requestOfTerms(terms, now())
      const isPast = terms.expiresAt !== undefined && terms.expiresAt <= drawn.createdAt
      if (isPast) await refuseUnlessRepeated(account, terms, how)
      const claimed = await claimRequest(account, terms, drawn, how)
      const stored = await repository.insert(account, claimed, how.signal)
      const otherTerms = explainOtherTerms(terms, stored)
      if (otherTerms !== undefined) throw otherTerms
      await onStored(account, [stored])
      return requireFound(await repository.findById(account, stored.requestId, how.signal), stored.requestId)
    },

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
    get,

    /**
     * Cancels a request, whatever its status. A cancelled request keeps its time of cancellation.
     *
     * @throws WaybillError INVALID_PAYMENT_REFERENCE, REQUEST_NOT_FOUND
     */
    async cancel(account: Account, text: string, signal?: AbortSignal): Promise<RequestWithBalance> {
      const { requestId } = (await get(account, text, signal)).request
      await repository.cancel(account, [{ requestId, at: now() }], signal)
      return requireFound(await repository.findById(account, requestId, signal), requestId)
    },

    /**
     * Changes what is no term of a request, whatever its status.
     *
     * @throws WaybillError INVALID_PAYMENT_REFERENCE, INVALID_TITLE, INVALID_DATE, INVALID_METADATA, REQUEST_NOT_FOUND, EXPIRY_PAST, TOO_MANY_VALUES
     */
    async update(
      account: Account,
      input: UpdateInput,
      by: { readonly keyId: string | undefined },
      signal?: AbortSignal,
    ): Promise<RequestWithBalance> {
      const update = parseUpdate(input)
      const { requestId } = (await get(account, input.paymentReference, signal)).request
      const at = now()
      const decide = (stored: PaymentRequest) => updateRequest(stored, update, at)
      await repository.update(account, requestId, { ...actorOf(by), at, decide }, signal)
      return requireFound(await repository.findById(account, requestId, signal), requestId)
    },

    /** @throws WaybillError as {@link listRequests} does */
    list: (account: Account, input: ListInput, signal?: AbortSignal) => listRequests(options, account, input, signal),

    /** Reads what was sent for `create`, `update`, `list` and `get`, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    check: {
      create: (input: TermsInput) => void parseTerms(input, known),
      update: (input: UpdateInput) => void parseUpdate(input),
      list: (account: Account, input: ListInput, signal?: AbortSignal) => checkList(options, account, input, signal),
      get: (text: string) => void requirePaymentReference('paymentReference', text),
    },
  }
}

/** Whoever sends payers to a page has a key for pages of that origin. */
function refuseForeignPage(returnUrl: string, origins: ReadonlySet<string>): void {
  if (origins.has(new URL(returnUrl).origin)) return
  const detail = 'no publishable key of the account has its origin'
  throw waybillError('INVALID_RETURN_URL', { field: 'returnUrl', value: returnUrl, detail })
}

function requireFound(found: RequestWithBalance | undefined, value: string): RequestWithBalance {
  if (found === undefined) throw waybillError('REQUEST_NOT_FOUND', { value })
  return found
}
