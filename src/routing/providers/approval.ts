import type { Token } from '../../domain/currency.ts'
import { approveGas, approveResetGas, type GasStep } from '../gas.ts'

/**
 * The transactions that let a contract pull exactly what is needed; none where it already may. Tokens that demand it are reset
 * to 0 first.
 *
 * @param allowance - what the contract may pull now, base units
 * @param need - what it is to pull
 */
export function approvalSteps(token: Token, allowance: bigint, need: bigint): GasStep[] {
  if (allowance >= need) return []
  if (token.approveReset && allowance > 0n) {
    return [
      { kind: 'APPROVE_RESET', gasLimit: approveResetGas() },
      { kind: 'APPROVE', gasLimit: approveGas({ fromZero: true }) },
    ]
  }
  return [{ kind: 'APPROVE', gasLimit: approveGas({ fromZero: allowance === 0n }) }]
}
