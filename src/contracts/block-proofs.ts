/**
 * What a block's header says of it, computed from what a node gives: the root of its receipts, its bloom, its hash. A node that leaves
 * something out, or changes it, gives another value than the header's.
 */
import { keccak_256 } from '@noble/hashes/sha3'
import { toRlp } from 'viem/utils'
import { bytesToHex, type Hex, hexToBytes } from '../domain/hex.ts'
import type { RpcLog } from './decode-events.ts'
import { toQuantity } from './words.ts'

/** What the encoding of a receipt needs of it, as nodes return it. Quantities are hexadecimal. */
export interface EncodableReceipt {
  /** Absent where the node knows legacy transactions only. */
  readonly type?: string | undefined
  /** `0x1` or `0x0`. */
  readonly status?: string | undefined
  /** The state after the transaction, which receipts from before Byzantium have in place of a status. */
  readonly root?: string | undefined
  readonly cumulativeGasUsed: string
  readonly logsBloom: string
  readonly logs: readonly Pick<RpcLog, 'address' | 'topics' | 'data'>[]
  /** Of deposits on OP-stack chains. */
  readonly depositNonce?: string | undefined
  /** Of deposits on OP-stack chains since Canyon. Only with it the nonce is encoded. */
  readonly depositReceiptVersion?: string | undefined
}

/** What RLP encodes: bytes, or a list. */
export type Rlp = Uint8Array | readonly Rlp[]

/**
 * Types of EIPs 2930, 1559, 4844 and 7702; then Arbitrum's deposit, unsigned, contract, retry, submit, internal and old ones. Of Arbitrum's,
 * retry, submit and internal were held against blocks of its networks. A type that is encoded otherwise gives another root, so nothing is
 * believed wrongly.
 */
const PLAIN_TYPES: ReadonlySet<number> = new Set([1, 2, 3, 4, 0x64, 0x65, 0x66, 0x68, 0x69, 0x6a, 0x78])
/** A deposit on an OP-stack chain; on Scroll a message, which is encoded as a deposit without a nonce. */
const DEPOSIT_TYPE = 0x7e

/**
 * The receiptsRoot of a block: the root of a Merkle-Patricia trie over its encoded receipts, with their places as keys.
 *
 * @see https://eips.ethereum.org/EIPS/eip-2718#receipts, https://ethereum.org/developers/docs/data-structures-and-encoding/patricia-merkle-trie
 * @param receipts - all of the block, in order
 * @returns undefined where the encoding of a receipt is not known
 */
export function receiptsRootOf(receipts: readonly EncodableReceipt[]): Hex | undefined {
  const encoded = receipts.map(encodeReceipt)
  return encoded.every((bytes) => bytes !== undefined) ? rootOfList(encoded) : undefined
}

/** A receipt as its block's trie holds it. @returns undefined for a type whose encoding is not known */
export function encodeReceipt(receipt: EncodableReceipt): Uint8Array | undefined {
  const type = Number(receipt.type ?? '0x0')
  const outcome = receipt.root === undefined ? quantityBytes(receipt.status ?? '') : hexToBytes(receipt.root)
  const content: Rlp[] = [
    outcome,
    quantityBytes(receipt.cumulativeGasUsed),
    hexToBytes(receipt.logsBloom),
    receipt.logs.map(({ address, topics, data }) => [hexToBytes(address), topics.map(hexToBytes), hexToBytes(data)]),
  ]
  if (type === 0) return encodeRlp(content)
  if (type === DEPOSIT_TYPE) content.push(...depositContent(receipt))
  else if (!PLAIN_TYPES.has(type)) return undefined
  return Buffer.concat([Uint8Array.of(type), encodeRlp(content)])
}

function depositContent({ depositNonce, depositReceiptVersion }: EncodableReceipt): Rlp[] {
  if (depositReceiptVersion === undefined) return []
  return [quantityBytes(depositNonce ?? '0x0'), quantityBytes(depositReceiptVersion)]
}

/** The root of a trie whose keys are the places of a list, RLP-encoded. */
function rootOfList(values: readonly Uint8Array[]): Hex {
  const leaves = values.map((value, place) => ({ path: nibblesOf(encodeRlp(quantityBytes(toQuantity(place)))), value }))
  return bytesToHex(keccak_256(encodeRlp(leaves.length === 0 ? new Uint8Array() : nodeOf(leaves, 0))))
}

/** RLP. @see https://ethereum.org/developers/docs/data-structures-and-encoding/rlp */
function encodeRlp(value: Rlp): Uint8Array {
  // Its type asks for lists that can be changed, which it does not do.
  return toRlp(value as Parameters<typeof toRlp>[0], 'bytes')
}

/** A number as RLP holds it: without leading zeros, and 0 as no bytes at all. */
function quantityBytes(quantity: string): Uint8Array {
  const digits = quantity.replace(/^0x0*/, '')
  return hexToBytes(digits.length % 2 === 0 ? digits : `0${digits}`)
}

interface Leaf {
  /** The key, 4 bits each. */
  readonly path: readonly number[]
  readonly value: Uint8Array
}

/** The node above some leaves whose paths agree up to a depth. No path is the beginning of another. */
function nodeOf(leaves: readonly Leaf[], depth: number): Rlp {
  const [first] = leaves
  if (first === undefined) return new Uint8Array()
  if (leaves.length === 1) return [compactPath(first.path.slice(depth), true), first.value]
  const common = commonDepth(leaves, depth)
  if (common > depth) return [compactPath(first.path.slice(depth, common), false), referenceTo(nodeOf(leaves, common))]
  const children = Array.from({ length: 16 }, (_, nibble) => {
    const below = leaves.filter(({ path }) => path[depth] === nibble)
    return below.length === 0 ? new Uint8Array() : referenceTo(nodeOf(below, depth + 1))
  })
  return [...children, new Uint8Array()]
}

/** How a node names another: by its hash, or as it is where that is shorter. */
function referenceTo(node: Rlp): Rlp {
  const bytes = encodeRlp(node)
  return bytes.length < 32 ? node : keccak_256(bytes)
}

function commonDepth(leaves: readonly Leaf[], depth: number): number {
  const [first, ...others] = leaves
  let common = depth
  while (others.every(({ path }) => path[common] === first?.path[common])) common++
  return common
}

/** A part of a path as bytes. The first half byte says whether it ends in a leaf and whether its length is odd. */
function compactPath(path: readonly number[], endsInLeaf: boolean): Uint8Array {
  const isOdd = path.length % 2 === 1
  const flag = (endsInLeaf ? 2 : 0) + (isOdd ? 1 : 0)
  const nibbles = isOdd ? [flag, ...path] : [flag, 0, ...path]
  return hexToBytes(nibbles.map((nibble) => nibble.toString(16)).join(''))
}

function nibblesOf(bytes: Uint8Array): number[] {
  return [...bytes].flatMap((byte) => [byte >> 4, byte & 15])
}

/** The bits that a value sets, as places in a bloom. */
export type BloomBits = readonly { readonly byte: number; readonly mask: number }[]

/**
 * A bloom has 2,048 bits, of which each log sets three for its address and three for each of its topics. A bit that is not set proves that no
 * log has the value; set bits prove nothing.
 *
 * @see https://ethereum.github.io/yellowpaper/paper.pdf section 4.3.1
 */
const BLOOM_BYTES = 256

/** The three bits of an address or a topic. @param value - `0x` and its digits */
export function bloomBitsOf(value: string): BloomBits {
  const hash = keccak_256(hexToBytes(value))
  return [0, 2, 4].map((at) => {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff
    return { byte: BLOOM_BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) }
  })
}

/** Whether a bloom has all bits of a value. @param bloom - 256 bytes; one of another length excludes nothing */
export function mayHold(bloom: Uint8Array, bits: BloomBits): boolean {
  return bloom.length !== BLOOM_BYTES || bits.every(({ byte, mask }) => ((bloom[byte] ?? 0) & mask) !== 0)
}

/** The bloom of some logs. */
export function bloomOf(logs: readonly { readonly address: string; readonly topics: readonly string[] }[]): Uint8Array {
  const bloom = new Uint8Array(BLOOM_BYTES)
  for (const value of logs.flatMap(({ address, topics }) => [address, ...topics])) {
    for (const { byte, mask } of bloomBitsOf(value)) bloom[byte] = (bloom[byte] ?? 0) | mask
  }
  return bloom
}

/** A block's header, as nodes return it. Quantities are hexadecimal. */
export type RpcHeader = Readonly<Partial<Record<string, unknown>>>

/** Fields of fixed length are encoded as they are, quantities without leading zeros. */
type Field = readonly [name: string, form: 'BYTES' | 'QUANTITY']

const FIRST_FIELDS: readonly Field[] = [
  ['parentHash', 'BYTES'],
  ['sha3Uncles', 'BYTES'],
  ['miner', 'BYTES'],
  ['stateRoot', 'BYTES'],
  ['transactionsRoot', 'BYTES'],
  ['receiptsRoot', 'BYTES'],
  ['logsBloom', 'BYTES'],
  ['difficulty', 'QUANTITY'],
  ['number', 'QUANTITY'],
  ['gasLimit', 'QUANTITY'],
  ['gasUsed', 'QUANTITY'],
  ['timestamp', 'QUANTITY'],
  ['extraData', 'BYTES'],
  ['mixHash', 'BYTES'],
  ['nonce', 'BYTES'],
]

/** Added by EIPs 1559, 4895, 4844, 4788 and 7685, in this order. A header has the first of them, up to the last that it has. */
const LATER_FIELDS: readonly Field[] = [
  ['baseFeePerGas', 'QUANTITY'],
  ['withdrawalsRoot', 'BYTES'],
  ['blobGasUsed', 'QUANTITY'],
  ['excessBlobGas', 'QUANTITY'],
  ['parentBeaconBlockRoot', 'BYTES'],
  ['requestsHash', 'BYTES'],
]

/**
 * The hash of a header with the fields that Ethereum knows. Chains that hash further fields have other hashes, so a difference alone proves
 * no lie.
 *
 * @returns undefined where a field that every header has is absent
 */
export function blockHashOf(header: RpcHeader): Hex | undefined {
  const last = LATER_FIELDS.findLastIndex(([name]) => typeof header[name] === 'string')
  const fields = [...FIRST_FIELDS, ...LATER_FIELDS.slice(0, last + 1)]
  const content = fields.map(([name, form]) => encodeField(header[name], form))
  if (content.slice(0, FIRST_FIELDS.length).includes(undefined)) return undefined
  return bytesToHex(keccak_256(encodeRlp(content.map((bytes) => bytes ?? new Uint8Array()))))
}

/** Whether a header names the hash of its fields. False as well where the chain hashes other fields. */
export function isHashOf(header: RpcHeader): boolean {
  try {
    return blockHashOf(header) === header['hash']
  } catch {
    // A field is not hexadecimal.
    return false
  }
}

function encodeField(value: unknown, form: Field[1]): Uint8Array | undefined {
  if (typeof value !== 'string') return undefined
  return form === 'BYTES' ? hexToBytes(value) : quantityBytes(value)
}
