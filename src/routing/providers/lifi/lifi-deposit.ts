import {
  ACROSS_LONGEST_OFFSET_SECONDS,
  type AcrossData,
  type AcrossDeposit,
  addressOfWord,
  decodeAcrossDeposit,
  decodeReceiverMessage,
  decodeTakenFees,
  MULTIPLIER_BASE,
  type SwapData,
} from '../../../contracts/lifi-calldata.ts'
import { type Address, ZERO_ADDRESS } from '../../../domain/address.ts'
import type { Hex } from '../../../domain/hex.ts'
import { ensure, type LifiQuestion } from './lifi-question.ts'

/** What a deposit is checked against. */
interface DepositTerms {
  readonly question: LifiQuestion
  /** Base units of the source token that leave the wallet, by the quote. */
  readonly fromAmount: bigint
  /** When the quote came, seconds since 1970. */
  readonly nowSec: number
}

/** Across refuses older quotes. */
const MAX_QUOTE_AGE_SECONDS = 3_600
/** The longest time for which the money may be neither delivered nor given back. */
const MAX_FILL_SECONDS = 24 * 3_600
/** The longest time for which one relayer alone may deliver. */
const MAX_EXCLUSIVITY_SECONDS = 600

/**
 * Decodes the calldata for LI.FI's diamond, and checks every field that decides where money goes.
 *
 * Fields that may hold anything, and why they do no harm:
 * - `bridge`, `integrator`, `referrer`, both `transactionId`: the contracts only emit them
 * - `outputAmountMultiplier` without source swaps, `outputAmount` with them: the facet does not use them
 * - Across's `sendingAssetId` of a native coin: the facet passes the wrapped coin instead
 * - `exclusiveRelayer`: it only may deliver first, for ten minutes at most
 * - in the message `requiresDeposit`, which the executor does not read, and `fromAmount` between what the call takes and what arrives, which
 *   only sets an allowance of the executor
 * - the receivers of fees: fees are a part of the loss, which is capped
 *
 * Fields that may hold more than one value, within bounds:
 * - what arrives (`outputAmount`; with source swaps `minAmount` and `outputAmountMultiplier`): at least as much as was asked for
 * - the amounts of fees: at most what is pulled less what is bridged
 * - `quoteTimestamp`, `fillDeadline`, `exclusivityParameter`: the limits above
 * - `receiver`: the wallet or LI.FI's receiver, which the facet only emits
 *
 * @param data - in lower case
 * @returns base units of the destination token that are guaranteed to arrive
 * @throws RejectedQuoteError
 */
export function checkDeposit(data: Hex, terms: DepositTerms): bigint {
  const deposit = decodeAcrossDeposit(data)
  ensure(deposit !== undefined, 'UNVERIFIABLE', 'its calldata is not of a known form')
  checkSource(deposit, terms)
  checkDestination(deposit, terms.question)
  const guaranteed = guaranteedOutput(deposit)
  const { toAmount } = terms.question.request
  ensure(guaranteed >= BigInt(toAmount), 'OUTPUT_TOO_LOW', `it guarantees ${guaranteed} of ${toAmount}`)
  checkMessage(deposit.across.message, terms.question, guaranteed)
  checkTimes(deposit.across, terms.nowSec)
  return guaranteed
}

function checkSource({ bridge, swaps, across }: AcrossDeposit, { question, fromAmount }: DepositTerms): void {
  const asset = question.source.address ?? ZERO_ADDRESS
  const isAsset = bridge.sendingAssetId === asset
  // For a native coin the facet passes the wrapped coin to Across, whatever stands here.
  const isInput = asset === ZERO_ADDRESS || addressOfWord(across.sendingAssetId) === asset
  ensure(isAsset && isInput, 'WRONG_SOURCE', `it bridges ${bridge.sendingAssetId}, not ${question.source.id}`)
  const agrees = bridge.hasSourceSwaps === (swaps !== undefined)
  ensure(agrees, 'UNVERIFIABLE', 'it contradicts itself about calls before the bridge')
  const taken = swaps === undefined ? bridge.minAmount : takenBefore(swaps, asset, bridge.minAmount, question)
  ensure(taken === fromAmount, 'WRONG_SOURCE', `it takes ${taken} base units and says ${fromAmount}`)
}

/**
 * Calls before the bridge may only take LI.FI's fee. A swap would be calldata of one of many exchanges, which nobody here can check.
 *
 * @param left - base units that are bridged at least
 * @returns base units that are pulled from the wallet
 */
function takenBefore(swaps: readonly SwapData[], asset: Address, left: bigint, { pins }: LifiQuestion): bigint {
  let [taken, spent] = [0n, 0n]
  for (const swap of swaps) {
    const { callTo, approveTo } = swap
    const isPinned = pins.feeContracts.some((each) => each === callTo) && approveTo === callTo
    ensure(isPinned, 'FOREIGN_CONTRACT', `it calls ${callTo} before the bridge`)
    const fees = decodeTakenFees(swap.callData)
    const isFee = fees?.token === asset && swap.sendingAssetId === asset && swap.receivingAssetId === asset
    ensure(fees !== undefined && isFee, 'UNVERIFIABLE', 'a call before the bridge is not a fee in the source token')
    if (swap.requiresDeposit) taken += swap.fromAmount
    spent += fees.amount
  }
  ensure(taken >= spent + left, 'WRONG_SOURCE', 'its fees leave less than it bridges')
  return taken
}

function checkDestination({ bridge, across }: AcrossDeposit, { request, destination, pins }: LifiQuestion): void {
  const isChain = bridge.destinationChainId === BigInt(request.toChain)
  ensure(isChain, 'WRONG_DESTINATION', `it goes to chain ${bridge.destinationChainId}`)
  const isToken = addressOfWord(across.receivingAssetId) === destination.address
  ensure(isToken, 'WRONG_DESTINATION', `it delivers another token than ${destination.id}`)
  ensure(bridge.hasDestinationCall && across.message !== '0x', 'NO_CALL', 'it makes no call on the destination chain')
  const isDelivered = addressOfWord(across.receiverAddress) === pins.receiver
  ensure(isDelivered, 'WRONG_RECEIVER', `it delivers to ${across.receiverAddress}`)
  // Beside a call the facet only emits it. But one special address would stand for a chain of another family.
  const isKnown = bridge.receiver === request.fromAddress || bridge.receiver === pins.receiver
  ensure(isKnown, 'WRONG_RECEIVER', `it names ${bridge.receiver} as its receiver`)
  const isRefunded = addressOfWord(across.refundAddress) === request.fromAddress
  ensure(isRefunded, 'WRONG_REFUND', 'it refunds what is not delivered to another address')
}

/** With source swaps the facet multiplies their output, which is at least `minAmount`, else it reverts. */
function guaranteedOutput({ bridge, swaps, across }: AcrossDeposit): bigint {
  if (swaps === undefined) return across.outputAmount
  return (bridge.minAmount * across.outputAmountMultiplier) / MULTIPLIER_BASE
}

/** Checks that the receiver makes exactly the payment's call, and sends what is left to the wallet. */
function checkMessage(data: Hex, { request, call, destination }: LifiQuestion, guaranteed: bigint): void {
  const message = decodeReceiverMessage(data)
  ensure(message !== undefined, 'UNVERIFIABLE', 'its message is not of a known form')
  const isFallback = message.receiver === request.fromAddress
  ensure(isFallback, 'WRONG_REFUND', 'it sends what the call leaves to another address')
  const [made, ...more] = message.swaps
  ensure(made !== undefined, 'NO_CALL', 'it makes no call on the destination chain')
  ensure(more.length === 0, 'WRONG_CALL', `it makes ${message.swaps.length} calls on the destination chain`)
  const goesTo = made.callTo === call.toContractAddress && made.approveTo === call.toContractAddress
  ensure(goesTo, 'WRONG_CALL', `it calls ${made.callTo} and allows ${made.approveTo}`)
  const isToken = [made.sendingAssetId, made.receivingAssetId].every((asset) => asset === destination.address)
  ensure(isToken, 'WRONG_CALL', `its call is not for ${destination.id}`)
  const isEnough = made.fromAmount >= BigInt(call.fromAmount) && made.fromAmount <= guaranteed
  ensure(isEnough, 'WRONG_CALL', `its call has ${made.fromAmount} of ${call.fromAmount}`)
  ensure(made.callData === call.toContractCallData, 'WRONG_CALL', 'its call is not the payment’s')
}

function checkTimes(across: AcrossData, nowSec: number): void {
  const { quoteTimestamp, fillDeadline, exclusivityParameter } = across
  const age = Math.abs(nowSec - quoteTimestamp)
  ensure(age <= MAX_QUOTE_AGE_SECONDS, 'WRONG_TIMES', `it was quoted at ${quoteTimestamp}`)
  const fillSeconds = fillDeadline - nowSec
  const isInTime = fillSeconds > 0 && fillSeconds <= MAX_FILL_SECONDS
  ensure(isInTime, 'WRONG_TIMES', `it may be delivered until ${fillDeadline}`)
  const isOffset = exclusivityParameter < ACROSS_LONGEST_OFFSET_SECONDS
  const aloneSeconds = isOffset ? exclusivityParameter : exclusivityParameter - nowSec
  const isShort = aloneSeconds <= MAX_EXCLUSIVITY_SECONDS
  ensure(isShort, 'WRONG_TIMES', `one relayer alone may deliver for ${aloneSeconds} s`)
}
