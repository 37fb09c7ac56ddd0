import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'

/**
 * Multicall3's `aggregate3((address target, bool allowFailure, bytes callData)[])`, encoded and decoded by hand: a general
 * ABI coder takes most of the processor time of a call.
 *
 * @see https://github.com/mds1/multicall3
 */

const AGGREGATE3 = '82ad56cb'
const WORD = 64

/** A call that only reads. */
export interface ContractRead {
  readonly to: Address
  readonly data: Hex
}

/** Reads, each once, in the order in which they came. */
export interface ReadSet {
  readonly list: readonly ContractRead[]
  readonly add: (read: ContractRead) => void
  /** Its place in the list; undefined when it is not there. */
  placeOf(read: ContractRead): number | undefined
}

/** Makes an empty set. It looks up the parts of a read and puts none together, which would take longer than all else. */
export function createReadSet(): ReadSet {
  const places = new Map<Address, Map<Hex, number>>()
  const list: ContractRead[] = []
  return {
    list,
    add(read) {
      let ofTarget = places.get(read.to)
      if (ofTarget === undefined) {
        ofTarget = new Map()
        places.set(read.to, ofTarget)
      }
      if (ofTarget.has(read.data)) return
      ofTarget.set(read.data, list.length)
      list.push(read)
    },
    placeOf: ({ to, data }) => places.get(to)?.get(data),
  }
}

/** 32 bytes of a number, as hexadecimal digits. */
function wordOf(value: bigint | number): string {
  return value.toString(16).padStart(WORD, '0')
}

/** Words of offsets and lengths, which are the same ones in every call. */
const smallWords: string[] = []
const SMALL = 1 << 15

/** As {@link wordOf}, for offsets and lengths. */
function smallWordOf(value: number): string {
  if (value >= SMALL) return wordOf(value)
  return (smallWords[value] ??= wordOf(value))
}

const ADDRESS_PADDING = '0'.repeat(WORD - 40)

/** 32 bytes of an EVM address, as hexadecimal digits. */
function wordOfAddress(address: Address): string {
  return ADDRESS_PADDING + address.slice(2)
}

const PADDINGS = Array.from({ length: WORD }, (_, digits) => '0'.repeat((WORD - digits) % WORD))
/** That it may fail, and where its data begins. */
const READ_FLAGS = wordOf(1) + wordOf(0x60)

/** Calldata of `aggregate3` that makes all reads and lets each fail by itself. */
export function encodeAggregate3(reads: readonly ContractRead[]): Hex {
  let heads = ''
  let tails = ''
  for (const { to, data } of reads) {
    const digits = data.length - 2
    heads += smallWordOf(reads.length * 32 + tails.length / 2)
    tails += wordOfAddress(to) + READ_FLAGS + smallWordOf(digits / 2) + data.slice(2) + PADDINGS[digits % WORD]
  }
  return `0x${AGGREGATE3}${wordOf(0x20)}${wordOf(reads.length)}${heads}${tails}`
}

/**
 * The return data of each read, as hexadecimal digits without `0x`; undefined for one that failed.
 *
 * @throws RangeError when the data is not what `aggregate3` returns for that many reads
 */
export function decodeAggregate3(data: string, count: number): readonly (string | undefined)[] {
  if (!/^0x(?:[0-9a-f]{2})*$/i.test(data)) throw new RangeError('no hexadecimal bytes')
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

/** A word as a small number. */
function numberAt(digits: string, at: number): number {
  if (at + WORD > digits.length) throw new RangeError('cut off')
  const isSmall = digits.startsWith(SMALL_NUMBER_ZEROS, at)
  return Number.parseInt(digits.slice(isSmall ? at + SMALL_NUMBER_ZEROS.length : at, at + WORD), 16)
}

/** What nearly all offsets and lengths begin with. */
const SMALL_NUMBER_ZEROS = '0'.repeat(WORD - 8)

/** A word that counts bytes, given back as a count of digits. */
function placeAt(digits: string, at: number): number {
  const place = numberAt(digits, at) * 2
  if (place > digits.length) throw new RangeError('points outside')
  return place
}

/** A word of return data as a number without sign; undefined when the data is shorter. */
export function uintAt(digits: string, index: number): bigint | undefined {
  const word = digits.slice(index * WORD, (index + 1) * WORD)
  return word.length === WORD ? BigInt(`0x${word}`) : undefined
}

/** A word of return data as a number in two's complement; undefined when the data is shorter. */
export function intAt(digits: string, index: number): bigint | undefined {
  const value = uintAt(digits, index)
  return value === undefined ? undefined : BigInt.asIntN(256, value)
}

/** `balanceOf(owner)` of a token. */
export function readTokenBalance(token: Address, owner: Address): ContractRead {
  return { to: token, data: `0x70a08231${wordOfAddress(owner)}` }
}

/** `allowance(owner, spender)` of a token. */
export function readAllowance(token: Address, owner: Address, spender: Address): ContractRead {
  return { to: token, data: `0xdd62ed3e${wordOfAddress(owner)}${wordOfAddress(spender)}` }
}

/** Multicall3's `getEthBalance(owner)`: the native coin. */
export function readNativeBalance(multicall: Address, owner: Address): ContractRead {
  return { to: multicall, data: `0x4d2301cc${wordOfAddress(owner)}` }
}

/** Multicall3's `getCurrentBlockTimestamp()`, in seconds since 1970. */
export function readBlockTimestamp(multicall: Address): ContractRead {
  return { to: multicall, data: '0x0f28c97d' }
}

/** A price feed's `latestRoundData()`: round, answer, started at, updated at, answered in round. */
export function readLatestRound(feed: Address): ContractRead {
  return { to: feed, data: '0xfeaf968c' }
}

/** A price feed's `decimals()`. */
export function readDecimals(feed: Address): ContractRead {
  return { to: feed, data: '0x313ce567' }
}

/** `getConversion(amount, path)` of Request's ChainlinkConversionPath: the converted amount, the time of the oldest rate. */
export function readConversion(contract: Address, amount: bigint, path: readonly Address[]): ContractRead {
  const list = wordOf(path.length) + path.map(wordOfAddress).join('')
  return { to: contract, data: `0xfbd4122a${wordOf(amount)}${wordOf(0x40)}${list}` }
}

/** `getReserves()` of a Uniswap-v2-shaped pair: what it holds of the token of the lower address, and of the other. */
export function readReserves(pair: Address): ContractRead {
  return { to: pair, data: '0x0902f1ac' }
}

/** `swapRouter()` of ERC20SwapToPay. */
export function readSwapRouter(swapToPay: Address): ContractRead {
  return { to: swapToPay, data: '0xc31c9c07' }
}

/** `requestSwapFees()` of ERC20SwapToPay, in thousandths of what is bought. */
export function readSwapFee(swapToPay: Address): ContractRead {
  return { to: swapToPay, data: '0x3e952c1a' }
}

/** A word of return data as an address; undefined when the data is shorter. */
export function addressAt(digits: string, index: number): Address | undefined {
  const word = digits.slice(index * WORD, (index + 1) * WORD)
  return word.length === WORD ? (`0x${word.slice(24)}` as Address) : undefined
}

/** `slot0()` of a Uniswap-v3-shaped pool; first the square root of the price, in 2^-96. */
export function readSlot0(pool: Address): ContractRead {
  return { to: pool, data: '0x3850c7bd' }
}

/** What is to come out of a Uniswap-v3-shaped pool. */
export interface ExactOutput {
  readonly tokenIn: Address
  readonly tokenOut: Address
  readonly amountOut: bigint
  /** Millionths. */
  readonly fee: number
}

/** `quoteExactOutputSingle` of QuoterV2: what goes in, the square root of the price afterwards, ticks crossed, gas of the swap. */
export function readExactOutput(quoter: Address, { tokenIn, tokenOut, amountOut, fee }: ExactOutput): ContractRead {
  const words = [wordOfAddress(tokenIn), wordOfAddress(tokenOut), wordOf(amountOut), wordOf(fee), wordOf(0)]
  return { to: quoter, data: `0xbd21704a${words.join('')}` }
}

/** `getL1FeeUpperBound(size)` of an OP stack's GasPriceOracle, wei; the size is that of the unsigned transaction in bytes. */
export function readL1FeeUpperBound(oracle: Address, size: number): ContractRead {
  return { to: oracle, data: `0xf1c7a58b${wordOf(size)}` }
}

/** `getPricesInWei()` of ArbGasInfo; second the price of a byte of calldata on the chain below. */
export function readPricesInWei(gasInfo: Address): ContractRead {
  return { to: gasInfo, data: '0x41b247a8' }
}
