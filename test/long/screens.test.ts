/** What people see, in a real browser on a running demo. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, openScreens, type Screens } from '../screens/open-screens.ts'
import { tryPay } from '../screens/try-pay.ts'
import { tryPayments } from '../screens/try-payments.ts'
import { tryRequests } from '../screens/try-requests.ts'
import { tryWhy } from '../screens/try-why.ts'

const browser = findBrowser()
if (browser === undefined) console.log('not tried: there is no Chromium here; install one or name it in CHROMIUM')

describe.skipIf(browser === undefined)('in a browser', () => {
  let screens: Screens
  beforeAll(async () => {
    screens = await openScreens(browser ?? '')
  })
  afterAll(() => screens?.stop())
  const read = () => screens

  describe('the payments', () => {
    tryPayments(read)
  })
  describe('a payment and the requests', () => {
    tryRequests(read)
  })
  describe('the page to pay on', () => {
    tryPay(read)
  })
  describe('why a wallet cannot pay, and the chains', () => {
    tryWhy(read)
  })

  it('logs no error, and nothing that the policy forbids', () => {
    expect(screens.faults).toEqual([])
  })
})
