/** The console as people see it, in a real browser on a running demo. */
import { describe } from 'vitest'
import { describeInBrowser } from './screens/in-browser.ts'
import { tryRequests } from './screens/try-requests.ts'
import { tryTruth } from './screens/try-truth.ts'
import { tryKeys, tryWebhooks } from './screens/try-webhooks-and-keys.ts'
import { tryWhy } from './screens/try-why.ts'

describeInBrowser('the console', 30, (screens) => {
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
  describe('why a wallet cannot pay, and the chains', () => {
    tryWhy(screens)
  })
})
