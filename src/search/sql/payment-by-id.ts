import { raw, type Statement } from '../../postgres/statement.ts'

/** One payment of an account. */
export function paymentByIdStatement(accountId: number, id: string, columns: readonly string[]): Statement {
  return raw(`select ${columns.join(', ')} from payments where account_id = ? and id = ?`, [accountId, id])
}
