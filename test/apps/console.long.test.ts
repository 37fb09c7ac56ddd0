/** The console as people see it, in a real browser on a running demo. */
import { describe } from 'vitest'
import { describeInBrowser } from './screens/in-browser.ts'
import { tryOwnService } from './screens/try-own-service.ts'
import { tryPayments } from './screens/try-payments.ts'
import { tryRequests } from './screens/try-requests.ts'
import { trySums } from './screens/try-sums.ts'
import { tryTruth } from './screens/try-truth.ts'
import { tryVisits } from './screens/try-visits.ts'
import { tryKeys, tryWebhooks } from './screens/try-webhooks-and-keys.ts'

describeInBrowser('the console', 30, (screens) => {
  describe('the payments', () => {
    tryPayments(screens)
  })
  describe('sums and the chart', () => {
    trySums(screens)
  })
  describe('into a row and back', () => {
    tryVisits(screens)
  })
  describe('away, failed and slow', () => {
    tryTruth(screens)
  })
  describe('a payment and the requests', () => {
    tryRequests(screens)
  })
  describe('webhooks', () => {
    tryWebhooks(screens)
  })
  describe('keys', () => {
    tryKeys(screens)
  })
  describe('a service that is no demo', () => {
    tryOwnService(screens)
  })
})
