/** The console's payments as people see them, in a real browser on a running demo, and a service that is no demo. */
import { describe } from 'vitest'
import { describeInBrowser } from './screens/in-browser.ts'
import { tryOwnService } from './screens/try-own-service.ts'
import { tryPayments } from './screens/try-payments.ts'
import { trySums } from './screens/try-sums.ts'
import { tryVisits } from './screens/try-visits.ts'

describeInBrowser('the payments of the console', 30, (screens) => {
  describe('the payments', () => {
    tryPayments(screens)
  })
  describe('sums and the chart', () => {
    trySums(screens)
  })
  describe('into a row and back', () => {
    tryVisits(screens)
  })
  describe('a service that is no demo', () => {
    tryOwnService(screens)
  })
})
