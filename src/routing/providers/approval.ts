import { encodeApprove } from '../../contracts/payment-calls.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { approveGas, approveResetGas } from '../quotes/gas.ts'
import type { Step } from '../quotes/steps.ts'

/** A contract that is to pull a token. */
interface Approval {
  readonly token: Token & { readonly address: Address }
  readonly spender: Address
  /** What it may pull now, base units. */
  readonly allowance: bigint
  /** The most that it is to pull, base units. */
  readonly need: bigint
}

/**
 * The transactions that let a contract pull exactly what it needs; none where it already may. The allowance of tokens that demand it is
 * reset to 0 first.
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
