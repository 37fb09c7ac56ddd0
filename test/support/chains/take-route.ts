import { expect } from 'vitest'
import { parseAmount } from '../../../src/domain/decimal.ts'
import type { PreparedPayment, Route } from '../../../src/domain/route.ts'
import type { EvmAddress } from '../routing.ts'
import type { TestChain } from './chain.ts'

/** A transaction of a route, sent and mined. */
interface TakenStep {
  /** undefined where it was left to the wallet. */
  readonly gasLimit: bigint | undefined
  readonly gasUsed: bigint
  /** Wei. */
  readonly gasCost: bigint
  readonly transactionHash: `0x${string}`
}

/**
 * Sends the transactions of a route one by one, exactly as prepared, from an account that the node impersonates.
 *
 * @throws Error when one was reverted
 */
export async function takeRoute(
  chain: TestChain,
  payer: EvmAddress,
  { transactions }: Pick<PreparedPayment, 'transactions'>,
): Promise<TakenStep[]> {
  const { rpc } = chain.client
  const taken: TakenStep[] = []
  for (const transaction of transactions) {
    expect(transaction.from.toLowerCase()).toBe(payer)
    const transactionHash = await rpc.call<`0x${string}`>('eth_sendTransaction', [transaction])
    await chain.mine()
    const receipt = await rpc.call<{ status: string; gasUsed: string; effectiveGasPrice: string }>(
      'eth_getTransactionReceipt',
      [transactionHash],
    )
    if (BigInt(receipt.status) !== 1n) throw new Error(`transaction ${transactionHash} was reverted`)
    const gasUsed = BigInt(receipt.gasUsed)
    const gasCost = gasUsed * BigInt(receipt.effectiveGasPrice)
    const gasLimit = transaction.gas === undefined ? undefined : BigInt(transaction.gas)
    taken.push({ gasLimit, gasUsed, gasCost, transactionHash })
  }
  return taken
}

/** No transaction came near its limit of gas, and the gas line of the route is within a quarter of what was spent. */
export function expectGasWithin(route: Route, taken: readonly TakenStep[]): void {
  for (const { gasLimit, gasUsed } of taken) expect(gasUsed).toBeLessThanOrEqual(gasLimit ?? gasUsed)
  const spent = taken.reduce((total, { gasCost }) => total + gasCost, 0n)
  expect(Number(quotedGas(route)) / Number(spent)).toBeGreaterThanOrEqual(0.8)
  expect(Number(quotedGas(route)) / Number(spent)).toBeLessThanOrEqual(1.25)
}

/** The quoted gas of a route in wei, without the fee for publishing. */
export function quotedGas({ feeBreakdown }: Route): bigint {
  const isGas = (line: Route['feeBreakdown'][number]) =>
    line.type === 'GAS' && line.stage === 'SENDING' && line.provider !== 'l1-data'
  const [line] = feeBreakdown.filter(isGas)
  return parseAmount(line?.amount ?? '0', 18) as bigint
}
