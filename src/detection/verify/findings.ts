import type { Outcome } from './compare-section.ts'
import type { Section } from './read-sections.ts'
import { addAmounts, NO_TOTALS, type Totals } from './totals.ts'
import { addUnproven, NOTHING_UNPROVEN, type UnprovenList } from './unproven-list.ts'
import type { VerifyDifference, VerifyReport } from './verify-report.ts'

/** The findings of the sections so far. */
export interface Findings {
  /** By request, so that a later section which compares the request again replaces them; those of no request by their own text. */
  readonly differences: ReadonlyMap<string, readonly VerifyDifference[]>
  readonly unproven: UnprovenList
  readonly requests: ReadonlySet<string>
  readonly totals: Totals
  readonly counts: Pick<VerifyReport['counts'], 'blocks' | 'receiptsRead' | 'unmatched'>
  /** The last block that was compared; absent: none. */
  readonly comparedTo?: number | undefined
}

export const NO_FINDINGS: Findings = {
  differences: new Map(),
  unproven: NOTHING_UNPROVEN,
  requests: new Set(),
  totals: NO_TOTALS,
  counts: { blocks: 0, receiptsRead: 0, unmatched: 0 },
}

/** Adds the findings of a section. @param isRepaired - whether differences of the sections before were repaired, so that this one cannot see them */
export function withSection(found: Findings, section: Section, outcome: Outcome, isRepaired: boolean): Findings {
  const { touched } = outcome
  const differences = new Map(found.differences)
  const requests = new Set(found.requests)
  for (const [account, ids] of touched) {
    for (const id of ids) {
      if (!isRepaired) differences.delete(requestKey(account.name, id))
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
    requests,
    counts: {
      blocks: found.counts.blocks + to - from + 1,
      receiptsRead: found.counts.receiptsRead + section.receiptsRead,
      unmatched: found.counts.unmatched + outcome.unmatched,
    },
    totals: addAmounts(found.totals, outcome.counted),
    comparedTo: to,
  }
}

/** Each once: the same row is seen with each request that it has a part in. */
export function differencesIn({ differences }: Findings): VerifyDifference[] {
  return [...new Map([...differences.values()].flat().map((each) => [JSON.stringify(each), each])).values()]
}

function keyOf(difference: VerifyDifference): string {
  const { account = '', requestId } = difference
  return requestId === undefined ? JSON.stringify(difference) : requestKey(account, requestId)
}

function requestKey(account: string, requestId: string): string {
  return `${account} ${requestId}`
}
