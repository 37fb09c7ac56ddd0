import { waybillError } from '../errors/waybill-error.ts'

/** What a browser tells of the page behind a call. Other programs can send the same: it proves nothing of them. */
export interface PageHeaders {
  /** Header `origin`. */
  readonly origin: string | null
  /** Header `sec-fetch-site`. */
  readonly fetchSite: string | null
  /** Name and port under which the service was asked for, from `host` or `:authority`. */
  readonly host: string | null
}

/** Calls a minute with publishable keys from one client address. */
export const PUBLISHABLE_CALLS_PER_MINUTE = 60

/**
 * Admits a call with a publishable key: of a method for pages, from a page of one of its origins or from the page to pay on, which the service
 * itself serves. A browser tells of the latter by `sec-fetch-site`; it sends no Origin with a page's own GETs, and the service's with its POSTs.
 *
 * @param page - undefined for a method that is not for pages
 * @throws WaybillError NOT_FOR_PUBLISHABLE_KEYS, ORIGIN_NOT_ALLOWED
 */
export function admitPage(origins: readonly string[], page: PageHeaders | undefined): void {
  if (page === undefined) throw waybillError('NOT_FOR_PUBLISHABLE_KEYS', {})
  const { origin, fetchSite } = page
  if (origin !== null && origins.includes(origin)) return
  if (fetchSite === 'same-origin' && isOwnOrigin(page)) return
  throw waybillError('ORIGIN_NOT_ALLOWED', { value: origin ?? '' })
}

function isOwnOrigin({ origin, host }: PageHeaders): boolean {
  return origin === null || (host !== null && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host)
}
