/**
 * Each wallet with each state of a request, and one of the things that may happen meanwhile, 120 combinations: see screens/payer-table.ts.
 * `PAYER_TABLE=all npm run test:long -- test/apps/payer-table` tries each wallet with all that may happen, 371.
 */
import { describeInBrowser } from './screens/in-browser.ts'
import { everyCombination, someCombinations } from './screens/payer-table.ts'
import { tryPayerTable } from './screens/try-payer-table.ts'

const combinations = process.env['PAYER_TABLE'] === 'all' ? everyCombination() : someCombinations()

describeInBrowser('a payer with each wallet', 2, (screens) => {
  tryPayerTable(screens, combinations)
})
