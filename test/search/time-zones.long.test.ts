import { expect, test } from 'vitest'
import { daysOfZone, timeZoneNames } from '../../src/domain/time-zone.ts'

const DAY_MS = 86_400_000

// Half a minute: each day of five years in each of four hundred zones is formatted twice.
test('each day of all zones over five years is the one that the runtime shows', () => {
  const wrong = timeZoneNames().flatMap((zone) => {
    const found: string[] = []
    const shown = new Intl.DateTimeFormat('en-CA', {
      timeZone: zone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
    })
    const { startOf } = daysOfZone(zone)
    for (let date = Date.UTC(2022, 0, 1); date < Date.UTC(2027, 0, 1); date += DAY_MS) {
      const at = startOf(date) ?? Number.NaN
      const [day, before] = [at, at - 1].map((ms) => Date.parse(`${shown.format(ms)}T00:00:00Z`))
      if (day !== date || before !== date - DAY_MS) found.push(`${zone} ${new Date(date).toISOString()}`)
    }
    return found
  })
  expect(wrong).toEqual([])
})
