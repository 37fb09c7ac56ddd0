import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import { encodeAddress, encodeUint, WORD } from './words.ts'

/**
 * Multicall3's `aggregate3((address target, bool allowFailure, bytes callData)[])`, encoded and decoded by hand as `words.ts` says.
 *
 * @see https://github.com/mds1/multicall3
 */

const AGGREGATE3 = '82ad56cb'

/** A call of a contract that only reads. */
export interface ContractRead {
  readonly to: Address
  readonly data: Hex
}

/** Reads without repetition, in the order in which they were added. */
export type ReadSet = ReturnType<typeof createReadSet>

/** Makes an empty set. It finds reads by their parts: a key joined of both would take longer than everything else here. */
export function createReadSet() {
  const places = new Map<Address, Map<Hex, number>>()
  const list: ContractRead[] = []
  return {
    list: list as readonly ContractRead[],
    add(this: void, read: ContractRead): void {
      let ofTarget = places.get(read.to)
      if (ofTarget === undefined) {
        ofTarget = new Map()
        places.set(read.to, ofTarget)
      }
      if (ofTarget.has(read.data)) return
      ofTarget.set(read.data, list.length)
      list.push(read)
    },
    /** The place of a read in the list; undefined where it is not there. */
    placeOf: ({ to, data }: ContractRead) => places.get(to)?.get(data),
  }
}

/** Words of offsets and lengths, which are the same ones in every call. */
const smallWords: string[] = []
const SMALL = 1 << 15

/** As {@link encodeUint}, for offsets and lengths. */
function encodeSmall(value: number): string {
  if (value >= SMALL) return encodeUint(value)
  return (smallWords[value] ??= encodeUint(value))
}

const PADDINGS = Array.from({ length: WORD }, (_, digits) => '0'.repeat((WORD - digits) % WORD))
/** `allowFailure`, and where the calldata begins. */
const READ_FLAGS = encodeUint(1) + encodeUint(0x60)

/** Calldata of `aggregate3` that makes all reads; each may fail by itself. */
export function encodeAggregate3(reads: readonly ContractRead[]): Hex {
  let heads = ''
  let tails = ''
  for (const { to, data } of reads) {
    const digits = data.length - 2
    heads += encodeSmall(reads.length * 32 + tails.length / 2)
    tails += encodeAddress(to) + READ_FLAGS + encodeSmall(digits / 2) + data.slice(2) + PADDINGS[digits % WORD]
  }
  return `0x${AGGREGATE3}${encodeUint(0x20)}${encodeUint(reads.length)}${heads}${tails}`
}

/**
 * The return data of each read, as hexadecimal digits without `0x`; undefined for one that failed.
 *
 * @throws RangeError when the data is not what `aggregate3` returns for that many reads
 */
export function decodeAggregate3(data: string, count: number): readonly (string | undefined)[] {
  if (!/^0x(?:[0-9a-f]{2})*$/i.test(data)) throw new RangeError('not hexadecimal bytes')
  const digits = data.slice(2)
  const list = placeAt(digits, 0)
  if (numberAt(digits, list) !== count) throw new RangeError('another number of results')
  const elements = list + WORD
  return Array.from({ length: count }, (_, i) => {
    const element = elements + placeAt(digits, elements + i * WORD)
    const bytes = element + placeAt(digits, element + WORD)
    const start = bytes + WORD
    const end = start + placeAt(digits, bytes)
    if (end > digits.length) throw new RangeError('cut off')
    return numberAt(digits, element) === 0 ? undefined : digits.slice(start, end)
  })
}

/** The word at a digit, as a small number. */
function numberAt(digits: string, at: number): number {
  if (at + WORD > digits.length) throw new RangeError('cut off')
  const isSmall = digits.startsWith(SMALL_NUMBER_ZEROS, at)
  return Number.parseInt(digits.slice(isSmall ? at + SMALL_NUMBER_ZEROS.length : at, at + WORD), 16)
}

/** The zeros with which nearly all offsets and lengths begin: only 8 digits are then left to parse. */
const SMALL_NUMBER_ZEROS = '0'.repeat(WORD - 8)

/** The word at a digit, which counts bytes, as a count of digits. */
function placeAt(digits: string, at: number): number {
  const place = numberAt(digits, at) * 2
  if (place > digits.length) throw new RangeError('points outside')
  return place
}
