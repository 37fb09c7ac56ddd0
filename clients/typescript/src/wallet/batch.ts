/** All transactions in one step, after EIP-5792. */
import type { PaymentStep } from '../../gen/payments/v1/payment_calldata_pb.js'
import { sleep } from '../retry.ts'
import { type AskTerms, askForPayment, isStopped, STOPPED } from './ask-payment.ts'
import { isApprovalStep, type PayOutcome, type PayProgress, type PlainTransaction } from './outcome.ts'
import type { PaymentMemory } from './payment-memory.ts'
import { type Ask, wrongAnswer } from './provider.ts'
import { hasFailed, type Receipt, type WaitTerms } from './receipts.ts'
import { INTERNAL_ERROR, isNoBatch, judgeWalletError } from './wallet-error.ts'

/** Whether the wallet carries out all calls or none, by what it says of itself. A wallet that fails to say so, or is silent, does not. */
export async function canBatch(ask: Ask, wallet: string, chainId: string): Promise<boolean> {
  try {
    const capabilities = (await ask('wallet_getCapabilities', [wallet, [chainId]])) as Capabilities
    const ofChain = Object.entries(capabilities).filter(([id]) => BigInt(id) === BigInt(chainId) || BigInt(id) === 0n)
    return ofChain.some(([, { atomic }]) => atomic?.status === 'supported' || atomic?.status === 'ready')
  } catch {
    return false
  }
}

type Capabilities = Readonly<Record<string, { readonly atomic?: { readonly status?: string } }>>

export interface BatchTerms extends AskTerms {
  readonly transactions: readonly PlainTransaction[]
  /** What each transaction does. */
  readonly steps: readonly PaymentStep[]
  readonly onProgress: (progress: PayProgress) => void
  readonly memory: PaymentMemory
}

/** The steps may be sent one by one, because the batch cannot have been sent as far as anybody can tell. */
export interface FallBack {
  readonly outcome: 'FALL_BACK'
  readonly code: number
  /** The wallet's next nonce, where it may yet send the batch: as long as only our steps raise it, it has not. */
  readonly nonce?: bigint
}

export async function sendBatch(terms: BatchTerms): Promise<PayOutcome | FallBack> {
  const { ask, wallet, transactions, steps, onProgress } = terms
  // Once an approval of ours has used the next nonce, a batch that was signed with it can never be mined, whoever holds it.
  const before = isApprovalStep(steps[0]) ? await footprint(ask, wallet) : undefined
  onProgress({ type: 'ASKING_BATCH', steps: transactions.length })
  const keep = (id: string) => terms.memory.keep({ batchId: id, chainId: transactions[0]?.chainId ?? '' })
  let batchId: string
  try {
    const params = [callsOf(transactions)]
    batchId = await askForPayment(terms, { method: 'wallet_sendCalls', params, step: 'PAY', read: idOf, keep })
  } catch (error) {
    if (isStopped(terms, error)) return STOPPED
    const end = judgeWalletError(error, 'PAY')
    const code = 'code' in end ? end.code : undefined
    const isUnsaid = end.outcome === 'UNKNOWN' && code === INTERNAL_ERROR
    const nonce =
      isUnsaid && before !== undefined && (await staysAt(terms, before).catch(() => false)) ? before : undefined
    if (code === undefined || (nonce === undefined && !isNoBatch(error))) return end
    terms.mark.clear()
    return { outcome: 'FALL_BACK', code, ...(nonce !== undefined && { nonce }) }
  }
  onProgress({ type: 'BATCH_SENT', batchId })
  return waitForBatch(terms, batchId)
}

/** Calls carry to, data and value alone: the wallet estimates the gas of the whole. */
function callsOf(transactions: readonly PlainTransaction[]) {
  const [{ from, chainId }] = transactions as [PlainTransaction, ...PlainTransaction[]]
  const calls = transactions.map(({ to, data, value }) => ({ to, data, value }))
  return { version: '2.0.0', from, chainId, atomicRequired: true, calls }
}

function idOf(answer: unknown): string {
  const id = typeof answer === 'string' ? answer : (answer as { id?: unknown } | null | undefined)?.id
  return typeof id === 'string' && id !== '' ? id : wrongAnswer('wallet_sendCalls', answer, 'the id of the batch')
}

/** Checks after an error that does not say whether the batch was sent. */
const CHECKS_AFTER_ERROR = 3

async function staysAt({ ask, wallet, pollMs, signal }: WaitTerms, before: bigint): Promise<boolean> {
  for (let check = 0; check < CHECKS_AFTER_ERROR; check++) {
    await sleep(pollMs, signal)
    if ((await footprint(ask, wallet)) !== before) return false
  }
  return true
}

/**
 * What a wallet that sends something changes: the next nonce of a plain account. Undefined for an account with code, since others may send its
 * transactions and its nonce then stays, while something waits to be mined, and where the node does not tell.
 */
export async function footprint(ask: Ask, wallet: string): Promise<bigint | undefined> {
  try {
    const [code, latest, pending] = await Promise.all([
      ask('eth_getCode', [wallet, 'latest']),
      ask('eth_getTransactionCount', [wallet, 'latest']),
      ask('eth_getTransactionCount', [wallet, 'pending']),
    ])
    const [mined, next] = [BigInt(latest as string), BigInt(pending as string)]
    return code === '0x' && mined === next ? next : undefined
  } catch {
    return undefined
  }
}

type BatchStatus = { readonly status: number | string; readonly receipts?: readonly Receipt[] | null }

/** Words that some wallets say for the codes of EIP-5792: those of its first version, and those of libraries. */
const STATUS_WORDS: Readonly<Record<string, number>> = { PENDING: 100, CONFIRMED: 200, SUCCESS: 200 }

function codeOfStatus(status: unknown): number {
  const code = typeof status === 'string' ? (STATUS_WORDS[status.toUpperCase()] ?? Number(status)) : status
  if (typeof code === 'number' && code >= 100 && code < 700) return code
  throw new Error(
    `the wallet says that the status of the batch is ${JSON.stringify(status)}, which EIP-5792 does not know`,
  )
}

/** How often the status may be missing, or not be understood, before the batch counts as lost. */
const CHECKS_BEFORE_LOST = 20

export async function waitForBatch(
  { ask, pollMs, signal }: WaitTerms,
  batchId: string,
  checksBeforeLost = CHECKS_BEFORE_LOST,
): Promise<PayOutcome> {
  for (let missing = 0; ; ) {
    if (signal?.aborted) return { outcome: 'SENT', transactionHashes: [], batchId }
    try {
      const outcome = judge((await ask('wallet_getCallsStatus', [batchId])) as BatchStatus, batchId)
      if (outcome !== undefined) return outcome
      missing = 0
    } catch (error) {
      if (++missing >= checksBeforeLost) {
        return { ...judgeWalletError(error, 'STATUS'), batchId } as PayOutcome
      }
    }
    await sleep(pollMs, signal).catch(() => undefined)
  }
}

/** @returns undefined while the batch waits */
function judge(answer: BatchStatus, batchId: string): PayOutcome | undefined {
  const status = codeOfStatus(answer.status)
  const receipts = answer.receipts ?? []
  const hashes = receipts.map(({ transactionHash }) => transactionHash)
  const transactionHashes = [...new Set(hashes.filter((hash) => hash !== undefined))]
  // The status speaks for receipts that have none.
  const reverted = receipts.find(hasFailed)
  const isInPart = reverted !== undefined && !receipts.every(hasFailed)
  if (status >= 600 || (status >= 200 && status < 300 && isInPart)) {
    const message = 'the wallet carried out a part of the batch'
    return { outcome: 'UNKNOWN', reason: 'BATCH_IN_PART', code: status, message, batchId }
  }
  if (status >= 500 || (status >= 200 && status < 300 && reverted !== undefined)) {
    return { outcome: 'REVERTED', transactionHash: (reverted ?? receipts[0])?.transactionHash }
  }
  if (status >= 400) {
    const message = 'the wallet has not sent the batch and will not try again'
    return { outcome: 'FAILED', reason: 'WALLET_ERROR', code: status, message }
  }
  return status >= 200 ? { outcome: 'MINED', transactionHashes } : undefined
}
