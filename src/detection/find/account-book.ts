import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { eventKeyOf } from '../match/detected.ts'
import type { AcceptedAs, MatchableRequest } from '../match/match-event.ts'
import type { SeenEvent } from '../match/read-transaction.ts'
import type { Acceptance, FirstPayment, WalletTime } from '../sql/account-events-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'

/** What an account has stored about some events. Payments that are found while matching are added in the order of the chain. */
export type AccountBook = Awaited<ReturnType<typeof openAccountBook>>

/** Events of one chain that are matched together for one account. */
interface BookedEvents {
  readonly accountId: number
  /** CAIP-2. */
  readonly chainId: string
  readonly events: readonly { readonly event: SeenEvent; readonly txHash: Hex }[]
  /** Whether they were matched before: then what is stored of their payments is left out. */
  readonly areReread: boolean
}

type Sources = Pick<
  DetectionRepository,
  'requestsOfTopics' | 'payersOf' | 'detectedPayersOf' | 'walletsOf' | 'acceptedOf' | 'reportedPayersOf'
>

/**
 * Reads what an account has stored about events: requests, earlier payers, refund wallets and accepted events. Of the stored payments only
 * those of earlier blocks count; payments of the same block are found together and added in their order.
 */
export async function openAccountBook(repository: Sources, { accountId, chainId, events, areReread }: BookedEvents) {
  const topics = new Set(events.map(({ event }) => event.topic))
  const transactions = { chainId, txHashes: [...new Set(events.map(({ txHash }) => txHash))] }
  const addresses = new Set(events.flatMap(({ event }) => [event.to, ...(event.paidFrom ? [event.paidFrom] : [])]))
  const carried = events.flatMap(({ event, txHash }) => (event.isCarried ? [txHash] : []))
  const [requests, wallets, accepted, kept, reported] = await Promise.all([
    repository.requestsOfTopics(accountId, [...topics]),
    repository.walletsOf(accountId, [...addresses]),
    repository.acceptedOf(accountId, transactions),
    areReread ? repository.detectedPayersOf(accountId, transactions) : new Map<string, Address | undefined>(),
    repository.reportedPayersOf(accountId, { chainId, txHashes: [...new Set(carried)] }),
  ])
  const payers = await repository.payersOf(
    accountId,
    requests.map(({ requestId }) => requestId),
    areReread ? transactions : undefined,
  )
  const byTopic = groupByTopic(requests)
  /** Payers of the payments that were found while matching; undefined stands for an unknown one. */
  const found = new Map<string, Set<Address | undefined>>()
  /** @param payer - undefined where it is unknown */
  const addPayment = ({ requestId }: MatchableRequest, payer: Address | undefined) =>
    void found.set(requestId, (found.get(requestId) ?? new Set<Address | undefined>()).add(payer))
  const hasPaidBefore = (at: FirstPayment, { requestId }: MatchableRequest, payer: Address | undefined) =>
    found.get(requestId)?.has(payer) === true || isEarlier(payers.get(requestId)?.get(payer), at)
  return {
    requestsOf: (topic: Hex): readonly MatchableRequest[] => byTopic.get(topic) ?? [],
    /** Whether an address paid the request earlier. */
    hasPaidBefore,
    /** Whether an earlier payment of the request has an unknown payer. */
    hasUnknownPayerBefore: (at: FirstPayment, request: MatchableRequest) => hasPaidBefore(at, request, undefined),
    /** Whether an address was a registered refund wallet of the account at that time. */
    isWalletAt: (at: FirstPayment, address: Address) =>
      (wallets.get(address) ?? []).some((time) => isRegisteredAt(time, at)),
    /** What an operator accepted the event as. */
    acceptedAs(txHash: Hex, event: SeenEvent): AcceptedAs | undefined {
      const acceptance = accepted.get(eventKeyOf({ txHash, eventIndex: event.eventIndex }))
      return acceptance !== undefined && isSameEvent(acceptance, event) ? acceptance.as : undefined
    },
    /** Who paid an event that a bridge delivered, as the bridge reported it. */
    reportedPayerOf: (txHash: Hex, { eventIndex }: SeenEvent) => reported.get(eventKeyOf({ txHash, eventIndex })),
    /** Who paid by the stored payment of an event that is read again. Undefined where none is stored, or its payer is unknown. */
    storedPayerOf: (txHash: Hex, { eventIndex }: SeenEvent) => kept.get(eventKeyOf({ txHash, eventIndex })),
    addPayment,
    /**
     * Adds the stored payment of an event that no longer matches when it is read again, because the rate of its time is no longer readable. The
     * payment stays stored, so its payer may still be refunded. Does nothing where no payment of the event is stored.
     */
    keepPayment(request: MatchableRequest, txHash: Hex, { eventIndex }: SeenEvent): void {
      const key = eventKeyOf({ txHash, eventIndex })
      if (kept.has(key)) addPayment(request, kept.get(key))
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

function isRegisteredAt({ registeredAt, removedAt }: WalletTime, { timestampSec }: FirstPayment): boolean {
  const atMs = timestampSec * 1_000
  return registeredAt.getTime() < atMs && (removedAt === undefined || removedAt.getTime() >= atMs)
}

/** A reorg can mine the accepted transaction again with another result. */
function isSameEvent({ topic, event: accepted }: Acceptance, event: SeenEvent): boolean {
  const { emitter, token, to, amount, conversion } = event
  return (
    topic === event.topic &&
    accepted['emitter'] === emitter &&
    accepted['token'] === token &&
    accepted['to'] === to &&
    accepted['amount'] === amount.toString() &&
    // The rate of an accepted conversion is not checked, so its fiat amount must be the one that the operator saw.
    accepted['invoiceAmount'] === conversion?.amount.toString() &&
    accepted['invoiceCurrency'] === conversion?.currency
  )
}

function isEarlier(a: FirstPayment | undefined, b: FirstPayment): boolean {
  if (a === undefined) return false
  return a.timestampSec < b.timestampSec || (a.timestampSec === b.timestampSec && a.blockNumber < b.blockNumber)
}
