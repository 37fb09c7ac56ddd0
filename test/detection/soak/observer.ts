/** Asks both services about requests throughout, and judges what they answer a moment later, when the soak knows what the chain had. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KnownRequest } from '../model/expected-state.ts'
import { type Answer, readBalance, readPayments } from './answers.ts'
import type { ChainStory } from './chain-story.ts'
import type { AccountName, Invoice } from './invoices.ts'
import { type Difference, judgeAnswer } from './judge.ts'
import type { Plan } from './seeded-plan.ts'
import { callService, ServiceError, type SoakService } from './soak-services.ts'

/** The soak writes down a block a moment after the service can have seen it. */
const KNOWN_AFTER_MS = 1_500
const PAUSE_MS = 40
/** Within that time logs that a node left out are found, and its blocks read again. */
const FOUND_OUT_AFTER_MS = 30_000
/** So many blocks behind, a chain is perhaps read at several places at once. A balance does not say up to where it knows all. */
const BLOCKS_BEHIND = 20

export interface Observed {
  readonly services: readonly SoakService[]
  readonly keys: Readonly<Record<AccountName, string>>
  readonly invoices: () => readonly Invoice[]
  readonly storyOf: (network: string) => ChainStory
  readonly isLate: (invoice: Invoice) => boolean
  /** Whether a node of a network left out logs since a time. */
  readonly omittedSince: (network: string, ms: number) => boolean
  readonly plan: Plan
  /** By network: what the last answer with payments reported. */
  readonly asOf: Map<string, number>
  readonly onDifference: (difference: Difference) => void
}

export interface ObserverCounts {
  answers: number
  /** Answers with an error, by status. */
  readonly errors: Map<number, number>
  /** The last errors of the service itself. */
  readonly lastErrors: string[]
  /** Answers that lacked what a node had left out just before, and balances that lacked what was still to be read. */
  excused: number
}

export async function observe(observed: Observed, counts: ObserverCounts, signal: AbortSignal): Promise<void> {
  const waiting: { readonly answer: Answer; readonly isLate: boolean; readonly mayLack: boolean }[] = []
  const judgeKnown = (untilMs: number) => {
    for (let first = waiting[0]; first !== undefined && first.answer.atMs < untilMs; first = waiting[0]) {
      waiting.shift()
      const story = observed.storyOf(first.answer.request.network)
      const strict = judgeAnswer(first.answer, { ...first, story, mayLack: false })
      if (strict === undefined) continue
      const difference = first.mayLack ? judgeAnswer(first.answer, { ...first, story }) : strict
      if (difference === undefined) counts.excused++
      else observed.onDifference(difference)
    }
  }
  while (!signal.aborted) {
    await sleep(PAUSE_MS)
    const asked = await askSomething(observed, counts)
    if (asked !== undefined) waiting.push(asked)
    judgeKnown(Date.now() - KNOWN_AFTER_MS)
  }
  await sleep(KNOWN_AFTER_MS)
  judgeKnown(Number.POSITIVE_INFINITY)
}

async function askSomething(observed: Observed, counts: ObserverCounts) {
  const { services, keys, invoices, isLate, omittedSince, plan } = observed
  const known = invoices()
  if (known.length === 0) return undefined
  // The newest change most.
  const invoice = plan.pick(plan.chance(0.8) ? known.slice(-30) : known)
  const request = plan.pick(invoice.requests)
  const service = plan.pick(services)
  const kind = plan.chance(0.6) ? 'PAYMENTS' : 'BALANCE'
  try {
    const answer = await ask({ service, key: keys[request.account as AccountName], request, kind })
    counts.answers++
    const isOmitted = omittedSince(request.network, answer.atMs - FOUND_OUT_AFTER_MS)
    const mayLack = isOmitted || (answer.seen.kind === 'BALANCE' && isBehind(observed, request.network, answer))
    if (answer.seen.kind === 'PAYMENTS') observed.asOf.set(request.network, answer.seen.asOf ?? -1)
    return { answer, isLate: isLate(invoice), mayLack }
  } catch (error) {
    if (error instanceof ServiceError) noteError(counts, error)
    return undefined
  }
}

function isBehind({ asOf, storyOf }: Observed, network: string, { atMs }: Answer): boolean {
  return storyOf(network).headAt(atMs) - (asOf.get(network) ?? -1) > BLOCKS_BEHIND
}

function noteError({ errors, lastErrors }: ObserverCounts, error: ServiceError): void {
  errors.set(error.status, (errors.get(error.status) ?? 0) + 1)
  lastErrors.push(error.message)
  if (lastErrors.length > 5) lastErrors.shift()
}

interface Question {
  readonly service: SoakService
  readonly key: string
  readonly request: KnownRequest
  readonly kind: 'PAYMENTS' | 'BALANCE'
}

export async function ask({ service, key, request, kind }: Question): Promise<Answer> {
  const { reference, network } = request
  const path = kind === 'PAYMENTS' ? `/payments?paymentReference=${reference}&limit=100` : `/v1/request/${reference}`
  const answer = await callService(service, key, { path })
  const seen = kind === 'PAYMENTS' ? readPayments(answer, network) : readBalance(answer)
  return { request, service: service.name, atMs: Date.now(), seen }
}
