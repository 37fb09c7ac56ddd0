import type { Abi, ContractFunctionArgs } from 'viem'
import { decodeAbiParameters, decodeFunctionData, parseAbi, parseAbiParameters } from 'viem/utils'
import type { Address } from '../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../domain/hex.ts'
import { topicOfReference } from '../domain/identifiers.ts'
import { BATCH, NATIVE_CONVERSION_PROXY, NATIVE_FEE_PROXY } from './payment-calls.ts'

/** A call, as far as payments in native coins need it. `value` in wei. */
export interface Call {
  readonly caller: Address
  readonly to: Address
  readonly value: bigint
  readonly input: Hex
}

/** A payment event as the call that causes it describes it. What the call does not say is absent. */
export interface CalledPayment {
  readonly to: Address
  readonly topic: Hex
  readonly feeAddress: Address
  /** In wei. Absent for conversions: only the chain knows their rate. */
  readonly paid?: { readonly amount: bigint; readonly feeAmount: bigint }
  /** Of conversions alone, in the invoice currency. */
  readonly invoiced?: { readonly amount: bigint; readonly feeAmount: bigint }
}

const SAFE = parseAbi([
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures)',
])
const MULTI_SEND = parseAbi(['function multiSend(bytes transactions)'])
const ACCOUNT = parseAbi([
  'struct Execution { address target; uint256 value; bytes data; }',
  'function execute(address target, uint256 value, bytes data)',
  'function executeBatch(Execution[] calls)',
  'function executeBatch(address[] targets, uint256[] values, bytes[] data)',
  'function execute(bytes32 mode, bytes executionData)',
])
const EXECUTIONS = parseAbiParameters('(address target, uint256 value, bytes data)[]')

const lower = (address: string) => address.toLowerCase() as Address

/** @returns undefined for other functions and for malformed data, which is no error: anybody can write calldata */
function decode<const A extends Abi>(abi: A, data: Hex) {
  try {
    return decodeFunctionData({ abi, data })
  } catch {
    return undefined
  }
}

/**
 * Decodes the call of a native-coin proxy that emits its event: of EthereumFeeProxy itself, or of its code that EthConversionProxy runs.
 *
 * @param value - wei sent with the call
 */
export function decodeFeeProxyCall(input: Hex, value: bigint): CalledPayment | undefined {
  const call = decode(NATIVE_FEE_PROXY, input)
  if (call === undefined) return undefined
  if (call.functionName === 'transferExactEthWithReferenceAndFee') {
    const [to, amount, reference, feeAmount, feeAddress] = call.args
    return { ...calledPayment({ to, reference, feeAddress }), paid: { amount, feeAmount } }
  }
  const [to, reference, feeAmount, feeAddress] = call.args
  return { ...calledPayment({ to, reference, feeAddress }), paid: { amount: value - feeAmount, feeAmount } }
}

function calledPayment({ to, reference, feeAddress }: Readonly<Record<'to' | 'reference' | 'feeAddress', Hex>>) {
  return { to: lower(to), topic: topicOfReference(reference), feeAddress: lower(feeAddress) }
}

/** Decodes a call of any native-coin proxy, conversions included. */
export function decodeProxyCall(input: Hex, value: bigint): CalledPayment | undefined {
  const conversion = decode(NATIVE_CONVERSION_PROXY, input)
  if (conversion === undefined) return decodeFeeProxyCall(input, value)
  const [to, amount, , reference, feeAmount, feeAddress] = conversion.args
  return { ...calledPayment({ to, reference, feeAddress }), invoiced: { amount, feeAmount } }
}

/** Decodes a call of one of Request's batch contracts. @returns its payments in native coins, in order; none for other calls */
export function decodeBatchCall(input: Hex): CalledPayment[] {
  const call = decode(BATCH, input)
  if (call === undefined) return []
  switch (call.functionName) {
    case 'batchEthPaymentsWithReference': {
      const [recipients, amounts, references, fees, feeAddress] = call.args
      return recipients.map((to, index) => ({
        ...calledPayment({ to, reference: references[index] ?? '0x', feeAddress }),
        paid: { amount: amounts[index] ?? 0n, feeAmount: fees[index] ?? 0n },
      }))
    }
    case 'batchNativePayments':
      return call.args[0].map((detail) => fromDetail(detail, call.args[2], 'paid'))
    case 'batchNativeConversionPayments':
      return call.args[0].map((detail) => fromDetail(detail, call.args[2], 'invoiced'))
    case 'batchPayments':
      return call.args[0].flatMap(({ paymentNetworkId, requestDetails }) => {
        const kind = NATIVE_NETWORKS.get(paymentNetworkId)
        return kind === undefined ? [] : requestDetails.map((detail) => fromDetail(detail, call.args[2], kind))
      })
    case 'batchERC20Payments':
    case 'batchERC20PaymentsWithReference':
      return []
  }
}

/** The payment networks of native coins, by BatchConversionPayments' numbers. */
const NATIVE_NETWORKS: ReadonlyMap<bigint, 'paid' | 'invoiced'> = new Map([
  [3n, 'paid'],
  [4n, 'invoiced'],
])

type RequestDetail = ContractFunctionArgs<typeof BATCH, 'nonpayable', 'batchNativePayments'>[0][number]

function fromDetail(detail: RequestDetail, feeAddress: Hex, kind: 'paid' | 'invoiced'): CalledPayment {
  const { recipient: to, paymentReference: reference, requestAmount: amount, feeAmount } = detail
  const amounts = { amount, feeAmount }
  const called = calledPayment({ to, reference, feeAddress })
  return kind === 'paid' ? { ...called, paid: amounts } : { ...called, invoiced: amounts }
}

/**
 * Decodes the calls that a contract account makes: by a Safe's `execTransaction`, alone or with MultiSend, or by an account that calls
 * itself (EIP-7702).
 *
 * @param call - the transaction's own call
 * @returns the account's calls in order; undefined for other calls, or where not all of them can be decoded
 */
export function decodeAccountCall(call: Call): Call[] | undefined {
  return call.caller === call.to ? decodeSelfCall(call) : decodeSafeCall(call)
}

const DELEGATE_CALL = 1

function decodeSafeCall({ to: safe, input }: Call): Call[] | undefined {
  const call = decode(SAFE, input)
  if (call === undefined) return undefined
  const [to, value, data, operation] = call.args
  if (operation !== DELEGATE_CALL) return [{ caller: safe, to: lower(to), value, input: data }]
  const inner = decode(MULTI_SEND, data)
  return inner && unpackMultiSend(safe, inner.args[0])
}

/** One call after the other: 1 byte operation, 20 address, 32 value, 32 length, then the data. */
function unpackMultiSend(safe: Address, packed: Hex): Call[] | undefined {
  const bytes = hexToBytes(packed)
  const calls: Call[] = []
  for (let at = 0; at < bytes.length; ) {
    const head = bytes.subarray(at, at + 85)
    const length = head.length < 85 ? 0n : BigInt(bytesToHex(head.subarray(53)))
    const end = at + 85 + Number(length)
    if (head.length < 85 || end > bytes.length || head[0] === DELEGATE_CALL) return undefined
    calls.push({
      caller: safe,
      to: bytesToHex(head.subarray(1, 21)) as string as Address,
      value: BigInt(bytesToHex(head.subarray(21, 53))),
      input: bytesToHex(bytes.subarray(at + 85, end)),
    })
    at = end
  }
  return calls
}

function decodeSelfCall({ to: account, input }: Call): Call[] | undefined {
  const call = decode(ACCOUNT, input)
  if (call === undefined) return undefined
  const { args } = call
  if (args.length === 1) return args[0].map((each) => toCall(account, each))
  if (args.length === 2) return decodeMode(account, args[0], args[1])
  const [targets, values, data] = args
  if (typeof targets === 'string') {
    return [toCall(account, { target: targets, value: values, data })]
  }
  return targets.map((target, i) => toCall(account, { target, value: values[i] ?? 0n, data: data[i] ?? '0x' }))
}

interface Execution {
  readonly target: string
  readonly value: bigint
  readonly data: Hex
}

function toCall(caller: Address, { target, value, data }: Execution): Call {
  return { caller, to: lower(target), value, input: data }
}

/**
 * ERC-7579 and ERC-7821: the first byte of the mode tells one call from several, the second whether failures are tolerated. Only where a
 * failure reverts all calls is it certain that every call was made.
 */
function decodeMode(account: Address, mode: Hex, data: Hex): Call[] | undefined {
  const kind = mode.slice(2, 6)
  if (kind === '0000') {
    const bytes = hexToBytes(data)
    if (bytes.length < 52) return undefined
    const value = BigInt(bytesToHex(bytes.subarray(20, 52)))
    const target = bytesToHex(bytes.subarray(0, 20))
    return [toCall(account, { target, value, data: bytesToHex(bytes.subarray(52)) })]
  }
  // Only the plain form, whose data is nothing but the list.
  if (kind !== '0100' || mode.slice(14, 22) !== '00000000') return undefined
  try {
    return decodeAbiParameters(EXECUTIONS, data)[0].map((each) => toCall(account, each))
  } catch {
    return undefined
  }
}
