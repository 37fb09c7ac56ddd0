/** For how long the service lets a quote be taken at most. */
const LONGEST_MS = 30_000
/** For how long a quote is taken where no clock says anything sensible. */
const ASSUMED_MS = 25_000
/** `Date` has whole seconds. */
const DATE_ROUNDING_MS = 1_000

export interface QuoteTimes {
  readonly expiresAtMs: number
  /** The header `Date` of the answer, where the page may read it. */
  readonly date: string | null
  /** The time of this machine when the answer came. */
  readonly nowMs: number
}

/**
 * For how long a quote may be taken from its arrival on. The service's own clock counts where the answer tells it, since that of the payer's
 * machine may be wrong; a lifetime that no quote has means that a clock is wrong.
 */
export function lifetimeOf({ expiresAtMs, date, nowMs }: QuoteTimes): number {
  const sentAtMs = Date.parse(date ?? '')
  const leftMs = expiresAtMs - (Number.isNaN(sentAtMs) ? nowMs : sentAtMs + DATE_ROUNDING_MS)
  return leftMs > 0 && leftMs <= LONGEST_MS ? leftMs : ASSUMED_MS
}
