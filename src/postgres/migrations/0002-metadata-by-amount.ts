import type { IndexMigration } from './migration.ts'

/** Pages of a pair's payments in one currency, by the amount: without it all entries of the pair are read. */
export const metadataByAmount: IndexMigration = {
  name: '0002-metadata-by-amount',
  indexes: [
    {
      build: 'payment_metadata_amount',
      table: 'payment_metadata',
      definition: '(account_id, pair, currency_symbol, amount, id) include (timestamp)',
    },
  ],
}
