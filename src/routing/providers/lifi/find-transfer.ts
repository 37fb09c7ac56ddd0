import type { FullStatusData, StatusMessage } from '@lifi/types'
import { type Address, isZeroAddress, parseAddress } from '../../../domain/address.ts'
import type { Hex } from '../../../domain/hex.ts'
import type { Logger } from '../../../domain/logger.ts'
import type { LifiClient } from './lifi-client.ts'

/**
 * The outcome of a question for a transfer.
 * - `UNKNOWN`: no reliable answer yet
 * - `NEVER`: it came from a chain with other transaction hashes than ours, so it is not asked again
 * - `NOT_ASKED`: the quota or the breaker forbids it, for this long
 */
type TransferAnswer =
  | { readonly kind: 'FOUND'; readonly transfer: Transfer }
  | { readonly kind: 'UNKNOWN' | 'NEVER' }
  | { readonly kind: 'NOT_ASKED'; readonly forMs: number }

/** Makes the function that finds the source of a bridge's delivery. It never rejects. */
export function createFindTransfer(client: LifiClient, logger: Logger) {
  return async (delivery: Delivery, signal: AbortSignal): Promise<TransferAnswer> => {
    const answer = await client.status(delivery.txHash, { signal })
    if (!answer.ok) {
      return answer.isAsked ? { kind: 'UNKNOWN' } : { kind: 'NOT_ASKED', forMs: answer.forMs }
    }
    const reading = readLifiStatus(answer.body, delivery)
    if (typeof reading !== 'string') return reading
    const about = { provider: client.name, ...delivery, detail: reading }
    logger.warn(about, 'the status of a bridge transfer contradicts its delivery')
    return { kind: 'UNKNOWN' }
  }
}

/** A transaction that delivered something on a chain. */
interface Delivery {
  /** EIP-155 number. */
  readonly chainId: number
  readonly txHash: Hex
}

/** Where a delivery came from. */
interface Transfer {
  /** EIP-155 number. */
  readonly sourceChainId: number
  readonly sourceTxHash: Hex
  readonly payer: Address
}

type Fields<T> = Partial<Record<keyof T, unknown>>

/** Statuses of transfers that have not ended. */
const NOT_ENDED: ReadonlySet<unknown> = new Set<StatusMessage>(['NOT_FOUND', 'INVALID', 'PENDING'])
const HASH = /^0x[0-9a-f]{64}$/

/**
 * Reads an answer of `/v1/status` without trusting it: it must be about this delivery, and name a transaction and a wallet on another chain.
 *
 * @returns a text where it cannot be true of this delivery: why not
 */
function readLifiStatus(body: unknown, { chainId, txHash }: Delivery): TransferAnswer | string {
  const { status, substatus, sending, receiving, fromAddress } = fieldsOf<FullStatusData>(body)
  if (NOT_ENDED.has(status)) return { kind: 'UNKNOWN' }
  if (status !== 'DONE') return `its status is ${quoted(status)}`
  if (substatus === 'REFUNDED') return 'it says that the money was refunded'
  const sent = fieldsOf<FullStatusData['sending']>(sending)
  const received = fieldsOf<FullStatusData['sending']>(receiving)
  if (received.chainId !== chainId || lowerCase(received.txHash) !== txHash) return 'it is for another delivery'
  const sourceChainId = sent.chainId
  if (typeof sourceChainId !== 'number' || !Number.isSafeInteger(sourceChainId) || sourceChainId <= 0) {
    return 'it names no source chain'
  }
  if (sourceChainId === chainId) return 'it names the destination chain as the source'
  const [sourceTxHash, payer] = [lowerCase(sent.txHash), lowerCase(fromAddress)]
  if (sourceTxHash === '' || payer === '') return 'it does not say who sent it'
  const parsed = parseAddress(payer)
  if (!HASH.test(sourceTxHash) || !parsed.ok || !payer.startsWith('0x')) return { kind: 'NEVER' }
  if (isZeroAddress(parsed.address)) return 'its sender is the zero address'
  return { kind: 'FOUND', transfer: { sourceChainId, sourceTxHash: sourceTxHash as Hex, payer: parsed.address } }
}

function fieldsOf<T>(value: unknown): Fields<T> {
  return typeof value === 'object' && value !== null ? value : {}
}

function lowerCase(value: unknown): string {
  return typeof value === 'string' ? value.toLowerCase() : ''
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 40) : typeof value
}
