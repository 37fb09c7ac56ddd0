/** Each wallet with each state of a request and each thing that may happen meanwhile: see screens/payer-table.ts. */
import { describeInBrowser } from './screens/in-browser.ts'
import { everyCombination } from './screens/payer-table.ts'
import { tryPayerTable } from './screens/try-payer-table.ts'

describeInBrowser('a payer with each wallet', 2, (screens) => {
  tryPayerTable(screens, everyCombination(), { findsBarriers: false })
})
