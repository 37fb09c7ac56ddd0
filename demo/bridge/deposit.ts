/**
 * The two contracts of the demo's bridge: the escrow takes deposits on one chain, the executor delivers on another. Both take the same input
 * as LI.FI's: the escrow the calldata of AcrossFacetV4, the executor the message of ReceiverAcrossV4.
 */
import type { Address, Hex } from 'viem'
import { decodeEventLog, encodeFunctionData, parseAbi } from 'viem/utils'
import {
  ACROSS_DATA,
  type AcrossData,
  addressOfWord,
  decodeReceiverMessage,
  type EvmAddress,
  encodeAcrossDeposit,
  encodeReceiverMessage,
} from '../../src/contracts/lifi-calldata.ts'
import { type ContractCall, ZERO_ADDRESS } from '../network/demo-contracts.ts'

/** A deposit, as the relayer quoted it. Amounts in base units. */
export interface Deposit {
  /** Makes every quote unique. */
  transactionId: Hex
  /** The zero address is the native coin. */
  token: Address
  amount: bigint
  toChainId: bigint
  /**
   * The refund address (the payer), what is delivered, until when, and the message with the call. By block times, a deposit is possible for
   * a minute after `quoteTimestamp`, and is refunded an hour after `fillDeadline` at the earliest.
   */
  across: AcrossData
}

/** Seconds after the delivery deadline until the escrow refunds a deposit. */
const RETURN_AFTER_SEC = 3_600

const DEPOSIT =
  'struct Deposit { bytes32 transactionId; address token; uint256 amount; uint256 toChainId; AcrossV4Data across; }'
const FUNCTIONS = parseAbi([
  ACROSS_DATA,
  DEPOSIT,
  'function giveBack(Deposit d)',
  'function deliver(bytes32 id, uint256 until, address token, uint256 amount, bytes message)',
])
const EVENTS = parseAbi([
  ACROSS_DATA,
  DEPOSIT,
  'event Deposited(bytes32 indexed id, Deposit deposit)',
  'event Returned(bytes32 indexed id)',
  'event Delivered(address indexed relayer, bytes32 indexed id, bool isPaid)',
])

export function encodeDeposit(escrow: Address, deposit: Deposit): ContractCall {
  const { transactionId, token, amount, toChainId, across } = deposit
  const bridge = {
    transactionId,
    bridge: 'across',
    integrator: '',
    referrer: ZERO_ADDRESS as EvmAddress,
    sendingAssetId: token as EvmAddress,
    receiver: payerOf(deposit) as EvmAddress,
    minAmount: amount,
    destinationChainId: toChainId,
    hasSourceSwaps: false,
    hasDestinationCall: true,
  }
  return { to: escrow, data: encodeAcrossDeposit({ bridge, across }), value: isCoin(token) ? amount : 0n }
}

export function encodeGiveBack(escrow: Address, deposit: Deposit): ContractCall {
  return { to: escrow, data: encodeFunctionData({ abi: FUNCTIONS, functionName: 'giveBack', args: [deposit] }) }
}

export function encodeDelivery(executor: Address, id: Hex, deposit: Deposit): ContractCall {
  const { fillDeadline, receivingAssetId, outputAmount, message } = deposit.across
  const args = [id, BigInt(fillDeadline), addressIn(receivingAssetId), outputAmount, message] as const
  return { to: executor, data: encodeFunctionData({ abi: FUNCTIONS, functionName: 'deliver', args }) }
}

/** The same deposit, whose delivery makes no payment: its tokens go to the payer. */
export function withoutCall(deposit: Deposit): Deposit {
  const message = decodeReceiverMessage(deposit.across.message)
  if (message === undefined) return deposit
  return { ...deposit, across: { ...deposit.across, message: encodeReceiverMessage({ ...message, swaps: [] }) } }
}

/** The first Unix time, in seconds, at which the escrow refunds the deposit. */
export function returnFrom({ across }: Deposit): number {
  return across.fillDeadline + RETURN_AFTER_SEC
}

/** The words of quotes are addresses. */
const addressIn = (word: Hex): Address => addressOfWord(word) ?? ZERO_ADDRESS

export const payerOf = ({ across }: Deposit): Address => addressIn(across.refundAddress)

/** A decoded log of one of the two contracts. */
export type BridgeEvent =
  | { kind: 'DEPOSITED'; id: Hex; deposit: Deposit }
  | { kind: 'RETURNED'; id: Hex }
  | { kind: 'DELIVERED'; id: Hex; relayer: Address; isPaid: boolean }

export function decodeBridgeLog({ topics, data }: { topics: readonly Hex[]; data: Hex }): BridgeEvent {
  const event = decodeEventLog({ abi: EVENTS, data, topics: topics as [Hex, ...Hex[]] })
  switch (event.eventName) {
    case 'Deposited':
      return { kind: 'DEPOSITED', ...event.args }
    case 'Returned':
      return { kind: 'RETURNED', ...event.args }
    case 'Delivered':
      return { kind: 'DELIVERED', ...event.args }
  }
}

export function isCoin(token: Address): boolean {
  return BigInt(token) === 0n
}
