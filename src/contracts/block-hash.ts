/** The hash of a block, computed from its header: a node that changes a field gives a header with another hash. */
import { keccak_256 } from '@noble/hashes/sha3'
import { bytesToHex, type Hex, hexToBytes } from '../domain/hex.ts'
import { encodeRlp, quantityBytes } from './receipts-root.ts'

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
