import type { Account } from '../../domain/account.ts'
import type { Section } from '../read-sections.ts'
import type { EventFact } from '../rules/chain-facts.ts'
import type { VerifyDifference, VerifyReport } from '../verify-report.ts'
import type { Outcome } from './compare-stored.ts'
import { keyOfFact, placeKey } from './compare-terms.ts'
import { addTotals, NO_TOTALS, type Totals } from './totals.ts'
import { addUnproven, NOTHING_UNPROVEN, type UnprovenList } from './unproven-list.ts'

/** The findings of the sections so far. */
export interface Findings {
  /** By request, so that a later section which compares the request again replaces them; those of no request by their own text. */
  readonly differences: ReadonlyMap<string, readonly VerifyDifference[]>
  /** Of the statistics of accounts. */
  readonly statistics: readonly VerifyDifference[]
  readonly unproven: UnprovenList
  /** Events that differ from what is stored. */
  readonly differed: readonly EventFact[]
  /** Accounts of which something was compared, by id. */
  readonly accounts: ReadonlyMap<number, Account>
  readonly requests: ReadonlySet<string>
  readonly totals: Totals
  readonly counts: Pick<VerifyReport['counts'], 'blocks' | 'receiptsRead' | 'unmatched'>
  /** The last block that was compared; absent: none. */
  readonly comparedTo?: number | undefined
}

export const NO_FINDINGS: Findings = {
  differences: new Map(),
  statistics: [],
  unproven: NOTHING_UNPROVEN,
  differed: [],
  accounts: new Map(),
  requests: new Set(),
  totals: NO_TOTALS,
  counts: { blocks: 0, receiptsRead: 0, unmatched: 0 },
}

/** Adds the findings of a section. */
export function withSection(found: Findings, section: Section, outcome: Outcome): Findings {
  const { touched } = outcome
  const differences = new Map(found.differences)
  const requests = new Set(found.requests)
  const accounts = new Map(found.accounts)
  for (const [account, ids] of touched) {
    accounts.set(account.id, account)
    for (const id of ids) {
      differences.delete(requestKey(account.name, id))
      requests.add(requestKey(account.name, id))
    }
  }
  for (const difference of outcome.differences) {
    const key = keyOf(difference)
    differences.set(key, [...(differences.get(key) ?? []), difference])
  }
  const { from, to } = section.span
  return {
    ...found,
    differences,
    unproven: addUnproven(found.unproven, { blocks: section.unproven, events: outcome.unproven }),
    differed: [...found.differed, ...differedEvents(section, outcome)],
    accounts,
    requests,
    counts: {
      blocks: found.counts.blocks + to - from + 1,
      receiptsRead: found.counts.receiptsRead + section.receiptsRead,
      unmatched: found.counts.unmatched + outcome.unmatched,
    },
    totals: addTotals(found.totals, outcome.totals),
    comparedTo: to,
  }
}

export function differencesIn({ differences, statistics }: Findings): VerifyDifference[] {
  return [...differences.values(), statistics].flat()
}

function differedEvents({ facts }: Section, { differences }: Outcome): EventFact[] {
  const keys = new Set(differences.map(({ txHash = '', eventIndex = -1 }) => placeKey(txHash, eventIndex)))
  return facts.filter((fact) => keys.has(keyOfFact(fact)))
}

function keyOf(difference: VerifyDifference): string {
  const { account = '', requestId } = difference
  return requestId === undefined ? JSON.stringify(difference) : requestKey(account, requestId)
}

function requestKey(account: string, requestId: string): string {
  return `${account} ${requestId}`
}
