/** Judges answers of the services by the story of the chains: each must be a state that some chain had. */

import { expectState, type KnownRequest, type PlacedFact } from '../model/expected-state.ts'
import { type Answer, balanceText, describePayments, shows } from './answers.ts'
import type { ChainStory } from './chain-story.ts'

/** Something that is not as it must be. */
export interface Difference {
  readonly what: string
  readonly detail: object
}

interface Judged {
  readonly story: ChainStory
  /** Whether the request was stored after its first payment, so that its events were found in any order. */
  readonly isLate: boolean
  /** Whether a node left out logs shortly before, which are found and read again a while later. */
  readonly mayLack: boolean
}

/** @returns undefined where the answer shows a state that the chain had */
export function judgeAnswer(answer: Answer, { story, isLate, mayLack }: Judged): Difference | undefined {
  const { request, seen, atMs } = answer
  const versions = story.versionsOf(request.reference).filter(({ sinceMs }) => sinceMs <= atMs)
  const finalAt = story.finalAt(atMs)
  const candidates = [...versions.toReversed().map(({ facts }) => facts), []]
  const asOf = seen.kind === 'PAYMENTS' ? seen.asOf : undefined
  if (asOf !== undefined && asOf > story.headAt(atMs)) return differ('asOf is beyond the head', answer, story)
  for (const facts of candidates) {
    for (const known of isLate || mayLack
      ? subsets(facts)
      : asOf === undefined
        ? prefixes(facts)
        : completeUpTo(facts, asOf)) {
      if (possibleFinals(known, finalAt).some((final) => shows(answer, expectState(request, known, final))))
        return undefined
    }
  }
  return differ('an answer is no state that the chain had', answer, story)
}

function differ(what: string, answer: Answer, story: ChainStory): Difference {
  const { request, service, atMs, seen } = answer
  const now = expectState(request, story.factsOf(request.reference), story.finalAt(atMs))
  const expected = seen.kind === 'BALANCE' ? balanceText(now) : describePayments(request, now)
  const detail = {
    account: request.account,
    reference: request.reference,
    network: request.network,
    service,
    at: new Date(atMs),
  }
  return {
    what,
    detail: { ...detail, seen, head: story.headAt(atMs), final: story.finalAt(atMs), nowExpected: expected },
  }
}

/** The facts up to each block. */
function prefixes(facts: readonly PlacedFact[]): (readonly PlacedFact[])[] {
  const blocks = new Set(facts.map(({ block }) => block))
  return [-1, ...blocks].toReversed().map((last) => facts.filter(({ block }) => block <= last))
}

/** All facts up to a block, and any later ones: blocks are read beside those that are followed. */
function completeUpTo(facts: readonly PlacedFact[], asOf: number): (readonly PlacedFact[])[] {
  const known = facts.filter(({ block }) => block <= asOf)
  const later = subsets(facts.filter(({ block }) => block > asOf))
  return later.toReversed().map((some) => [...known, ...some])
}

function subsets(facts: readonly PlacedFact[]): (readonly PlacedFact[])[] {
  const few = facts.slice(0, 8)
  return Array.from({ length: 2 ** few.length }, (_, bits) => few.filter((_fact, index) => (bits >> index) & 1))
}

/** Every last final block that makes a difference. */
function possibleFinals(facts: readonly PlacedFact[], finalAt: number): number[] {
  return [-1, ...new Set(facts.map(({ block }) => block).filter((block) => block <= finalAt))]
}

/** Compares the last answer about a request with what must be stored when all is final. */
export function judgeEnd(answer: Answer, story: ChainStory): Difference | undefined {
  const { request } = answer
  const expected = expectState(request, story.factsOf(request.reference), story.head())
  return shows(answer, expected) ? undefined : differ('the end is not what the chain says', answer, story)
}

/** A row of unmatched_events. */
export interface UnmatchedRow {
  readonly network: string
  readonly account: string
  readonly event: string
}

/** Compares the unmatched events of all accounts with those that must be there. */
export function judgeUnmatched(
  rows: readonly UnmatchedRow[],
  requests: readonly KnownRequest[],
  stories: readonly ChainStory[],
): Difference[] {
  const text = ({ network, account, event }: UnmatchedRow) => `${network} ${account} ${event}`
  const found = new Set(rows.map(text))
  const wanted = new Set(
    stories.flatMap((story) =>
      requests.flatMap((request) =>
        expectState(request, story.factsOf(request.reference), story.head()).unmatched.map((event) =>
          text({ network: story.network, account: request.account, event }),
        ),
      ),
    ),
  )
  const missing = [...wanted].filter((each) => !found.has(each))
  const surplus = [...found].filter((each) => !wanted.has(each))
  return [
    ...missing.map((event) => ({ what: 'an unmatched event is missing', detail: { event } })),
    ...surplus.map((event) => ({ what: 'an unmatched event must not be there', detail: { event } })),
  ]
}
