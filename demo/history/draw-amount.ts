import type { Random } from './random.ts'

const MIN_CENTS = 100
const MAX_CENTS = 5_000_000
/** Natural logarithm of the median amount in cents (about 120 US dollars), and its standard deviation. */
const LOG_MEDIAN = 9.4
const LOG_DEVIATION = 1.3

/** The amount of a payment: many small ones, a few large ones. */
export function drawCents(random: Random): number {
  const drawn = Math.round(Math.exp(LOG_MEDIAN + LOG_DEVIATION * random.normal()))
  return Math.min(MAX_CENTS, Math.max(MIN_CENTS, drawn))
}
