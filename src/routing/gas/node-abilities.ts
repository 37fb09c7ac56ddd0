import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { isUnknownMethod } from '../../nodes/rpc-error.ts'
import { takesOverrides } from './estimates.ts'

/** What a node can do; undefined while it is not known. */
interface Abilities {
  simulates: boolean | undefined
  /** Takes state overrides with estimates. */
  overrides: boolean | undefined
  /** Whether the storage places of the chain's tokens were searched. */
  isSearched: boolean
}

/** Remembers from its answers what a node can do. */
export type NodeAbilities = ReturnType<typeof createNodeAbilities>

/** After this time the node is asked again what it can do: nodes are replaced and upgraded. */
const FORGOTTEN_AFTER_MS = 60 * 60_000

const SUSPECTED_FOR_MS = 60_000

/** @param clock - milliseconds since 1970 */
export function createNodeAbilities(clock: () => number) {
  let abilities = nothingKnown()
  let forgetAtMs = clock() + FORGOTTEN_AFTER_MS

  function known(): Abilities {
    if (clock() <= forgetAtMs) return abilities
    abilities = nothingKnown()
    forgetAtMs = clock() + FORGOTTEN_AFTER_MS
    return abilities
  }

  function suspectUnlessKnown(): void {
    if (known().simulates !== undefined) return
    abilities.simulates = false
    forgetAtMs = clock() + SUSPECTED_FOR_MS
  }

  return {
    /** What is known now; writing to it is remembered, until everything is forgotten. */
    known,
    noteSimulation(answer: RpcAnswer | undefined): void {
      if (answer === undefined) return
      if (answer.ok) known().simulates = true
      else if (answer.error.refusal === undefined) suspectUnlessKnown()
      else if (isUnknownMethod(answer.error.refusal)) known().simulates = false
    },
    noteOverrides(answer: RpcAnswer | undefined): void {
      known().overrides ??= takesOverrides(answer)
    },
    /**
     * The node failed at a question that held a simulation. Unless its ability is known, it counts as a node that does not simulate, for a minute.
     */
    suspect: suspectUnlessKnown,
  }
}

function nothingKnown(): Abilities {
  return { simulates: undefined, overrides: undefined, isSearched: false }
}
