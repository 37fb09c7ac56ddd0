/**
 * The result of one check of a node, or of something on its chain:
 *
 * - `ok`: it is as the chains file says
 * - `note`: it is allowed, but the operator should know it
 * - `unknown`: this node cannot answer it
 * - `wrong`: the file, or the node, has to be changed
 */
export type Verdict = 'ok' | 'note' | 'unknown' | 'wrong'

export interface CheckedFact {
  /** What was checked: `chain id`, `code`, `fromBlock`, … */
  readonly check: string
  /** Of what: a contract's kind and version, a token's symbol; `-` for the node itself. */
  readonly subject: string
  readonly verdict: Verdict
  readonly detail: string
}

/** Makes the result of a check. */
export type Judge = (verdict: Verdict, detail: string) => CheckedFact

export function judgeOf(check: string, subject: string): Judge {
  return (verdict, detail) => ({ check, subject, verdict, detail })
}
