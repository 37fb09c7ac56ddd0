import { decodeFeeProxyLog, type FeeProxyEvent, type RpcLog } from '../../contracts/decode-events.ts'
import type { Hex } from '../../domain/hex.ts'
import type { UnmatchedEvent } from './detected.ts'
import type { Match } from './match-event.ts'
import type { ReadEvent, SeenEvent } from './read-transaction.ts'

/** A payment event of which only the log was read. */
export interface LoggedEvent {
  readonly event: FeeProxyEvent
  readonly txHash: Hex
  readonly blockNumber: number
  readonly log: RpcLog
}

/** @returns nothing for a log of another event */
export function decodeLog(log: RpcLog): LoggedEvent[] {
  const event = decodeFeeProxyLog(log)
  return event === undefined
    ? []
    : [{ event, txHash: log.transactionHash as Hex, blockNumber: Number(log.blockNumber), log }]
}

/**
 * Describes an event that was matched for an account.
 *
 * @param timestampSec - of its block
 * @returns nothing for a payment or a refund
 */
export function describeMatched(
  { accountId, event, receipt, match }: ReadEvent & { readonly accountId: number; readonly match: Match },
  timestampSec: number,
): UnmatchedEvent[] {
  if (match.kind !== 'UNMATCHED') return []
  const { txHash, blockNumber } = receipt
  const { eventIndex, topic } = event
  const timestamp = new Date(timestampSec * 1_000)
  const fields = { ...fieldsOf(event), ...match.detail }
  return [{ accountId, reason: match.reason, topic, txHash, eventIndex, blockNumber, timestamp, event: fields }]
}

/**
 * Describes an event whose receipt is not read: no account knows its topic, or the receipt is too large. Its index among the payment events of
 * the transaction is in the receipt alone; until that is read, the index of the log is used instead, which is unique too.
 *
 * @param timestampSec - of its block
 */
export function describeUnread(
  { event, txHash, blockNumber, log }: LoggedEvent,
  reason: 'UNKNOWN_TOPIC' | 'RECEIPT_TOO_LARGE',
  timestampSec: number,
): UnmatchedEvent {
  const place = { txHash, eventIndex: Number(log.logIndex), blockNumber, timestamp: new Date(timestampSec * 1_000) }
  return { accountId: 0, reason, topic: event.topic, ...place, event: fieldsOf(event) }
}

/** Stored as JSON, so a field that is unknown is left out. */
function fieldsOf(event: FeeProxyEvent & Partial<SeenEvent>): Record<string, string> {
  const { emitter, token, to, amount, feeAmount, feeAddress, payer, paidFrom, conversion } = event
  const fields = {
    emitter,
    token,
    to,
    amount: amount.toString(),
    feeAmount: feeAmount.toString(),
    feeAddress,
    payer,
    paidFrom,
    invoiceAmount: conversion?.amount.toString(),
    invoiceCurrency: conversion?.currency,
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
