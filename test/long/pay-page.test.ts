/** The page to pay on as people see it, in a real browser on a running demo. */
import { describeInBrowser } from '../screens/in-browser.ts'
import { tryBrowserWallet } from '../screens/try-browser-wallet.ts'
import { tryPay } from '../screens/try-pay.ts'
import { tryPayTroubles } from '../screens/try-pay-troubles.ts'

describeInBrowser('the page to pay on', (screens) => {
  tryPay(screens, () => {
    tryPayTroubles(screens)
    tryBrowserWallet(screens)
  })
})
