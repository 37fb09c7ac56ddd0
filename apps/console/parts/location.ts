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
  clearTimeout(keeping)
  show(true)
  restoreScroll(entry().scroll)
})

/** What an entry of the browser's history keeps. */
interface Entry {
  /** How far its page was scrolled. */
  readonly scroll?: number
  /** The place from which a link led here. */
  readonly from?: string
}

const entry = () => (history.state ?? {}) as Entry
let isReturned = false

/** Whether somebody came here by Back or Forward, and so expects what was here before. */
export const isReturn = (): boolean => isReturned

/** Goes back to a place if a link there led here, so that it is as it was left. @returns whether it did */
export function goBackTo(place: string): boolean {
  const isThere = entry().from === place
  if (isThere) history.back()
  return isThere
}

function show(isByHistory: boolean): void {
  isReturned = isByHistory
  current = read()
  for (const listener of listeners) listener()
}

let restoring: AbortController | undefined

/** Scrolls to where an entry was left, once its page is as long again; not if the person scrolls first. */
function restoreScroll(scroll = 0): void {
  restoring?.abort()
  const ended = new AbortController()
  restoring = ended
  const { signal } = ended
  const observer = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight - innerHeight < scroll) return
    ended.abort()
    scrollTo(0, scroll)
  })
  signal.addEventListener('abort', () => observer.disconnect())
  for (const event of ['wheel', 'touchmove', 'keydown', 'mousedown'])
    addEventListener(event, () => ended.abort(), { passive: true, signal })
  observer.observe(document.body)
}

function keepScroll(): void {
  clearTimeout(keeping)
  if (restoring?.signal.aborted ?? true) history.replaceState({ ...entry(), scroll: scrollY }, '')
}

/** Browsers take few changes of the history at once. */
const KEEP_MS = 150
let keeping: ReturnType<typeof setTimeout> | undefined

if (globalThis.history !== undefined) {
  history.scrollRestoration = 'manual'
  const schedule = () => {
    clearTimeout(keeping)
    keeping = setTimeout(keepScroll, KEEP_MS)
  }
  addEventListener('scroll', schedule, { passive: true })
  addEventListener('pagehide', keepScroll)
  // After a reload, or Back from another site.
  if (entry().scroll !== undefined) addEventListener('DOMContentLoaded', () => restoreScroll(entry().scroll))
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

/**
 * Shows another place of the console.
 *
 * @param to - below the console, with its query: `/payments?status=FAILED`
 * @param options.replace - leaves no entry in the history, for each letter that is typed
 */
export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const url = ROOT + to
  const before = current.path
  keepScroll()
  if (replace) history.replaceState(history.state, '', url)
  else history.pushState({ from: before + searchOf(current.query) } satisfies Entry, '', url)
  show(false)
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
