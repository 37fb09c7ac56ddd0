import { expect } from 'vitest'
import type { PreparedPayment } from '../../src/domain/route.ts'
import type { TestChain } from './chain.ts'
import type { EvmAddress } from './routing.ts'

/** A transaction of a route, sent and mined. */
export interface TakenStep {
  readonly kind: string
  readonly gasLimit: bigint
  readonly gasUsed: bigint
  /** Wei. */
  readonly gasCost: bigint
  readonly transactionHash: `0x${string}`
}

/** Sends the transactions of a route one by one, from an account that the node impersonates. @throws Error when one was reverted */
export async function takeRoute(
  chain: TestChain,
  payer: EvmAddress,
  { transactions }: Pick<PreparedPayment, 'transactions'>,
): Promise<TakenStep[]> {
  const taken: TakenStep[] = []
  for (const { kind, to, data, value, gasLimit } of transactions) {
    const { transactionHash } = await chain.send(payer, { to: to as EvmAddress, data, value }, { gas: gasLimit })
    const receipt = await chain.client.rpc.call<{ gasUsed: string; effectiveGasPrice: string }>(
      'eth_getTransactionReceipt',
      [transactionHash],
    )
    const gasUsed = BigInt(receipt.gasUsed)
    taken.push({ kind, gasLimit, gasUsed, gasCost: gasUsed * BigInt(receipt.effectiveGasPrice), transactionHash })
  }
  return taken
}

/** The gas of all transactions is at most what was quoted, four fifths of what they were allowed, and at least four fifths of that. */
export function expectGasWithin(taken: readonly TakenStep[]): void {
  const sum = (of: (step: TakenStep) => bigint) => Number(taken.reduce((total, step) => total + of(step), 0n))
  const share = sum((step) => step.gasUsed) / (sum((step) => step.gasLimit) * 0.8)
  expect(share).toBeLessThanOrEqual(1)
  expect(share).toBeGreaterThanOrEqual(0.8)
}
