import type { VerifyDifference } from '../verify-report.ts'
import type { FieldTexts } from './expected-rows.ts'

/** The differences between a stored row and what the chain says, one for each field. @param isSkipped - fields that are not compared */
export function differencesOf(
  at: Omit<VerifyDifference, 'field' | 'stored' | 'chain'>,
  stored: FieldTexts,
  chain: FieldTexts,
  isSkipped: (field: string, chain: string | undefined) => boolean = () => false,
): VerifyDifference[] {
  return Object.keys(chain)
    .filter((field) => !isSkipped(field, chain[field]) && stored[field] !== chain[field])
    .map((field) => ({ ...at, field, stored: stored[field], chain: chain[field] }))
}
