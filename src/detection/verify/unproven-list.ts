import { type BlockRun, describeRun, withBlocks } from '../../domain/chain.ts'
import type { Unproven, UnprovenBlock } from './verify-report.ts'

/**
 * What could not be proved so far. Consecutive blocks with the same reason are one entry: of a chain with one node and unknown hashes no
 * block can be proved at all.
 */
export interface UnprovenList {
  /** By reason. */
  readonly blocks: ReadonlyMap<string, UnprovenRuns>
  /** Events, each once. */
  readonly events: ReadonlyMap<string, Unproven>
}

interface UnprovenRuns extends Pick<Unproven, 'why' | 'isInfo'> {
  readonly runs: readonly BlockRun[]
}

export const NOTHING_UNPROVEN: UnprovenList = { blocks: new Map(), events: new Map() }

/** @param blocks - above those of the list, lowest first */
export function addUnproven(
  list: UnprovenList,
  { blocks, events }: { readonly blocks: readonly UnprovenBlock[]; readonly events: readonly Unproven[] },
): UnprovenList {
  const runsByReason = new Map(list.blocks)
  const added = Map.groupBy(blocks, ({ why, isInfo }) => `${isInfo === true} ${why}`)
  for (const [key, some] of added) {
    const [{ why, isInfo }] = some as [UnprovenBlock]
    // Once each: two URLs of one host give the same reason twice.
    const numbers = new Set(some.map(({ block }) => block))
    const runs = withBlocks(runsByReason.get(key)?.runs ?? [], [...numbers])
    runsByReason.set(key, { why, isInfo, runs })
  }
  return {
    blocks: runsByReason,
    events: new Map([...list.events, ...events.map((each) => [JSON.stringify(each), each] as const)]),
  }
}

/** Blocks first, lowest first. */
export function listUnproven({ blocks, events }: UnprovenList): Unproven[] {
  const runs = [...blocks.values()].flatMap(({ runs: some, ...reason }) => some.map((run) => ({ run, ...reason })))
  const sorted = runs.toSorted((a, b) => a.run.from - b.run.from)
  return [...sorted.map(({ run, ...reason }) => ({ where: describeRun(run), ...reason })), ...events.values()]
}
