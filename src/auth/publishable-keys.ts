import { waybillError } from '../errors/waybill-error.ts'

/** What a browser tells of the page behind a call. Other programs can send the same: it proves nothing of them. */
export interface PageHeaders {
  /** Header `origin`. */
  readonly origin: string | null
  /** Header `sec-fetch-site`. */
  readonly fetchSite: string | null
}

/** Calls a minute with publishable keys from one client address. */
export const PUBLISHABLE_CALLS_PER_MINUTE = 60

/**
 * Admits a call with a publishable key: of a method for pages, from a page of one of its origins. A browser sends no Origin with a page's own GETs.
 *
 * @param page - undefined for a method that is not for pages
 * @throws WaybillError NOT_FOR_PUBLISHABLE_KEYS, ORIGIN_NOT_ALLOWED
 */
export function admitPage(origins: readonly string[], page: PageHeaders | undefined): void {
  if (page === undefined) throw waybillError('NOT_FOR_PUBLISHABLE_KEYS', {})
  const { origin, fetchSite } = page
  if (origin === null ? fetchSite === 'same-origin' : origins.includes(origin)) return
  throw waybillError('ORIGIN_NOT_ALLOWED', { value: origin ?? '' })
}
