import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { LineTarget } from './import-lines.ts'
import { parsePayment } from './parse-payment.ts'
import { parsedLines } from './parsed-lines.ts'
import { createPaymentImportRepository } from './payment-import-repository.ts'

/** Lines of payments, as search returns them, that go to an account. */
export function importPayments(knex: Knex, account: Account, now = () => new Date()): LineTarget {
  const repository = createPaymentImportRepository(knex, now)
  return parsedLines({ parse: parsePayment, write: (batch) => repository.write(account, batch) })
}
