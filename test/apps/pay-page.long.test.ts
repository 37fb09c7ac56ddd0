/** The checkout page as people see it, in a real browser on a running demo. */
import { describeInBrowser } from './screens/in-browser.ts'
import { tryBrowserWallet } from './screens/try-browser-wallet.ts'
import { tryCheckout } from './screens/try-checkout.ts'
import { tryPay } from './screens/try-pay.ts'
import { tryPayTroubles } from './screens/try-pay-troubles.ts'
import { tryStopwatch } from './screens/try-stopwatch.ts'
import { tryWallets } from './screens/try-wallets.ts'

describeInBrowser('the checkout page', 2, (screens) => {
  tryPay(screens, () => {
    tryCheckout(screens)
    tryPayTroubles(screens)
    tryBrowserWallet(screens)
    tryWallets(screens)
    tryStopwatch(screens)
  })
})
