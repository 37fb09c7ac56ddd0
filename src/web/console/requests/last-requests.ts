/** The place of the list as it was last shown, so that its tab and page survive a look at one request. */
const STORED_AT = 'waybill.requests'

export function lastRequests(): string {
  return sessionStorage.getItem(STORED_AT) ?? '/requests'
}

export function rememberRequests(place: string): void {
  sessionStorage.setItem(STORED_AT, place)
}
