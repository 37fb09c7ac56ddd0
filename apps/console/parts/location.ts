/** The address of the page as state: what a person sees is in the link. */
import { useSyncExternalStore } from 'react'

/** Where the console is served. */
export const ROOT = '/console'

export interface Location {
  /** Below the console: `/payments/1234`. */
  readonly path: string
  readonly query: URLSearchParams
}

const listeners = new Set<() => void>()
let current = read()

globalThis.addEventListener?.('popstate', () => show(true))

/** What an entry of the browser's history keeps. */
interface Entry {
  /** The place from which a link led here. */
  readonly from: string
}

let isReturned = false

/** Whether somebody came here by Back or Forward, and so expects what was here before. */
export const isReturn = (): boolean => isReturned

/** Goes back to a place if a link there led here, so that it is as it was left. @returns whether it did */
export function goBackTo(place: string): boolean {
  const isThere = (history.state as Entry | null)?.from === place
  if (isThere) history.back()
  return isThere
}

function show(isByHistory: boolean): void {
  isReturned = isByHistory
  current = read()
  for (const listener of listeners) listener()
}

function read(): Location {
  const { pathname, search } = globalThis.location ?? { pathname: ROOT, search: '' }
  // Payments are the first page, so that its first filter leaves it as it is.
  const path = pathname.slice(ROOT.length).replace(/^\/?$/, '/payments')
  return { path, query: new URLSearchParams(search) }
}

export function useLocation(): Location {
  return useSyncExternalStore(subscribe, () => current)
}

/** What is read of the address: a part that uses it is shown again only when that changes. */
export function useFromLocation(select: (location: Location) => string): string {
  return useSyncExternalStore(subscribe, () => select(current))
}

/** The query as it is now, for what is done when somebody clicks. */
export const currentQuery = (): URLSearchParams => current.query

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Shows another place of the console. @param to - below the console, with its query: `/payments?status=FAILED` */
export function navigate(to: string): void {
  const before = current.path
  history.pushState({ from: before + searchOf(current.query) } satisfies Entry, '', ROOT + to)
  show(false)
  if (current.path !== before) window.scrollTo(0, 0)
}

/** A query with other values of some parameters; an empty one takes its parameter away. */
export function withParameters(query: URLSearchParams, parameters: Readonly<Record<string, string>>): URLSearchParams {
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(parameters)) {
    if (value === '') next.delete(name)
    else next.set(name, value)
  }
  return next
}

/** A place of the console. @param before - a query whose other parameters stay */
export const placeOf = (path: string, parameters: Readonly<Record<string, string>>, before = new URLSearchParams()) =>
  path + searchOf(withParameters(before, parameters))

/** @returns `?a=b`, or nothing for an empty query */
export function searchOf(query: URLSearchParams): string {
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** The place of a list as it was last shown, so that its filters and page survive a look at another page. */
type List = 'payments' | 'requests'

export function lastPlace(list: List): string {
  return sessionStorage.getItem(`waybill.${list}`) ?? `/${list}`
}

export function rememberPlace(list: List, place: string): void {
  sessionStorage.setItem(`waybill.${list}`, place)
}
