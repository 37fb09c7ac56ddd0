const DAY_MS = 86_400_000

/** Days to which the demo adds no payment while a test compares two lists of them. */
export const WRITTEN = {
  from: isoDay(new Date(Date.now() - 8 * DAY_MS)),
  to: isoDay(new Date(Date.now() - 2 * DAY_MS)),
}

export const writtenView = `/console/payments?from=${WRITTEN.from}&to=${WRITTEN.to}&zone=UTC`

export function isoDay(at: Date): string {
  return at.toISOString().slice(0, 10)
}
