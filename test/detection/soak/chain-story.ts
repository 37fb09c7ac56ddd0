/**
 * All that ever was canonical on one chain: which facts each request had, and since when. An answer of the service is right if it fits one of
 * these states.
 */
import type { Hex } from 'viem'
import type { Fact, PlacedFact } from '../model/expected-state.ts'

/** A block as the chain has it. */
export interface ReportedBlock {
  readonly number: number
  readonly hash: Hex
  readonly timestampSec: number
  /** The facts of its transactions, in the order of the chain. */
  readonly facts: readonly PlacedFact[]
}

/** The facts about one request while the chain was so. */
export interface Version {
  /** Nobody can have seen it before: milliseconds since 1970. */
  readonly sinceMs: number
  readonly facts: readonly PlacedFact[]
}

export interface ChainStory {
  readonly network: string
  head(): number
  /** The canonical block's hash. */
  hashAt(number: number): Hex | undefined
  /** Adds blocks; those that were at their numbers and above are no longer canonical. @param sinceMs - before the node was reported to make them */
  add(blocks: readonly ReportedBlock[], sinceMs: number): void
  /** Removes the blocks above a number, when a node lost them. */
  rewind(number: number, sinceMs: number): void
  /** @param about - the reference of a request */
  versionsOf(about: Hex): readonly Version[]
  factsOf(about: Hex): readonly PlacedFact[]
  /** The highest block that was final for anybody by then. */
  finalAt(atMs: number): number
  headAt(atMs: number): number
  /** Canonical payment events. */
  countFacts(): number
}

/** @param depthToFinal - a block is final when so many follow it */
export function createChainStory(network: string, depthToFinal: number, start: ReportedBlock): ChainStory {
  const canonical = new Map<number, ReportedBlock>([[start.number, start]])
  const versions = new Map<Hex, Version[]>()
  /** Highest heads, with the time since which they could be seen. */
  const heads: { sinceMs: number; number: number }[] = [{ sinceMs: 0, number: start.number }]
  let head = start.number

  const current = (about: Hex) => versions.get(about)?.at(-1)?.facts ?? []
  function change(about: Hex, facts: readonly PlacedFact[], sinceMs: number): void {
    versions.set(about, [...(versions.get(about) ?? []), { sinceMs, facts }])
  }
  function dropAbove(number: number): Set<Hex> {
    const touched = new Set<Hex>()
    for (let at = number + 1; at <= head; at++) {
      for (const { about } of canonical.get(at)?.facts ?? []) touched.add(about)
      canonical.delete(at)
    }
    return touched
  }

  return {
    network,
    head: () => head,
    hashAt: (number) => canonical.get(number)?.hash,
    add(blocks, sinceMs) {
      const first = blocks[0]
      if (first === undefined) return
      const touched = dropAbove(first.number - 1)
      for (const block of blocks) {
        canonical.set(block.number, block)
        for (const { about } of block.facts) touched.add(about)
      }
      head = (blocks.at(-1) as ReportedBlock).number
      const added = blocks.flatMap(({ facts }) => facts)
      for (const about of touched) {
        const kept = current(about).filter(({ block }) => block < first.number)
        change(about, [...kept, ...added.filter((fact) => fact.about === about)], sinceMs)
      }
      if (head > (heads.at(-1)?.number ?? 0)) heads.push({ sinceMs, number: head })
    },
    rewind(number, sinceMs) {
      for (const about of dropAbove(number)) {
        change(
          about,
          current(about).filter(({ block }) => block <= number),
          sinceMs,
        )
      }
      head = number
    },
    versionsOf: (about) => versions.get(about) ?? [],
    factsOf: current,
    finalAt: (atMs) => headBefore(heads, atMs) - depthToFinal,
    headAt: (atMs) => headBefore(heads, atMs),
    countFacts: () => [...canonical.values()].reduce((total, { facts }) => total + facts.length, 0),
  }
}

function headBefore(heads: readonly { sinceMs: number; number: number }[], atMs: number): number {
  return heads.findLast(({ sinceMs }) => sinceMs <= atMs)?.number ?? 0
}

/** Puts the facts of a transaction where it was mined. */
export function placeFacts(
  facts: readonly { readonly fact: Fact; readonly eventIndex: number }[],
  at: Pick<PlacedFact, 'network' | 'txHash' | 'block' | 'timestampSec'>,
): PlacedFact[] {
  return facts.map(({ fact, eventIndex }) => ({ ...fact, ...at, eventIndex }))
}
