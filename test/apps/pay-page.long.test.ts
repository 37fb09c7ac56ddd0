/**
 * The checkout page as people see it, in a real browser on a running demo, and on the same demo what the console says when somebody cannot pay.
 * The rest of the console is tried beside it, in console.test.ts, which takes as long.
 */
import { describe } from 'vitest'
import { describeInBrowser } from './screens/in-browser.ts'
import { tryBrowserWallet } from './screens/try-browser-wallet.ts'
import { tryCheckout } from './screens/try-checkout.ts'
import { tryPay } from './screens/try-pay.ts'
import { tryPayTroubles } from './screens/try-pay-troubles.ts'
import { tryStopwatch } from './screens/try-stopwatch.ts'
import { tryWallets } from './screens/try-wallets.ts'
import { tryWhy } from './screens/try-why.ts'

describeInBrowser('the checkout page', 2, (screens) => {
  tryPay(screens, () => {
    tryCheckout(screens)
    tryPayTroubles(screens)
    tryBrowserWallet(screens)
    tryWallets(screens)
    tryStopwatch(screens)
    describe('in the console why a wallet cannot pay, and the chains', () => {
      tryWhy(screens)
    })
  })
})
