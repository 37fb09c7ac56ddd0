/** The place of a list as it was last shown, so that its filters and page survive a look at another page. */
export type List = 'payments' | 'requests'

export function lastPlace(list: List): string {
  return sessionStorage.getItem(`waybill.${list}`) ?? `/${list}`
}

export function rememberPlace(list: List, place: string): void {
  sessionStorage.setItem(`waybill.${list}`, place)
}
