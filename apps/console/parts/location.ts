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

globalThis.addEventListener?.('popstate', () => {
  current = read()
  for (const listener of listeners) listener()
})

function read(): Location {
  const { pathname, search } = globalThis.location ?? { pathname: ROOT, search: '' }
  return { path: pathname.slice(ROOT.length) || '/', query: new URLSearchParams(search) }
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

/**
 * Shows another place of the console.
 *
 * @param to - below the console, with its query: `/payments?status=FAILED`
 * @param options.replace - leaves no entry in the history, for each letter that is typed
 */
export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const url = ROOT + to
  if (replace) history.replaceState(history.state, '', url)
  else history.pushState(null, '', url)
  const before = current.path
  current = read()
  for (const listener of listeners) listener()
  if (current.path !== before) window.scrollTo(0, 0)
}

/** The query with one parameter more, or with another value of it; an empty value takes it away. */
export function withParameter(query: URLSearchParams, name: string, value: string): URLSearchParams {
  const next = new URLSearchParams(query)
  if (value === '') next.delete(name)
  else next.set(name, value)
  return next
}

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
