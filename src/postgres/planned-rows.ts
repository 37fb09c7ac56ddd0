/** A node of a plan in EXPLAIN's JSON. */
export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Plan Rows': number
  readonly 'Total Cost': number
  readonly Plans?: readonly PlanNode[]
  /** Of Citus: how the workers run the statement. */
  readonly 'Distributed Query'?: { readonly Job?: { readonly Tasks?: readonly { readonly 'Remote Plan'?: unknown }[] } }
}

/** The one column of EXPLAIN (FORMAT JSON). */
export interface ExplainRow {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }]
}

/**
 * The plan of a statement. Citus answers with a node of its own, whose estimates are constants; the plan of the one worker that has the account is
 * within it.
 */
export function planOf(row: ExplainRow | undefined): PlanNode | undefined {
  const plan = row?.['QUERY PLAN'][0].Plan
  const [task] = plan?.['Distributed Query']?.Job?.Tasks ?? []
  return task === undefined ? plan : (findPlan(task['Remote Plan']) ?? plan)
}

/** The worker's answer stands in lists within lists. */
function findPlan(answer: unknown): PlanNode | undefined {
  if (Array.isArray(answer)) return answer.map(findPlan).find((plan) => plan !== undefined)
  return answer !== null && typeof answer === 'object' && 'Plan' in answer ? (answer.Plan as PlanNode) : undefined
}
