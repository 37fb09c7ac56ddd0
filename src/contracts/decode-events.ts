import { keccak_256 } from '@noble/hashes/sha3'
import { type Address, ZERO_ADDRESS } from '../domain/address.ts'
import { bytesToHex, type Hex } from '../domain/hex.ts'

/** A log as a node answers it. Quantities are hexadecimal. */
export interface RpcLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockNumber: string
  readonly blockHash: string
  readonly transactionHash: string
  readonly logIndex: string
  /** Seconds; only newer nodes tell it. */
  readonly blockTimestamp?: string
}

/** What a fee proxy says of a payment. Amounts in base units of what is paid. */
export interface FeeProxyEvent {
  readonly emitter: Address
  /** keccak256 of the reference's bytes. */
  readonly topic: Hex
  /** Absent: the chain's own coin. */
  readonly token?: Address
  readonly to: Address
  readonly amount: bigint
  readonly feeAmount: bigint
  readonly feeAddress: Address
}

/** What a conversion proxy adds: the same payment in the currency of the invoice (of fiat: 8 decimals). */
export interface ConversionEvent {
  readonly emitter: Address
  readonly topic: Hex
  readonly amount: bigint
  /** A token's address, or the one that stands for a fiat currency or native coin. */
  readonly currency: Address
  readonly feeAmount: bigint
}

/** A movement of a token. `value` in its base units. */
export interface TransferEvent {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly value: bigint
}

const topicOf = (signature: string): Hex => bytesToHex(keccak_256(signature))

/** First topics of the events that are followed. */
export const eventTopics = {
  erc20Payment: topicOf('TransferWithReferenceAndFee(address,address,uint256,bytes,uint256,address)'),
  nativePayment: topicOf('TransferWithReferenceAndFee(address,uint256,bytes,uint256,address)'),
  conversion: topicOf('TransferWithConversionAndReference(uint256,address,bytes,uint256,uint256)'),
  transfer: topicOf('Transfer(address,address,uint256)'),
  tokenRequestProxy: topicOf('ERC20SingleRequestProxyCreated(address,address,address,bytes,address,uint256,address)'),
  nativeRequestProxy: topicOf('EthereumSingleRequestProxyCreated(address,address,bytes,address,uint256,address)'),
} as const

/** The first topics to ask a node for. */
export const followedTopics: readonly Hex[] = [
  eventTopics.erc20Payment,
  eventTopics.nativePayment,
  eventTopics.conversion,
  eventTopics.tokenRequestProxy,
  eventTopics.nativeRequestProxy,
]

const WORD = 64

// Slicing the hexadecimal text is some four times as fast as a general decoder, and these shapes never change.
const wordAt = (data: string, index: number) => data.slice(2 + index * WORD, 2 + (index + 1) * WORD)
const uintAt = (data: string, index: number) => BigInt(`0x${wordAt(data, index)}`)
const addressAt = (data: string, index: number) => `0x${wordAt(data, index).slice(24).toLowerCase()}` as Address
const hasWords = (data: string, count: number) => data.length === 2 + count * WORD

/** The address in an indexed topic. */
function addressOfTopic(topic: string): Address {
  return `0x${topic.slice(26).toLowerCase()}` as Address
}

/** Whether a log is a `TransferWithReferenceAndFee` of either signature; these are what event indexes count. */
export function isFeeProxyLog(log: Pick<RpcLog, 'topics'>): boolean {
  return log.topics[0] === eventTopics.erc20Payment || isNativeFeeProxyLog(log)
}

/** Whether a log is a `TransferWithReferenceAndFee` of coins. */
export function isNativeFeeProxyLog(log: Pick<RpcLog, 'topics'>): boolean {
  return log.topics[0] === eventTopics.nativePayment
}

/** Reads `TransferWithReferenceAndFee`; undefined for other logs and other shapes of data. */
export function decodeFeeProxyLog(log: Pick<RpcLog, 'address' | 'topics' | 'data'>): FeeProxyEvent | undefined {
  const { data } = log
  const [kind, topic] = log.topics
  if (topic === undefined) return undefined
  const emitter = log.address.toLowerCase() as Address
  if (kind === eventTopics.erc20Payment && hasWords(data, 5)) {
    const token = addressAt(data, 0)
    return { emitter, topic: topic as Hex, token, ...feeProxyWords(data, 1) }
  }
  if (kind === eventTopics.nativePayment && hasWords(data, 4)) {
    return { emitter, topic: topic as Hex, ...feeProxyWords(data, 0) }
  }
  return undefined
}

function feeProxyWords(data: string, from: number) {
  return {
    to: addressAt(data, from),
    amount: uintAt(data, from + 1),
    feeAmount: uintAt(data, from + 2),
    feeAddress: addressAt(data, from + 3),
  }
}

/** Reads `TransferWithConversionAndReference`; undefined for other logs. */
export function decodeConversionLog(log: Pick<RpcLog, 'address' | 'topics' | 'data'>): ConversionEvent | undefined {
  const { data } = log
  const [kind, topic] = log.topics
  if (kind !== eventTopics.conversion || topic === undefined || !hasWords(data, 4)) return undefined
  return {
    emitter: log.address.toLowerCase() as Address,
    topic: topic as Hex,
    amount: uintAt(data, 0),
    currency: addressAt(data, 1),
    feeAmount: uintAt(data, 2),
  }
}

/** Reads the `Transfer` of an ERC-20 token (that of an ERC-721 has four topics); undefined for other logs. */
export function decodeTransferLog(log: Pick<RpcLog, 'address' | 'topics' | 'data'>): TransferEvent | undefined {
  const [kind, from, to] = log.topics
  if (kind !== eventTopics.transfer || log.topics.length !== 3 || !hasWords(log.data, 1)) return undefined
  return {
    token: log.address.toLowerCase() as Address,
    from: addressOfTopic(from ?? ZERO_ADDRESS),
    to: addressOfTopic(to ?? ZERO_ADDRESS),
    value: uintAt(log.data, 0),
  }
}

/** Reads which SingleRequestProxy a factory's event says that it made; undefined for other logs. */
export function decodeCreatedProxyLog(log: Pick<RpcLog, 'topics' | 'data'>): Address | undefined {
  const [kind] = log.topics
  const words = kind === eventTopics.tokenRequestProxy ? 6 : kind === eventTopics.nativeRequestProxy ? 5 : undefined
  return words !== undefined && hasWords(log.data, words) ? addressAt(log.data, 0) : undefined
}
