/**
 * Each wallet with each state of a request and each thing that may happen meanwhile: see screens/payer-table.ts.
 * `PAYER_TABLE=all npm run test:long -- test/apps/payer-table` runs them, `PAYER_TABLE=some npm run try:screens` some: not all pass yet.
 */
import { describe } from 'vitest'
import { describeInBrowser } from './screens/in-browser.ts'
import { everyCombination } from './screens/payer-table.ts'
import { tryPayerTable } from './screens/try-payer-table.ts'

describe.skipIf(process.env['PAYER_TABLE'] !== 'all')('all combinations (PAYER_TABLE=all)', () => {
  describeInBrowser('a payer with each wallet', 2, (screens) => {
    tryPayerTable(screens, everyCombination(), { findsBarriers: false })
  })
})
