/** The page to pay on as people see it, in a real browser on a running demo. */
import { describeInBrowser } from '../screens/in-browser.ts'
import { tryPay } from '../screens/try-pay.ts'

describeInBrowser('the page to pay on', tryPay)
