import { type AcceptedAs, acceptableReasons, type UnmatchedReason } from '../match/match-event.ts'

/** An unmatched event in plain words. */
export interface Explanation {
  /** What happened. */
  readonly explanation: string
  /** What would make it count, or what else to do. */
  readonly remedy: string
  /** What an operator can accept it as; absent where nobody can. */
  readonly acceptableAs?: AcceptedAs | undefined
}

/** The fields that are stored with an event. */
type EventFields = Readonly<Record<string, string>>

/** Explains why an event counts as nothing. @param event - the fields that are stored with it */
export function explainUnmatched(reason: UnmatchedReason, event: EventFields): Explanation {
  const explain = explanations[reason]
  const words = typeof explain === 'function' ? explain(event) : explain
  return { ...words, acceptableAs: acceptanceOf(reason) }
}

function acceptanceOf(reason: UnmatchedReason): AcceptedAs | undefined {
  if (acceptableReasons.PAYMENT.includes(reason)) return 'PAYMENT'
  return acceptableReasons.REFUND.includes(reason) ? 'REFUND' : undefined
}

type Words = Omit<Explanation, 'acceptableAs'>

const NOT_THE_REQUESTS = 'Nothing makes it count. If the money arrived at the merchant, return it or settle it outside'

const explanations: Readonly<Record<UnmatchedReason, Words | ((event: EventFields) => Words)>> = {
  UNKNOWN_TOPIC: {
    explanation: 'No stored request has this payment reference.',
    remedy:
      'If it pays a request of yours, store that request with its requestId and salt: its events are then looked at again at once. ' +
      'Otherwise ignore it: anybody can emit such events.',
  },
  RECEIPT_TOO_LARGE: {
    explanation:
      'The node, or the limit of 64 MiB, refused the receipt of the transaction, so it is not known who received what.',
    remedy:
      'Add the RPC URL of a node that answers larger receipts: the transaction is tried again every five minutes.',
  },
  WRONG_CHAIN: {
    explanation: 'The request is to be paid on another chain than this one.',
    remedy: `${NOT_THE_REQUESTS}.`,
  },
  WRONG_PAYEE: {
    explanation:
      'The money did not go to whom the request names. Under the reference of the payment it may be a refund of somebody who may not ' +
      'refund, or to somebody who never paid.',
    remedy:
      'If the merchant returned this money, register the wallet that sent it for later refunds (waybill wallets add), and accept this ' +
      'event as a refund; that is possible under the payment reference only. Otherwise ignore it: anybody can emit such events.',
  },
  WRONG_TOKEN: {
    explanation:
      'The money is of another token than the request says, or the conversion of another invoice currency. It may be worthless.',
    remedy: `${NOT_THE_REQUESTS}.`,
  },
  NOT_A_CONVERSION: {
    explanation:
      'The request is paid through a conversion proxy, and this payment was not converted, so its worth in the invoice currency is not known.',
    remedy: `${NOT_THE_REQUESTS}, or cancel the request and make one in the currency that was paid.`,
  },
  NOTHING_RECEIVED: {
    explanation: 'The payee received none of the token in this transaction, whatever the event says.',
    remedy: 'Nothing makes it count, because no money moved.',
  },
  SELF_PAYMENT: {
    explanation: 'The payee paid themselves.',
    remedy: 'Nothing makes it count, because no money moved.',
  },
  NOT_FROM_PAYEE: {
    explanation:
      'It went to the refund address, but it was neither sent by the payee nor by a wallet that the account had registered before.',
    remedy:
      'If the merchant sent it, register the wallet for later refunds (waybill wallets add), and accept this event as a refund. ' +
      'Otherwise ignore it: the payer, or anybody, can send such a payment.',
  },
  STALE_RATE: explainStale,
  RATE_OFF: explainRate,
}

function explainStale({ rateUpdatedAtSec, maxRateAgeSeconds }: EventFields): Words {
  const when =
    rateUpdatedAtSec === undefined
      ? ''
      : ` It was last updated at ${new Date(Number(rateUpdatedAtSec) * 1_000).toISOString()}; ${maxRateAgeSeconds} seconds are allowed.`
  return {
    explanation: `A price feed of the configured path had stopped when the payment was made.${when}`,
    remedy:
      'The payer has paid. If the amount is right by another source, accept the event as a payment; else return the money.',
  }
}

function explainRate({ rateProblem, expectedAmount, amount }: EventFields): Words {
  if (rateProblem === 'NO_PATH') {
    return {
      explanation: 'The chains file has no conversion path between the two currencies, so the rate cannot be judged.',
      remedy:
        'Add the path to conversion.paths for later payments. The payer has paid: accept the event as a payment, or return the money.',
    }
  }
  if (rateProblem === 'TOO_LITTLE') {
    return {
      explanation: `Less than 98 % of the invoice arrived at the rate of the configured path: ${amount} base units instead of ${expectedAmount}.`,
      remedy:
        'This is likely fraud by a path of the payer’s choice: treat the request as not paid. The tokens did arrive.',
    }
  }
  return {
    explanation:
      'The configured path had no rate at that block: a feed was missing or not above 0, or the node no longer has that state.',
    remedy:
      'Compare the amount with another source; if it is right, accept the event as a payment. Then run waybill chains check.',
  }
}
