import type { Knex } from 'knex'
import type { VerifyDifference } from '../../detection/verify/verify-report.ts'
import type { Account } from '../../domain/account.ts'
import { checkAccount, type Difference } from '../../store/proof/check-account.ts'
import { repairAccount } from '../../store/proof/repair-account.ts'
import type { CommandContext } from '../shared/command.ts'
import { everyMs } from '../shared/report-migration.ts'

/** What was compared of the rows that are derived from payments. */
export interface DerivedReport {
  readonly accounts: readonly {
    readonly account: string
    readonly payments: number
    readonly changes: number
    readonly requests: number
  }[]
  readonly differences: readonly VerifyDifference[]
  /** Those that a repair left. */
  readonly left: readonly VerifyDifference[]
}

interface DerivedTerms extends Pick<CommandContext, 'stderr' | 'signal'> {
  readonly isRepaired: boolean
  /** Names of accounts of which blocks differ. */
  readonly differing: ReadonlySet<string>
}

/** How often progress is reported. */
const REPORT_INTERVAL_MS = 1_000

/** Compares, and repairs, what is derived from the payments of accounts: statistics, the log of changes, the standing of requests. */
export async function verifyDerived(
  knex: Knex,
  accounts: readonly Account[],
  { stderr, signal, isRepaired, differing }: DerivedTerms,
): Promise<DerivedReport> {
  // What requests come to follows from payments and refunds: while these are wrong, it is not worth a line of its own.
  const isReported = ({ name }: Account, { check }: Difference) =>
    isRepaired || !differing.has(name) || check === 'statistics' || check === 'changes'
  const isDue = everyMs(REPORT_INTERVAL_MS, () => performance.now())
  async function check({ id, name }: Account) {
    const found: Difference[] = []
    const counts = await checkAccount(knex, id, {
      signal,
      onProgress(what) {
        if (isDue()) stderr.write(`${name}: ${what}\n`)
      },
      onDifference: (difference) => void found.push(difference),
    })
    return { found, counts }
  }
  const report = {
    accounts: [] as DerivedReport['accounts'][number][],
    differences: [] as VerifyDifference[],
    left: [] as VerifyDifference[],
  }
  for (const account of accounts) {
    const { found, counts } = await check(account)
    const { payments, changes, requests } = counts
    report.accounts.push({ account: account.name, payments: Number(payments), changes: Number(changes), requests })
    report.differences.push(
      ...found.filter((each) => isReported(account, each)).map((each) => toDifference(account, each)),
    )
    if (found.length === 0 || !isRepaired) continue
    await repairAccount(knex, account.id, {
      signal,
      now: new Date(),
      isLogWrong: found.some((each) => each.check === 'changes'),
    })
    const again = await check(account)
    report.left.push(...again.found.map((each) => toDifference(account, each)))
  }
  return report
}

function toDifference({ name }: Account, { check, where, stored, expected }: Difference): VerifyDifference {
  const of = { account: name, stored, chain: expected }
  switch (check) {
    case 'statistics':
      return { kind: 'STATISTICS', field: where, ...of }
    case 'changes':
      return { kind: 'CHANGES', field: where, ...of }
    case 'payment':
      return { kind: 'PAYMENT', paymentId: where, field: 'settled', ...of }
    case 'request':
      return { kind: 'REQUEST', requestId: where, field: 'settled', ...of }
  }
}
