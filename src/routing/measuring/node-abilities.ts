import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { takesOverrides } from './estimates.ts'
import { isUnknownMethod } from './simulation.ts'

/** What a node can do; undefined while it is not known. */
export interface Abilities {
  simulates: boolean | undefined
  /** Takes changes of state with estimates. */
  overrides: boolean | undefined
  /** Whether the chain's tokens were searched for where they keep what. */
  isSearched: boolean
}

/** Remembers what a node can do, by its answers. */
export interface NodeAbilities {
  /** As known now. What is written into it is remembered, until all is forgotten. */
  known(): Abilities
  noteSimulation(answer: RpcAnswer | undefined): void
  noteOverrides(answer: RpcAnswer | undefined): void
  /**
   * Treats the node as one that does not simulate, for a minute, unless it is known what it does: it failed where a simulation was part of the
   * question.
   */
  suspect(): void
}

/** After so long the node is asked again what it can do: nodes are replaced and brought up to date. */
const FORGOTTEN_AFTER_MS = 60 * 60_000

const SUSPECTED_FOR_MS = 60_000

/** @param clock - milliseconds since 1970 */
export function createNodeAbilities(clock: () => number): NodeAbilities {
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
    known,
    noteSimulation(answer) {
      if (answer === undefined) return
      if ('result' in answer) known().simulates = true
      else if (answer.failure.refusal === undefined) suspectUnlessKnown()
      else if (isUnknownMethod(answer.failure.refusal)) known().simulates = false
    },
    noteOverrides(answer) {
      known().overrides ??= takesOverrides(answer)
    },
    suspect: suspectUnlessKnown,
  }
}

function nothingKnown(): Abilities {
  return { simulates: undefined, overrides: undefined, isSearched: false }
}
