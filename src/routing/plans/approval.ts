import { readAllowance } from '../../contracts/contract-reads.ts'
import { encodeApprove } from '../../contracts/payment-calls.ts'
import { uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { type Erc20, isErc20, type Token } from '../../domain/currency.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { approveGas, approveResetGas } from '../gas/gas.ts'
import type { Step } from '../gas/steps.ts'
import type { ChainState } from '../scan/wallet-state.ts'

/** A contract that is to pull a token. */
interface Pull {
  readonly token: Erc20
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
export function approvalSteps({ token, spender, allowance, need }: Pull): Step[] {
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

/** What a contract may pull of a token from a wallet. A native coin is sent, not pulled. */
export function readApproval(token: Token, wallet: Address, spender: Address) {
  const reads = isErc20(token) ? [readAllowance(token.address, wallet, spender)] : []
  return {
    reads,
    /** @returns `upTo`, which gives the transactions that approve what the contract needs, and what it may pull after them */
    decode(state: ChainState): Explanation | { readonly upTo: (need: bigint) => { steps: Step[]; allowance: bigint } } {
      if (!isErc20(token)) return { upTo: () => ({ steps: [], allowance: 0n }) }
      const [allowance] = reads.map((read) => uintAt(state.answerTo(read), 0))
      if (allowance === undefined) {
        return explain('CONTRACT_UNREADABLE', { contract: token.symbol, chain: token.chain, what: 'its allowance' })
      }
      const upTo = (need: bigint) => {
        const steps = approvalSteps({ token, spender, allowance, need })
        return { steps, allowance: steps.length > 0 ? need : allowance }
      }
      return { upTo }
    },
  }
}
