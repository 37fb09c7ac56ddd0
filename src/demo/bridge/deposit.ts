/** The two contracts of the demo's bridge: what is given into the escrow of one chain is delivered by the executor of another. */
import {
  type Address,
  decodeEventLog,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseAbi,
  parseAbiParameters,
  parseSignature,
} from 'viem'
import type { ContractCall } from '../contracts.ts'

/** What the relayer has quoted and signed. Amounts in base units, times in seconds since 1970. */
export interface Deposit {
  payer: Address
  /** The zero address is the chain's coin. */
  token: Address
  amount: bigint
  /** Block times: not paid in later, not delivered later, not given back before. */
  payUntil: bigint
  deliverUntil: bigint
  returnFrom: bigint
  toChainId: bigint
  toToken: Address
  toAmount: bigint
  /** Called there with `toAmount` at hand. */
  target: Address
  call: Hex
  /** Who has what the call leaves. */
  fallbackTo: Address
  /** No two quotes are alike. */
  serial: bigint
}

const DEPOSIT =
  'struct Deposit { address payer; address token; uint256 amount; uint256 payUntil; uint256 deliverUntil; uint256 returnFrom; uint256 toChainId; address toToken; uint256 toAmount; address target; bytes call; address fallbackTo; uint256 serial; }'
const IDENTITY = parseAbiParameters(['uint256 chainId, address escrow, Deposit deposit', DEPOSIT])
const FUNCTIONS = parseAbi([
  DEPOSIT,
  'function deposit(Deposit d, uint8 v, bytes32 r, bytes32 s) payable',
  'function take(Deposit d)',
  'function giveBack(Deposit d)',
  'function deliver(bytes32 id, uint256 until, address token, uint256 amount, bytes call, address fallbackTo)',
])
const EVENTS = parseAbi([
  DEPOSIT,
  'event Deposited(bytes32 indexed id, Deposit deposit)',
  'event Taken(bytes32 indexed id)',
  'event Returned(bytes32 indexed id)',
  'event Delivered(address indexed relayer, bytes32 indexed id, bool isPaid)',
])

/** How a deposit is known on every chain: the same as the escrow's `idOf`. */
export function idOfDeposit(chainId: number, escrow: Address, deposit: Deposit): Hex {
  return keccak256(encodeAbiParameters(IDENTITY, [BigInt(chainId), escrow, deposit]))
}

/** @param signature - the relayer's, of the id, as `eth_sign` makes it */
export function encodeDeposit(escrow: Address, deposit: Deposit, signature: Hex): ContractCall {
  const { v, r, s, yParity } = parseSignature(signature)
  const args = [deposit, Number(v ?? BigInt(yParity) + 27n), r, s] as const
  const data = encodeFunctionData({ abi: FUNCTIONS, functionName: 'deposit', args })
  return { to: escrow, data, value: isCoin(deposit.token) ? deposit.amount : 0n }
}

export function encodeTake(escrow: Address, deposit: Deposit): ContractCall {
  return { to: escrow, data: encodeFunctionData({ abi: FUNCTIONS, functionName: 'take', args: [deposit] }) }
}

export function encodeGiveBack(escrow: Address, deposit: Deposit): ContractCall {
  return { to: escrow, data: encodeFunctionData({ abi: FUNCTIONS, functionName: 'giveBack', args: [deposit] }) }
}

export function encodeDelivery(executor: Address, id: Hex, deposit: Deposit): ContractCall {
  const { deliverUntil, toToken, toAmount, call, fallbackTo } = deposit
  const args = [id, deliverUntil, toToken, toAmount, call, fallbackTo] as const
  return { to: executor, data: encodeFunctionData({ abi: FUNCTIONS, functionName: 'deliver', args }) }
}

/** What a log of the two contracts says. */
export type BridgeEvent =
  | { kind: 'DEPOSITED'; id: Hex; deposit: Deposit }
  | { kind: 'TAKEN' | 'RETURNED'; id: Hex }
  | { kind: 'DELIVERED'; id: Hex; relayer: Address; isPaid: boolean }

export function decodeBridgeLog({ topics, data }: { topics: readonly Hex[]; data: Hex }): BridgeEvent {
  const event = decodeEventLog({ abi: EVENTS, data, topics: topics as [Hex, ...Hex[]] })
  switch (event.eventName) {
    case 'Deposited':
      return { kind: 'DEPOSITED', ...event.args }
    case 'Taken':
      return { kind: 'TAKEN', ...event.args }
    case 'Returned':
      return { kind: 'RETURNED', ...event.args }
    case 'Delivered':
      return { kind: 'DELIVERED', ...event.args }
  }
}

export function isCoin(token: Address): boolean {
  return BigInt(token) === 0n
}
