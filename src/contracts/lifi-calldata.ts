/**
 * The calldata of LI.FI's AcrossFacetV4 and the message of its ReceiverAcrossV4, encoded and decoded.
 *
 * @see https://github.com/lifinance/contracts, src/Facets/AcrossFacetV4.sol, src/Periphery/ReceiverAcrossV4.sol, src/Libraries/LibSwap.sol,
 *   src/Periphery/FeeForwarder.sol, src/Periphery/FeeCollector.sol
 */
import type { ContractFunctionArgs } from 'viem'
import {
  decodeAbiParameters,
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  parseAbi,
  parseAbiParameters,
  toFunctionSelector,
} from 'viem/utils'
import { type Address, ZERO_ADDRESS } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import { encodeAddress } from './words.ts'

/** A canonical address of the EVM family, in viem's type as well. */
export type EvmAddress = Address & Hex

/** The wallet's call of LI.FI's diamond. */
export interface AcrossDeposit {
  readonly bridge: BridgeData
  /** Calls before the bridge; absent where the function has none. */
  readonly swaps?: readonly SwapData[]
  readonly across: AcrossData
}

/** The message to LI.FI's receiver on the destination chain. */
export interface ReceiverMessage {
  readonly transactionId: Hex
  readonly swaps: readonly SwapData[]
  /** Gets what the calls leave, and everything where one of them fails. */
  readonly receiver: Hex
}

/** Fees that a call of FeeForwarder or FeeCollector takes. */
interface TakenFees {
  /** The zero address is the native coin. */
  readonly token: Hex
  /** Base units, all receivers together. */
  readonly amount: bigint
}

/** An exclusivity parameter below this is an offset from the deposit: a year. */
export const ACROSS_LONGEST_OFFSET_SECONDS = 31_536_000

/** The unit of `outputAmountMultiplier`. */
export const MULTIPLIER_BASE = 10n ** 18n

const NO_ADDRESS = ZERO_ADDRESS as EvmAddress

/**
 * LI.FI's part of a deposit, the same for every bridge. `sendingAssetId` is the token that is bridged, the zero address the native coin. `minAmount`
 * is in base units of it; after source swaps, the least.
 */
const BRIDGE_DATA =
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }'
/**
 * A call that LI.FI makes with the wallet's tokens: a swap, a fee, or any other. `fromAmount` is in base units of `sendingAssetId`;
 * `requiresDeposit`: whether the tokens are pulled from the wallet first.
 */
const SWAP_DATA =
  'struct SwapData { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }'
/**
 * Across's part of a deposit, as a struct of Solidity. Addresses are the last 20 of 32 bytes; times are seconds since 1970.
 * - `outputAmount`, base units of `receivingAssetId`; after source swaps `outputAmountMultiplier` counts instead: output for each unit that is
 *   bridged, in units of 10^-18
 * - `exclusivityParameter`: until when `exclusiveRelayer` alone may deliver. 0: never; below {@link ACROSS_LONGEST_OFFSET_SECONDS}: seconds from
 *   the deposit; else seconds since 1970
 */
export const ACROSS_DATA =
  'struct AcrossV4Data { bytes32 receiverAddress; bytes32 refundAddress; bytes32 sendingAssetId; bytes32 receivingAssetId; uint256 outputAmount; uint128 outputAmountMultiplier; bytes32 exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityParameter; bytes message; }'
const FACET = parseAbi([
  BRIDGE_DATA,
  SWAP_DATA,
  ACROSS_DATA,
  'function startBridgeTokensViaAcrossV4(BridgeData bridge, AcrossV4Data across) payable',
  'function swapAndStartBridgeTokensViaAcrossV4(BridgeData bridge, SwapData[] swaps, AcrossV4Data across) payable',
])
type FacetArgs = ContractFunctionArgs<typeof FACET, 'payable', 'swapAndStartBridgeTokensViaAcrossV4'>
export type BridgeData = FacetArgs[0]
export type SwapData = FacetArgs[1][number]
export type AcrossData = FacetArgs[2]
const LOUPE = parseAbi(['function facetAddress(bytes4 selector) view returns (address)'])
const MESSAGE = parseAbiParameters(['bytes32 transactionId, SwapData[] swaps, address receiver', SWAP_DATA])
const FEES = parseAbi([
  'struct FeeDistribution { address recipient; uint256 amount; }',
  'function forwardERC20Fees(address token, FeeDistribution[] distributions)',
  'function forwardNativeFees(FeeDistribution[] distributions) payable',
  'function collectTokenFees(address token, uint256 integratorFee, uint256 lifiFee, address integrator)',
  'function collectNativeFees(uint256 integratorFee, uint256 lifiFee, address integrator) payable',
])

/** The functions of the diamond that are understood; the second makes calls before it bridges. */
const ACROSS_FUNCTIONS = FACET.filter(({ type }) => type === 'function')

/** By function name, the call that asks a diamond which facet serves the function; the zero address is none. @see EIP-2535 */
export const FACET_QUESTIONS: readonly { readonly name: string; readonly data: Hex }[] = ACROSS_FUNCTIONS.map(
  (item) => ({
    name: item.name,
    data: encodeFunctionData({ abi: LOUPE, args: [toFunctionSelector(item)] }),
  }),
)

/** The calls that ask a receiver for the executor of its calls, and for the spoke pool that alone may call it. */
export const RECEIVER_QUESTIONS = {
  executor: toFunctionSelector('EXECUTOR()'),
  spokePool: toFunctionSelector('SPOKEPOOL()'),
} as const

export function encodeAcrossDeposit({ bridge, swaps, across }: AcrossDeposit): Hex {
  return swaps === undefined
    ? encodeFunctionData({ abi: FACET, functionName: 'startBridgeTokensViaAcrossV4', args: [bridge, across] })
    : encodeFunctionData({
        abi: FACET,
        functionName: 'swapAndStartBridgeTokensViaAcrossV4',
        args: [bridge, swaps, across],
      })
}

/**
 * @param data - in lower case
 * @returns undefined for other functions, and for data that is not exactly the encoding of what was decoded
 */
export function decodeAcrossDeposit(data: Hex): AcrossDeposit | undefined {
  return sameBytes(data, encodeAcrossDeposit, () => {
    const { functionName, args } = decodeFunctionData({ abi: FACET, data })
    if (functionName === 'startBridgeTokensViaAcrossV4') return { bridge: args[0], across: args[1] }
    return { bridge: args[0], swaps: args[1], across: args[2] }
  })
}

export function encodeReceiverMessage({ transactionId, swaps, receiver }: ReceiverMessage): Hex {
  return encodeAbiParameters(MESSAGE, [transactionId, swaps, receiver])
}

/** As {@link decodeAcrossDeposit}. */
export function decodeReceiverMessage(data: Hex): ReceiverMessage | undefined {
  return sameBytes(data, encodeReceiverMessage, () => {
    const [transactionId, swaps, receiver] = decodeAbiParameters(MESSAGE, data)
    return { transactionId, swaps, receiver }
  })
}

/** The calldata of FeeForwarder for a fee to one receiver. */
export function encodeForwardedFee({ token, amount }: TakenFees, recipient: Hex): Hex {
  const fees = [{ recipient, amount }]
  return token === NO_ADDRESS
    ? encodeFunctionData({ abi: FEES, functionName: 'forwardNativeFees', args: [fees] })
    : encodeFunctionData({ abi: FEES, functionName: 'forwardERC20Fees', args: [token, fees] })
}

type FeeCall = ReturnType<typeof decodeFunctionData<typeof FEES>>

/** As {@link decodeAcrossDeposit}; without the receivers of the fees. */
export function decodeTakenFees(data: Hex): TakenFees | undefined {
  const encode = (call: FeeCall) => encodeFunctionData({ abi: FEES, ...call })
  const call = sameBytes(data, encode, () => decodeFunctionData({ abi: FEES, data }))
  switch (call?.functionName) {
    case undefined:
      return undefined
    case 'forwardERC20Fees':
      return { token: call.args[0], amount: sumOf(call.args[1]) }
    case 'forwardNativeFees':
      return { token: NO_ADDRESS, amount: sumOf(call.args[0]) }
    case 'collectTokenFees':
      return { token: call.args[0], amount: call.args[1] + call.args[2] }
    case 'collectNativeFees':
      return { token: NO_ADDRESS, amount: call.args[0] + call.args[1] }
  }
}

/** An address in 32 bytes. */
export function wordOfAddress(address: Address | Hex): Hex {
  return `0x${encodeAddress(address).toLowerCase()}`
}

/**
 * The address in the last 20 of 32 bytes.
 *
 * @returns undefined where the 12 bytes before it are not zero
 */
export function addressOfWord(word: Hex): EvmAddress | undefined {
  return /^0x0{24}/.test(word) ? (`0x${word.slice(26)}` as EvmAddress) : undefined
}

/**
 * Decodes, and checks that encoding the value again gives the same bytes. That finds trailing bytes, offsets that overlap or leave gaps, dirty
 * padding and text that is not UTF-8.
 *
 * @returns the value with its addresses in canonical form
 */
function sameBytes<T>(data: Hex, encode: (value: T) => Hex, decode: () => T): T | undefined {
  try {
    const value = decode()
    return encode(value) === data ? canonical(value) : undefined
  } catch {
    // The decoder throws for data that it cannot read, the encoder for numbers out of range.
    return undefined
  }
}

/** viem decodes addresses with their checksum. */
function canonical<T>(value: T): T {
  if (typeof value === 'string') return (/^0x[0-9a-f]{40}$/i.test(value) ? value.toLowerCase() : value) as T
  if (Array.isArray(value)) return value.map(canonical) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, canonical(inner)])) as T
}

function sumOf(distributions: readonly { readonly amount: bigint }[]): bigint {
  return distributions.reduce((sum, { amount }) => sum + amount, 0n)
}
