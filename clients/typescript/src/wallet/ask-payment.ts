import type { AskedMark, IsTakenOver } from './asked-mark.ts'
import type { PayOutcome } from './outcome.ts'
import { askProvider, type WalletProvider, waitForAnswer } from './provider.ts'
import type { WaitTerms } from './receipts.ts'
import { judgeWalletError, type WalletStep } from './wallet-error.ts'

export interface AskTerms extends WaitTerms {
  readonly provider: WalletProvider
  readonly mark: AskedMark
  readonly isTakenOver: IsTakenOver
}

interface Question<T> {
  readonly method: string
  readonly params: readonly unknown[]
  readonly step: WalletStep
  /** @throws Error for an answer that says nothing */
  readonly read: (answer: unknown) => T
  /** Remembers what was sent. */
  readonly keep: (sent: T) => void
}

/**
 * Asks the wallet for something that moves money. The mark stands until the wallet's answer says what became of it, also when nobody waits for the
 * answer any more.
 *
 * @throws what the wallet throws; NoAnswerError; the signal's reason
 */
export async function askForPayment<T>(terms: AskTerms, { method, params, step, read, keep }: Question<T>): Promise<T> {
  const clear = terms.mark.set(terms.wallet)
  const settle = async () => {
    try {
      const sent = read(await askProvider(terms.provider, method, params))
      keep(sent)
      clear()
      return sent
    } catch (error) {
      if (judgeWalletError(error, step).outcome !== 'UNKNOWN') clear()
      throw error
    }
  }
  return waitForAnswer(settle(), method, terms)
}

/** Whether it was the signal that ended the wait, and not the wallet. */
export function isStopped({ signal }: WaitTerms, error: unknown): boolean {
  return signal?.aborted === true && error === signal.reason
}

/** The signal ended the wait while the wallet's question for the payment stood open. */
export const STOPPED: PayOutcome = {
  outcome: 'UNKNOWN',
  reason: 'NO_ANSWER',
  code: undefined,
  message: 'the wait was ended before the wallet answered',
}
