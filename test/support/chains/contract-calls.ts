/** Calls and reads of a demo chain's contracts that the demo itself never makes. */
import {
  type Address,
  concatHex,
  decodeFunctionResult,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  numberToHex,
  parseAbi,
  size,
} from 'viem'
import type { DemoPayment } from '../../../demo/history/planned-payment.ts'
import type { ChainClient } from '../../../demo/network/chain-client.ts'
import type { ContractCall } from '../../../demo/network/demo-contracts.ts'
import { type Deployed, USD_HASH } from '../../../demo/network/deployment.ts'

const BATCH_ABI = parseAbi([
  'struct Call { address target; uint256 value; bytes data; }',
  'function run(Call[] calls) payable',
])
const CONVERSION_ABI = parseAbi([
  'function getConversion(uint256 amountIn, address[] path) view returns (uint256 result, uint256 oldestRateTimestamp)',
])

export function encodeTransfer(token: Address, to: Address, value: bigint): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, value] }) }
}

export function encodeAllowance(token: Address, owner: Address, spender: Address): ContractCall {
  return { to: token, data: encodeFunctionData({ abi: erc20Abi, functionName: 'allowance', args: [owner, spender] }) }
}

/** Several calls in one transaction of a PaymentBatch contract, which spends its own balance. */
export function encodeBatch(batch: Address, calls: readonly ContractCall[]): ContractCall {
  const list = calls.map((call) => ({ target: call.to, value: call.value ?? 0n, data: call.data }))
  const value = list.reduce((sum, call) => sum + call.value, 0n)
  return { to: batch, data: encodeFunctionData({ abi: BATCH_ABI, functionName: 'run', args: [list] }), value }
}

/** The contract that the payer must allow to pull tokens; undefined where the chain's native coin is paid. */
export function spenderOf(deployed: Deployed, payment: DemoPayment): { token: Address; spender: Address } | undefined {
  switch (payment.kind) {
    case 'ERC20':
      return { token: payment.token, spender: payment.proxy ?? deployed.contracts.erc20FeeProxy }
    case 'ERC20_CONVERSION':
      return { token: payment.token, spender: deployed.contracts.erc20ConversionProxy }
    case 'NATIVE':
    case 'NATIVE_CONVERSION':
      return undefined
  }
}

/**
 * Converts by the feeds' present rate.
 *
 * @param amount - of a fiat currency, with 8 decimals
 * @returns base units of the token or coin
 */
export async function convertFiat(
  client: ChainClient,
  deployed: Deployed,
  { amount, into, currencyHash = USD_HASH }: { amount: bigint; into: Address; currencyHash?: Address },
): Promise<bigint> {
  const args = [amount, [currencyHash, into]] as const
  const call = encodeFunctionData({ abi: CONVERSION_ABI, functionName: 'getConversion', args })
  const data = await client.read({ to: deployed.contracts.conversionPath, data: call })
  const [result] = decodeFunctionResult({ abi: CONVERSION_ABI, functionName: 'getConversion', data })
  return result
}

/** Code that makes one call, whoever calls it. */
export function callingCode({ to, data, value = 0n }: ContractCall): Hex {
  const length = numberToHex(size(data), { size: 2 })
  const body = concatHex(['0x6000600061', length, '0x60007f', numberToHex(value, { size: 32 }), '0x73', to, '0x5af100'])
  const offset = numberToHex(size(body) + 9, { size: 2 })
  return concatHex(['0x61', length, '0x61', offset, '0x600039', body, data])
}
