/** The place of the payments as they were last shown, so that filters survive a look at another page. */
const STORED_AT = 'waybill.payments'

export function lastPayments(): string {
  return sessionStorage.getItem(STORED_AT) ?? '/payments'
}

export function rememberPayments(place: string): void {
  sessionStorage.setItem(STORED_AT, place)
}
