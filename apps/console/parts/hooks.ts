import { useSyncExternalStore } from 'react'
import { formatOnce, viewerZone } from '../../shared/format-time.ts'
import { useFromLocation } from './location.ts'

/** The zone in which days and times are shown: that of the link, so that a shared link names the same days to everybody; else the viewer's. It
 * is one that the service takes: UTC, or a name with a `/`. */
export function useZone(): string {
  return useFromLocation(({ query }) => zoneOf(query))
}

export function zoneOf(query: URLSearchParams): string {
  const zone = query.get('zone')
  return [zone, viewerZone()].find((name) => name !== null && isZone(name)) ?? 'UTC'
}

function isZone(zone: string): boolean {
  if (zone !== 'UTC' && !zone.includes('/')) return false
  try {
    // Each time on a page asks.
    formatOnce(Intl.DateTimeFormat, undefined, { timeZone: zone })
    return true
  } catch {
    return false
  }
}

/** Whether the page can be seen: what is kept current rests while it cannot. */
export function useVisible(): boolean {
  return useSyncExternalStore(subscribe, () => document.visibilityState === 'visible')
}

function subscribe(onChange: () => void): () => void {
  document.addEventListener('visibilitychange', onChange)
  return () => document.removeEventListener('visibilitychange', onChange)
}
