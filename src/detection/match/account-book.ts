import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { SeenEvent } from '../read/read-transaction.ts'
import { type Acceptance, acceptanceKeyOf } from '../sql/accepted-events-repository.ts'
import type { DetectionRepository, FirstPayment } from '../sql/detection-repository.ts'
import type { AcceptedAs, MatchableRequest } from './match-event.ts'

/** What an account knows of some events. Payments that are found meanwhile are added in the order of the chain. */
export interface AccountBook {
  requestsOf(topic: Hex): readonly MatchableRequest[]
  /** Whether an address paid the request earlier. */
  hasPaidBefore(at: FirstPayment, request: MatchableRequest, address: Address): boolean
  /** Whether somebody paid the request earlier of whom nobody knows who it was. */
  hasUnknownPayerBefore(at: FirstPayment, request: MatchableRequest): boolean
  /** Whether an address was registered before as a wallet from which the account refunds, and not removed since. */
  isWalletAt(at: FirstPayment, address: Address): boolean
  /** What an operator has accepted the event as. */
  acceptedAs(txHash: Hex, event: SeenEvent): AcceptedAs | undefined
  /** Who paid, as the event tells it, or of a payment that is read again what a bridge has told since. Undefined: nobody knows. */
  payerOf(txHash: Hex, event: SeenEvent): Address | undefined
  /** @param payer - undefined where it is not known */
  addPayment(request: MatchableRequest, payer: Address | undefined): void
  /**
   * Adds a stored payment whose event was read again without a result, as its rate of then may not be had any more. It stays as it is,
   * so whoever paid it may still be refunded. Does nothing for an event of which no payment is stored.
   */
  keepPayment(request: MatchableRequest, txHash: Hex, event: SeenEvent): void
}

/** Events that are looked at together, all of one chain. */
export interface BookedEvents {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
  readonly events: readonly { readonly event: SeenEvent; readonly txHash: Hex }[]
  /** Whether they were read before, so that what is stored of their payments is left out. */
  readonly areReread: boolean
}

type Sources = Pick<
  DetectionRepository,
  'requestsOfTopics' | 'payersOf' | 'detectedPayersOf' | 'walletsOf' | 'acceptedOf'
>

/**
 * Reads what an account knows of events: its requests, who paid them, its refund wallets and what an operator has accepted. Payments of
 * one block are found together and in their order, so of the stored ones those of earlier blocks count.
 */
export async function openAccountBook(
  repository: Sources,
  { accountId, chainId, events, areReread }: BookedEvents,
): Promise<AccountBook> {
  const topics = new Set(events.map(({ event }) => event.topic))
  const transactions = { chainId, txHashes: [...new Set(events.map(({ txHash }) => txHash))] }
  const addresses = new Set(events.flatMap(({ event }) => [event.to, ...(event.paidFrom ? [event.paidFrom] : [])]))
  const [requests, wallets, accepted, kept] = await Promise.all([
    repository.requestsOfTopics(accountId, [...topics]),
    repository.walletsOf(accountId, [...addresses]),
    repository.acceptedOf(accountId, transactions),
    areReread ? repository.detectedPayersOf(accountId, transactions) : new Map<string, Address | undefined>(),
  ])
  const payers = await repository.payersOf(
    accountId,
    requests.map(({ requestId }) => requestId),
    areReread ? transactions : undefined,
  )
  const byTopic = groupByTopic(requests)
  /** Who paid of those found meanwhile; undefined stands for somebody unknown. */
  const found = new Map<string, Set<Address | undefined>>()
  const add = ({ requestId }: MatchableRequest, payer: Address | undefined) =>
    void found.set(requestId, (found.get(requestId) ?? new Set<Address | undefined>()).add(payer))
  const isBefore = (first: FirstPayment | undefined, at: FirstPayment) => first !== undefined && isEarlier(first, at)
  return {
    requestsOf: (topic) => byTopic.get(topic) ?? [],
    hasPaidBefore: (at, { requestId }, address) =>
      found.get(requestId)?.has(address) === true || isBefore(payers.get(requestId)?.firstOf.get(address), at),
    hasUnknownPayerBefore: (at, { requestId }) =>
      found.get(requestId)?.has(undefined) === true || isBefore(payers.get(requestId)?.unknown, at),
    isWalletAt({ timestampSec }, address) {
      const atMs = timestampSec * 1_000
      return (wallets.get(address) ?? []).some(
        ({ registeredAt, removedAt }) =>
          registeredAt.getTime() < atMs && (removedAt === undefined || removedAt.getTime() >= atMs),
      )
    },
    acceptedAs(txHash, event) {
      const acceptance = accepted.get(acceptanceKeyOf(txHash, event.eventIndex))
      return acceptance !== undefined && isSameEvent(acceptance, event) ? acceptance.as : undefined
    },
    payerOf: (txHash, { eventIndex, payer, isCarried }) =>
      payer ?? (isCarried ? kept.get(acceptanceKeyOf(txHash, eventIndex)) : undefined),
    addPayment: add,
    keepPayment(request, txHash, event) {
      const key = acceptanceKeyOf(txHash, event.eventIndex)
      if (kept.has(key)) add(request, kept.get(key))
    },
  }
}

function groupByTopic(requests: readonly MatchableRequest[]): Map<Hex, MatchableRequest[]> {
  const byTopic = new Map<Hex, MatchableRequest[]>()
  for (const request of requests) {
    for (const topic of new Set([request.topic, request.refundTopic])) {
      if (topic !== undefined) byTopic.set(topic, [...(byTopic.get(topic) ?? []), request])
    }
  }
  return byTopic
}

/** A transaction that is mined again after a reorg may come to something else than what was accepted. */
function isSameEvent({ topic, event: accepted }: Acceptance, event: SeenEvent): boolean {
  const { emitter, token, to, amount, conversion } = event
  return (
    topic === event.topic &&
    accepted['emitter'] === emitter &&
    accepted['token'] === token &&
    accepted['to'] === to &&
    accepted['amount'] === amount.toString() &&
    // Nothing else judges the fiat amount of a conversion that is accepted.
    accepted['invoiceAmount'] === conversion?.amount.toString() &&
    accepted['invoiceCurrency'] === conversion?.currency
  )
}

function isEarlier(a: FirstPayment, b: FirstPayment): boolean {
  return a.timestampSec < b.timestampSec || (a.timestampSec === b.timestampSec && a.blockNumber < b.blockNumber)
}
