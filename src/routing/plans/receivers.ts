import type { ChainConfig } from '../../chains/chains-file.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { uintAt } from '../../contracts/words.ts'
import { ZERO_ADDRESS } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { PaymentGasFacts } from '../gas/gas.ts'
import type { Payment } from '../question/due-payment.ts'
import { type ChainState, readBalance } from '../scan/wallet-state.ts'

/** The reads that tell whether payee and fee receiver hold any of a token: a payment to an empty balance takes more gas. */
export function receiverReads(chain: ChainConfig, token: Token, { request, platformFee }: Payment) {
  const payee = readBalance(chain, token, request.payee)
  const feeReceiver = readBalance(chain, token, platformFee?.receiver ?? ZERO_ADDRESS)
  const holdsNothing = (state: ChainState, read: ContractRead) => uintAt(state.answerTo(read), 0) === 0n
  return {
    reads: platformFee === undefined ? [payee] : [payee, feeReceiver],
    gasFacts(state: ChainState, fee: bigint | undefined): PaymentGasFacts {
      const payeeIsNew = holdsNothing(state, payee)
      if (fee === undefined || fee === 0n) return { payeeIsNew }
      const sameReceiver = platformFee?.receiver === request.payee
      return { payeeIsNew, feeReceiver: !sameReceiver && holdsNothing(state, feeReceiver) ? 'NEW' : 'KNOWN' }
    },
  }
}
