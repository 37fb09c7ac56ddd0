/** Quotes that misreport where the money goes, each with the check that it fails. */
import { encodeAbiParameters, encodeFunctionData, erc20Abi, parseAbiParameters, zeroAddress } from 'viem'
import {
  type AcrossData,
  type AcrossDeposit,
  type BridgeData,
  decodeAcrossDeposit,
  decodeReceiverMessage,
  type EvmAddress,
  encodeAcrossDeposit,
  encodeForwardedFee,
  encodeReceiverMessage,
  type ReceiverMessage,
  type SwapData,
  wordOfAddress,
} from '../../src/contracts/lifi-calldata.ts'
import type { QuoteCheck } from '../../src/routing/providers/lifi/lifi-question.ts'
import type { LifiAnswer, LifiTerms } from '../support/lifi-server.ts'
import { freshAddress } from '../support/routing.ts'

export interface Lie {
  readonly name: string
  readonly check: QuoteCheck
  readonly tell: (answer: LifiAnswer) => LifiAnswer
  /** The amount that the honest quote takes, where the lie depends on it. */
  readonly terms?: LifiTerms
  /** The payment's amount in USDC; default 100. */
  readonly amount?: string
}

const ATTACKER = freshAddress('attacker')
const ATTACKER_WORD = wordOfAddress(ATTACKER)
/** With LI.FI's fee the deposit makes a call before the bridge. */
const WITH_FEE: LifiTerms = { protocolFee: 2_500n }

type Data = `0x${string}`

const inTransaction =
  (more: object) =>
  (answer: LifiAnswer): LifiAnswer => ({ ...answer, transactionRequest: { ...answer.transactionRequest, ...more } })

const dataOf = ({ transactionRequest }: LifiAnswer) => transactionRequest.data as Data
const withData = (change: (data: Data, answer: LifiAnswer) => Data) => (answer: LifiAnswer) =>
  inTransaction({ data: change(dataOf(answer), answer) })(answer)

function depositIn(data: Data): AcrossDeposit {
  const deposit = decodeAcrossDeposit(data)
  if (deposit === undefined) throw new TypeError('the honest deposit cannot be read')
  return deposit
}

const inDeposit = (change: (deposit: AcrossDeposit) => AcrossDeposit) =>
  withData((data) => encodeAcrossDeposit(change(depositIn(data))))
const inBridge = (more: Partial<BridgeData>) =>
  inDeposit((deposit) => ({ ...deposit, bridge: { ...deposit.bridge, ...more } }))
const inAcross = (more: Partial<AcrossData>) =>
  inDeposit((deposit) => ({ ...deposit, across: { ...deposit.across, ...more } }))
const inMessage = (change: (message: ReceiverMessage) => Partial<ReceiverMessage>) =>
  inDeposit((deposit) => {
    const message = decodeReceiverMessage(deposit.across.message)
    if (message === undefined) throw new TypeError('the honest message cannot be read')
    const changed = encodeReceiverMessage({ ...message, ...change(message) })
    return { ...deposit, across: { ...deposit.across, message: changed } }
  })
const inCall = (change: Partial<SwapData> | ((call: SwapData) => Partial<SwapData>)) =>
  inMessage(({ swaps }) => ({
    swaps: swaps.map((call) => ({ ...call, ...(typeof change === 'function' ? change(call) : change) })),
  }))
const inFee = (change: (swap: SwapData) => Partial<SwapData>) =>
  inDeposit((deposit) => ({ ...deposit, swaps: (deposit.swaps ?? []).map((swap) => ({ ...swap, ...change(swap) })) }))
const inTimes = (change: (nowSec: number) => Partial<AcrossData>) =>
  inDeposit(({ across, ...rest }) => ({ ...rest, across: { ...across, ...change(across.quoteTimestamp) } }))

/** A plain transfer to the named receiver, without a call. */
const transferTo = (receiver: EvmAddress) =>
  inDeposit(({ bridge, across }) => ({
    bridge: { ...bridge, receiver, hasDestinationCall: false },
    across: { ...across, receiverAddress: wordOfAddress(receiver), message: '0x' },
  }))

const AS_BYTES = parseAbiParameters([
  'BridgeData bridge, AcrossV4Data across',
  'struct BridgeData { bytes32 transactionId; string bridge; bytes integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct AcrossV4Data { bytes32 receiverAddress; bytes32 refundAddress; bytes32 sendingAssetId; bytes32 receivingAssetId; uint256 outputAmount; uint128 outputAmountMultiplier; bytes32 exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityParameter; bytes message; }',
])

/** A transfer to the attacker, with the bytes of the payment's call in a text that nobody reads. */
function withBytesInText(data: Data, answer: LifiAnswer): Data {
  const { bridge, across } = depositIn(dataOf(transferTo(ATTACKER)(answer)))
  const call = decodeReceiverMessage(depositIn(data).across.message)?.swaps[0]?.callData ?? '0x'
  const args = encodeAbiParameters(AS_BYTES, [{ ...bridge, integrator: call }, across])
  return `${data.slice(0, 10)}${args.slice(2)}` as Data
}

const SELECTOR_DIGITS = 10
const WORD_DIGITS = 64
const EMPTY_WORD = '0'.repeat(WORD_DIGITS)

/** The same values, with a gap between the two structs. */
function withGap(data: Data): Data {
  const [selector, args] = [data.slice(0, SELECTOR_DIGITS), data.slice(SELECTOR_DIGITS)]
  const first = args.slice(0, WORD_DIGITS)
  const second = BigInt(`0x${args.slice(WORD_DIGITS, 2 * WORD_DIGITS)}`)
  const at = Number(second) * 2
  const moved = (second + 32n).toString(16).padStart(WORD_DIGITS, '0')
  return `${selector}${first}${moved}${args.slice(2 * WORD_DIGITS, at)}${EMPTY_WORD}${args.slice(at)}` as Data
}

const stolen = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [ATTACKER, 100_000_000n] })
const HOUR_SEC = 3_600

export const LIES: readonly Lie[] = [
  { name: 'a foreign contract', check: 'FOREIGN_CONTRACT', tell: inTransaction({ to: ATTACKER }) },
  {
    name: 'a foreign spender',
    check: 'FOREIGN_SPENDER',
    tell: (answer) => ({ ...answer, estimate: { ...answer.estimate, approvalAddress: ATTACKER } }),
  },
  { name: 'a missing call', check: 'NO_CALL', tell: transferTo(ATTACKER) },
  {
    name: 'a message without calls',
    check: 'NO_CALL',
    tell: inMessage(() => ({ swaps: [] })),
  },
  {
    name: 'our bytes in an unused string',
    check: 'UNVERIFIABLE',
    tell: (answer) => ({ ...withData(withBytesInText)(answer), includedSteps: [] }),
  },
  {
    name: 'another receiver',
    check: 'WRONG_RECEIVER',
    tell: inAcross({ receiverAddress: ATTACKER_WORD }),
  },
  {
    name: 'the address that stands for other families of chains',
    check: 'WRONG_RECEIVER',
    tell: inBridge({ receiver: `0x${'1'.repeat(40)}` as EvmAddress }),
  },
  {
    name: 'a receiver with more than an address',
    check: 'WRONG_RECEIVER',
    tell: inDeposit(({ across, ...rest }) => {
      const receiverAddress = `0x1${across.receiverAddress.slice(3)}` as Data
      return { ...rest, across: { ...across, receiverAddress } }
    }),
  },
  { name: 'a guaranteed output of 1', check: 'OUTPUT_TOO_LOW', tell: inAcross({ outputAmount: 1n }) },
  {
    name: 'an output that follows from what fees leave',
    check: 'OUTPUT_TOO_LOW',
    tell: inAcross({ outputAmountMultiplier: 1n }),
    terms: WITH_FEE,
  },
  {
    name: 'a refund address of its own',
    check: 'WRONG_REFUND',
    tell: inAcross({ refundAddress: ATTACKER_WORD }),
  },
  { name: 'another fallback', check: 'WRONG_REFUND', tell: inMessage(() => ({ receiver: ATTACKER })) },
  {
    name: 'a declared fee of 9 % of 1,000 USD',
    check: 'COST_TOO_HIGH',
    tell: (answer) => answer,
    terms: { bridgeFee: 90_000n },
    amount: '1000',
  },
  {
    name: 'a loss of 11 % that nothing declares',
    check: 'COST_TOO_HIGH',
    tell: (answer) => answer,
    terms: { impact: 110_000n },
    amount: '900',
  },
  {
    name: 'a loss of 144 USD that a surplus makes routing for',
    check: 'COST_TOO_HIGH',
    tell: (answer) => answer,
    terms: { impact: 90_000n, surplus: 1_500_000_000n },
  },
  {
    name: 'a value of 10 ETH',
    check: 'WRONG_VALUE',
    tell: inTransaction({ value: `0x${(10n ** 19n).toString(16)}` }),
  },
  {
    name: 'another destination chain',
    check: 'WRONG_DESTINATION',
    tell: inBridge({ destinationChainId: 10n }),
  },
  {
    name: 'another token on the destination chain',
    check: 'WRONG_DESTINATION',
    tell: inAcross({ receivingAssetId: ATTACKER_WORD }),
  },
  {
    name: 'a second call',
    check: 'WRONG_CALL',
    tell: inMessage(({ swaps }) => ({ swaps: [...swaps, ...swaps] })),
  },
  { name: 'another contract in the call', check: 'WRONG_CALL', tell: inCall({ callTo: ATTACKER }) },
  { name: 'another spender in the call', check: 'WRONG_CALL', tell: inCall({ approveTo: ATTACKER }) },
  { name: 'another token in the call', check: 'WRONG_CALL', tell: inCall({ sendingAssetId: ATTACKER }) },
  {
    name: 'another token that the call returns',
    check: 'WRONG_CALL',
    tell: inCall({ receivingAssetId: zeroAddress }),
  },
  { name: 'other call data', check: 'WRONG_CALL', tell: inCall({ callData: stolen }) },
  {
    name: 'the call data and something after it',
    check: 'WRONG_CALL',
    tell: inCall(({ callData }) => ({ callData: `${callData}00` as Data })),
  },
  { name: 'no amount for the call', check: 'WRONG_CALL', tell: inCall({ fromAmount: 0n }) },
  {
    name: 'trailing bytes',
    check: 'UNVERIFIABLE',
    tell: withData((data) => `${data}${EMPTY_WORD}` as Data),
  },
  {
    name: 'trailing bytes in the message',
    check: 'UNVERIFIABLE',
    tell: inDeposit(({ across, ...rest }) => {
      const message = `${across.message}${EMPTY_WORD}` as Data
      return { ...rest, across: { ...across, message } }
    }),
  },
  { name: 'offsets with a gap', check: 'UNVERIFIABLE', tell: withData(withGap) },
  {
    name: 'a function that is not known',
    check: 'UNVERIFIABLE',
    tell: withData((data) => `0x01020304${data.slice(SELECTOR_DIGITS)}` as Data),
  },
  {
    name: 'a flag that says something else than the function',
    check: 'UNVERIFIABLE',
    tell: inBridge({ hasSourceSwaps: true }),
  },
  { name: 'another source token', check: 'WRONG_SOURCE', tell: inBridge({ sendingAssetId: ATTACKER }) },
  {
    name: 'another token given to the bridge',
    check: 'WRONG_SOURCE',
    tell: inAcross({ sendingAssetId: ATTACKER_WORD }),
  },
  {
    name: 'more taken than quoted',
    check: 'WRONG_SOURCE',
    tell: inDeposit(({ bridge, ...rest }) => ({ ...rest, bridge: { ...bridge, minAmount: bridge.minAmount * 5n } })),
  },
  {
    name: 'more pulled for a fee than quoted',
    check: 'WRONG_SOURCE',
    tell: inFee(({ fromAmount }) => ({ fromAmount: fromAmount * 5n })),
    terms: WITH_FEE,
  },
  {
    name: 'a foreign contract before the bridge',
    check: 'FOREIGN_CONTRACT',
    tell: inFee(() => ({ callTo: ATTACKER, approveTo: ATTACKER })),
    terms: WITH_FEE,
  },
  {
    name: 'a foreign spender before the bridge',
    check: 'FOREIGN_CONTRACT',
    tell: inFee(() => ({ approveTo: ATTACKER })),
    terms: WITH_FEE,
  },
  {
    name: 'a call before the bridge that is not a fee',
    check: 'UNVERIFIABLE',
    tell: inFee(() => ({ callData: stolen })),
    terms: WITH_FEE,
  },
  {
    name: 'a fee in another token that the wallet has allowed',
    check: 'UNVERIFIABLE',
    tell: inFee(() => ({
      sendingAssetId: ATTACKER,
      receivingAssetId: ATTACKER,
      callData: encodeForwardedFee({ token: ATTACKER, amount: 1n }, ATTACKER),
    })),
    terms: WITH_FEE,
  },
  {
    name: 'a fee of more than is pulled',
    check: 'WRONG_SOURCE',
    tell: inFee(({ sendingAssetId, fromAmount }) => ({
      callData: encodeForwardedFee({ token: sendingAssetId, amount: fromAmount }, ATTACKER),
    })),
    terms: WITH_FEE,
  },
  {
    name: 'a delivery in a month',
    check: 'WRONG_TIMES',
    tell: inTimes((nowSec) => ({ fillDeadline: nowSec + 30 * 24 * HOUR_SEC })),
  },
  {
    name: 'a delivery until yesterday',
    check: 'WRONG_TIMES',
    tell: inTimes((nowSec) => ({ fillDeadline: nowSec - 24 * HOUR_SEC })),
  },
  {
    name: 'a relayer that alone may deliver for an hour',
    check: 'WRONG_TIMES',
    tell: inTimes(() => ({ exclusiveRelayer: ATTACKER_WORD, exclusivityParameter: HOUR_SEC })),
  },
  {
    name: 'a relayer that alone may deliver until a time in an hour',
    check: 'WRONG_TIMES',
    tell: inTimes((nowSec) => ({ exclusiveRelayer: ATTACKER_WORD, exclusivityParameter: nowSec + HOUR_SEC })),
  },
  {
    name: 'a quote of yesterday',
    check: 'WRONG_TIMES',
    tell: inTimes((nowSec) => ({ quoteTimestamp: nowSec - 24 * HOUR_SEC })),
  },
]
