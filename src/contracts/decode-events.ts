import { keccak_256 } from '@noble/hashes/sha3'
import { type Address, ZERO_ADDRESS } from '../domain/address.ts'
import { bytesToHex, type Hex } from '../domain/hex.ts'
import { addressOf, splitWords, uintOf } from './words.ts'

/** A log as nodes return it. Quantities are hexadecimal. */
export interface RpcLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockNumber: string
  readonly blockHash: string
  readonly transactionHash: string
  readonly logIndex: string
  /** Seconds; only newer nodes give it. */
  readonly blockTimestamp?: string
}

/** A payment as a fee proxy's event describes it. Amounts in base units of what is paid. */
export interface FeeProxyEvent {
  readonly emitter: Address
  /** keccak256 of the reference's bytes. */
  readonly topic: Hex
  /** Absent for the chain's native coin. */
  readonly token?: Address
  readonly to: Address
  readonly amount: bigint
  readonly feeAmount: bigint
  readonly feeAddress: Address
}

/** A transfer of a token. `value` in its base units. */
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
  listingAdded: topicOf('SanctionedAddressesAdded(address[])'),
  listingRemoved: topicOf('SanctionedAddressesRemoved(address[])'),
} as const

/** The first topics to ask a node for: all but `Transfer`, which receipts bring. */
export const followedTopics: readonly Hex[] = [
  eventTopics.erc20Payment,
  eventTopics.nativePayment,
  eventTopics.conversion,
  eventTopics.tokenRequestProxy,
  eventTopics.nativeRequestProxy,
  eventTopics.listingAdded,
  eventTopics.listingRemoved,
]

type LogContent = Pick<RpcLog, 'address' | 'topics' | 'data'>

/** Whether a log is a `TransferWithReferenceAndFee` of either signature. Event indexes count these. */
export function isFeeProxyLog(log: Pick<RpcLog, 'topics'>): boolean {
  return log.topics[0] === eventTopics.erc20Payment || isNativeFeeProxyLog(log)
}

/** Whether a log is a `TransferWithReferenceAndFee` of native coins. */
export function isNativeFeeProxyLog(log: Pick<RpcLog, 'topics'>): boolean {
  return log.topics[0] === eventTopics.nativePayment
}

/** Decodes `TransferWithReferenceAndFee`. @returns undefined for other logs, and for data of another length */
export function decodeFeeProxyLog({ address, topics, data }: LogContent): FeeProxyEvent | undefined {
  const [kind, topic] = topics
  if (topic === undefined) return undefined
  const common = { emitter: address.toLowerCase() as Address, topic: topic as Hex }
  if (kind === eventTopics.erc20Payment) {
    const words = splitWords(data.slice(2), 5)
    if (words === undefined) return undefined
    const [token, ...terms] = words
    return { ...common, token: addressOf(token), ...feeProxyTerms(terms) }
  }
  if (kind === eventTopics.nativePayment) {
    const terms = splitWords(data.slice(2), 4)
    return terms && { ...common, ...feeProxyTerms(terms) }
  }
  return undefined
}

function feeProxyTerms([to, amount, feeAmount, feeAddress]: readonly [string, string, string, string]) {
  return {
    to: addressOf(to),
    amount: uintOf(amount),
    feeAmount: uintOf(feeAmount),
    feeAddress: addressOf(feeAddress),
  }
}

/**
 * Decodes `TransferWithConversionAndReference`.
 *
 * @returns what it adds to the event of a fee proxy: the same payment in the invoice currency (fiat: 8 decimals); undefined for other logs
 */
export function decodeConversionLog({ address, topics, data }: LogContent) {
  const [kind, topic] = topics
  if (kind !== eventTopics.conversion || topic === undefined) return undefined
  const words = splitWords(data.slice(2), 4)
  if (words === undefined) return undefined
  const [amount, currency, feeAmount] = words
  return {
    emitter: address.toLowerCase() as Address,
    topic: topic as Hex,
    amount: uintOf(amount),
    /** A token's address, or the address that stands for a fiat currency or native coin. */
    currency: addressOf(currency),
    feeAmount: uintOf(feeAmount),
  }
}

/** Decodes the `Transfer` of an ERC-20 token; that of an ERC-721 has four topics. @returns undefined for other logs */
export function decodeTransferLog({ address, topics, data }: LogContent): TransferEvent | undefined {
  const [kind, from, to] = topics
  if (kind !== eventTopics.transfer || topics.length !== 3) return undefined
  const words = splitWords(data.slice(2), 1)
  if (words === undefined) return undefined
  return {
    token: address.toLowerCase() as Address,
    from: addressOfTopic(from ?? ZERO_ADDRESS),
    to: addressOfTopic(to ?? ZERO_ADDRESS),
    value: uintOf(words[0]),
  }
}

/** Decodes a factory's event. @returns the SingleRequestProxy that it created, and the topic of its payments; undefined for other logs */
export function decodeCreatedProxyLog({
  topics,
  data,
}: Pick<RpcLog, 'topics' | 'data'>): { readonly address: Address; readonly topic: Hex } | undefined {
  const [kind, topic] = topics
  if (topic === undefined) return undefined
  const count = kind === eventTopics.tokenRequestProxy ? 6 : kind === eventTopics.nativeRequestProxy ? 5 : undefined
  const words = count === undefined ? undefined : splitWords(data.slice(2), count)
  return words && { address: addressOf(words[0]), topic: topic as Hex }
}

/** The address in an indexed topic. */
function addressOfTopic(topic: string): Address {
  return addressOf(topic.slice(2))
}
