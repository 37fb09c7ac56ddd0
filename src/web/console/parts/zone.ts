import { viewerZone } from '../../look/format-time.ts'
import { useLocation } from './location.ts'

/** The zone in which days and times are shown: that of the link, so that a shared link names the same days to everybody; else the viewer's. */
export function useZone(): string {
  const { query } = useLocation()
  return zoneOf(query)
}

export function zoneOf(query: URLSearchParams): string {
  const zone = query.get('zone')
  return zone !== null && isZone(zone) ? zone : viewerZone()
}

function isZone(zone: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}
