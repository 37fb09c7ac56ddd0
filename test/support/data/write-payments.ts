import {
  changePayments as changeRows,
  type LockedAccount,
  type PaymentStatement,
  readPayments,
} from '../../../src/store/payment-changes.ts'

/** Writes by plain statements, counted and logged as all writers do. Whatever payments the account has may be changed, so all are read first. */
export async function changePayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  const { trx, accountId } = account
  return changeRows(account, await readPayments(account, trx('payments').where({ account_id: accountId })), statement)
}

/** Runs an INSERT of new rows into the locked account. */
export function insertPayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return changeRows(account, new Map(), statement)
}
