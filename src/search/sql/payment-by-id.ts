import { bind, raw, type Statement, sql } from '../../postgres/statement.ts'

/** One payment of an account. */
export function paymentByIdStatement(accountId: number, id: string, columns: readonly string[]): Statement {
  return sql`select ${raw(columns.join(', '))} from payments where account_id = ${bind(accountId)} and id = ${bind(id)}`
}
