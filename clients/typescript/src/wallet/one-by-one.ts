import { askForPayment, isStopped, STOPPED } from './ask-payment.ts'
import { IN_OTHER_TAB } from './asked-mark.ts'
import { type BatchTerms, footprint } from './batch.ts'
import { type PayOutcome, type PlainTransaction, walletStepOf } from './outcome.ts'
import { wrongAnswer } from './provider.ts'
import { hasFailed, type WaitTerms, waitForReceipt } from './receipts.ts'
import { judgeWalletError } from './wallet-error.ts'

export interface StepTerms extends BatchTerms {
  readonly isExpired: () => boolean
  /** The wallet's next nonce, where it may yet send a batch that it has refused. */
  readonly nonce: bigint | undefined
}

/** The quote can no longer be taken; nothing but approvals was sent. */
export interface QuoteEnded {
  readonly outcome: 'QUOTE_EXPIRED'
  /** Whether the payer put another transaction in the place of an approval. */
  readonly isApprovalReplaced?: true
}

/**
 * Sends the transactions one by one, each after the receipt of the one before. Nothing is ever sent twice: an error of the wallet ends it.
 *
 * @returns QUOTE_EXPIRED if the quote expired before anything but approvals was sent
 */
export async function sendOneByOne(terms: StepTerms): Promise<PayOutcome | QuoteEnded> {
  const { transactions, steps, signal, isExpired, onProgress } = terms
  const transactionHashes: string[] = []
  let hasSpent = false
  for (const [index, transaction] of transactions.entries()) {
    signal?.throwIfAborted()
    if (!hasSpent && isExpired()) return { outcome: 'QUOTE_EXPIRED' }
    if (terms.isTakenOver()) return IN_OTHER_TAB
    const step = index + 1
    const kind = walletStepOf(steps[index])
    const isApproval = kind === 'APPROVE'
    if (!isApproval && !(await hasSentOnlySteps(terms, transactionHashes.length))) {
      terms.mark.set(terms.wallet)
      const message = 'the wallet has sent something else meanwhile, perhaps the batch that it had refused'
      return { outcome: 'UNKNOWN', reason: 'WALLET_ERROR', code: undefined, message }
    }
    onProgress({ type: 'ASKING', step, steps: transactions.length, message: steps[index]?.message ?? '' })
    const isLast = step === transactions.length
    const { chainId } = transaction
    const keep = (hash: string) =>
      terms.memory.keep({ transactionHash: hash, chainId, ...(!isLast && { isPart: true as const }) })
    let transactionHash: string
    try {
      transactionHash = await sendStep(terms, transaction, kind, keep)
    } catch (error) {
      if (!isStopped(terms, error)) return judgeWalletError(error, kind)
      if (kind === 'PAY') return STOPPED
      throw error
    }
    transactionHashes.push(transactionHash)
    onProgress({ type: 'SENT', step, transactionHash })
    const end = await waitForStep(terms, { transactionHash, transactionHashes, isApproval, isLast })
    if (end !== undefined) return end
    hasSpent ||= !isApproval
    onProgress({ type: 'STEP_MINED', step, transactionHash })
  }
  return { outcome: 'MINED', transactionHashes }
}

/** Whether nothing but the steps so far has raised the wallet's nonce. */
async function hasSentOnlySteps({ ask, wallet, nonce }: StepTerms, sent: number): Promise<boolean> {
  return nonce === undefined || (await footprint(ask, wallet)) === nonce + BigInt(sent)
}

/** An approval moves no money: it leaves no mark, and nothing to remember. */
async function sendStep(
  terms: StepTerms,
  transaction: PlainTransaction,
  step: 'APPROVE' | 'SWAP' | 'PAY',
  keep: (hash: string) => void,
): Promise<string> {
  const method = 'eth_sendTransaction'
  const params = [transaction]
  if (step === 'APPROVE') return hashOf(await terms.ask(method, params))
  return askForPayment(terms, { method, params, step, read: hashOf, keep })
}

function hashOf(answer: unknown): string {
  const isHash = typeof answer === 'string' && /^0x[0-9a-f]{64}$/i.test(answer)
  return isHash ? answer : wrongAnswer('eth_sendTransaction', answer, 'the hash of a transaction')
}

/** Waits for a payment that an earlier call has sent. */
export async function waitForSent(terms: WaitTerms, transactionHash: string): Promise<PayOutcome> {
  const sent = { transactionHash, transactionHashes: [transactionHash], isApproval: false, isLast: true }
  const end = await waitForStep(terms, sent)
  return end === undefined || end.outcome === 'QUOTE_EXPIRED'
    ? { outcome: 'MINED', transactionHashes: [transactionHash] }
    : end
}

interface SentStep {
  readonly transactionHash: string
  readonly transactionHashes: readonly string[]
  readonly isApproval: boolean
  readonly isLast: boolean
}

function dropped(transactionHash: string, isApproval: boolean): PayOutcome {
  const message = `the wallet's node no longer knows ${transactionHash}, and nothing has taken its place`
  if (isApproval) return { outcome: 'FAILED', reason: 'WALLET_ERROR', code: undefined, message }
  return { outcome: 'UNKNOWN', reason: 'DROPPED', code: undefined, message, transactionHash }
}

/** @returns how it ends; undefined if the next step may be sent */
async function waitForStep(terms: WaitTerms, { transactionHash, transactionHashes, isApproval, isLast }: SentStep) {
  try {
    const receipt = await waitForReceipt(terms, transactionHash)
    if (receipt === 'REPLACED') {
      // The next quote says whether the approval that took its place is enough.
      if (isApproval) return { outcome: 'QUOTE_EXPIRED', isApprovalReplaced: true } as const
      const message = `another transaction of the wallet took the place of ${transactionHash}`
      return { outcome: 'UNKNOWN', reason: 'REPLACED', code: undefined, message, transactionHash } as const
    }
    if (receipt === 'DROPPED') return dropped(transactionHash, isApproval)
    return hasFailed(receipt) ? ({ outcome: 'REVERTED', transactionHash } as const) : undefined
  } catch (error) {
    if (!isLast) throw error
    return { outcome: 'SENT', transactionHashes } as const
  }
}
