import { encodeFunctionData, erc20Abi } from 'viem'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { Hex } from '../../domain/hex.ts'
import { approveGas, approveResetGas } from '../quotes/gas.ts'
import type { Step } from '../quotes/steps.ts'

/** Who may pull how much of which token. */
export interface Approval {
  readonly token: Token & { readonly address: Address }
  /** The contract that pulls. */
  readonly spender: Address
  /** What it may pull now, base units. */
  readonly allowance: bigint
  /** The most that it is to pull. */
  readonly need: bigint
}

/**
 * The transactions that let a contract pull exactly what is needed; none where it already may. Tokens that demand it are reset
 * to 0 first.
 */
export function approvalSteps({ token, spender, allowance, need }: Approval): Step[] {
  if (allowance >= need) return []
  const approve = (kind: Step['kind'], amount: bigint, gasLimit: bigint): Step => ({
    kind,
    gasLimit,
    effect: { kind: 'ALLOWANCE', token: token.address, spender, amount },
    transaction: () => ({ to: token.address, data: encodeApprove(spender, amount), value: 0n }),
  })
  if (token.approveReset && allowance > 0n) {
    return [approve('APPROVE_RESET', 0n, approveResetGas()), approve('APPROVE', need, approveGas({ fromZero: true }))]
  }
  return [approve('APPROVE', need, approveGas({ fromZero: allowance === 0n }))]
}

function encodeApprove(spender: Address, amount: bigint): Hex {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [spender as Hex, amount] })
}
