/**
 * How many payments the demo's merchant gets: more each month, more on working days, at noon and in the evening, and before Christmas. The
 * history and the live payer follow it alike, so that charts stay true while the demo runs; at night the live payer waits less. Times are UTC.
 */

const HOUR_SEC = 3_600
const DAY_SEC = 24 * HOUR_SEC
const MONTH_SEC = 30.4 * DAY_SEC

/** Payments on a usual day at the time when the demo was made. */
const PAYMENTS_A_DAY = 240
const GROWTH_A_MONTH = 1.08

/** From Sunday; 1 on average. */
const WEEKDAYS = [0.62, 1.08, 1.05, 1.08, 1.13, 1.27, 0.77]
/** From January; 1 on average. */
const MONTHS = [0.86, 0.9, 0.97, 0.98, 1.0, 0.97, 0.92, 0.88, 1.0, 1.05, 1.17, 1.3]
/** By the hour of the day. Scaled to 1 on average. */
const HOURS = [2, 1, 1, 1, 1, 2, 4, 7, 10, 12, 13, 12, 11, 12, 12, 11, 10, 10, 11, 12, 11, 8, 5, 3]
const HOURS_SUM = HOURS.reduce((sum, share) => sum + share, 0)

/**
 * @param timeSec - the time in question, in seconds since 1970
 * @param madeAtSec - when the demo was made: growth is counted from then, in both directions
 * @returns payments an hour
 */
export function paymentsAnHour(timeSec: number, madeAtSec: number): number {
  const time = new Date(timeSec * 1_000)
  const growth = GROWTH_A_MONTH ** ((timeSec - madeAtSec) / MONTH_SEC)
  const season = (WEEKDAYS[time.getUTCDay()] as number) * (MONTHS[time.getUTCMonth()] as number)
  return (PAYMENTS_A_DAY / HOURS_SUM) * (HOURS[time.getUTCHours()] as number) * growth * season
}

interface Draw {
  readonly madeAtSec: number
  /** The part of all payments that is meant, such as those of one chain. */
  readonly share: number
  /** Random numbers in [0, 1). */
  readonly next: () => number
}

/** Draws times of payments, in whole seconds, from the latest to the earliest. Endless: the caller stops. */
export function* timesBefore(toSec: number, draw: Draw): Generator<number> {
  for (let timeSec = toSec; ; ) {
    timeSec -= Math.max(1, waitSec(timeSec, draw))
    yield Math.floor(timeSec)
  }
}

/** Draws the seconds between a time and the payment before or after it. */
export function waitSec(timeSec: number, { madeAtSec, share, next }: Draw): number {
  return (-Math.log(1 - next()) * HOUR_SEC) / (paymentsAnHour(timeSec, madeAtSec) * share)
}
