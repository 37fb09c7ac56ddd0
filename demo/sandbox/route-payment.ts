import { waybillError } from '../../src/errors/waybill-error.ts'
import type { Rpc } from '../network/rpc.ts'
import { type CalldataTransaction, type RunningDemo, sendTransaction } from '../running-demo.ts'

/** An answer of GetPaymentCalldata. */
interface Calldata {
  readonly route: { readonly id: string; readonly chain: string; readonly chainId: string }
  readonly transactions: readonly CalldataTransaction[]
  /** What each transaction does, in their order. */
  readonly steps: readonly { readonly kind: string }[]
}

/** @param terms - the fields of GetPaymentCalldata */
export function readCalldata(
  demo: RunningDemo,
  paymentReference: string,
  terms: Readonly<Record<string, string>>,
): Promise<Calldata> {
  return demo.get(`/v1/request/${encodeURIComponent(paymentReference)}/pay?${new URLSearchParams(terms)}`)
}

/**
 * Sends the transactions in order, each once the one before is mined.
 *
 * @returns their hashes
 * @throws WaybillError ROUTE_WOULD_FAIL where one is refused or reverted
 */
export async function sendAll(
  rpc: Rpc,
  { route, transactions, steps }: Calldata,
  signal: AbortSignal,
): Promise<string[]> {
  const hashes: string[] = []
  for (const [place, transaction] of transactions.entries()) {
    const hash = await sendTransaction(rpc, transaction, signal).catch((cause: Error) => {
      if (signal.aborted) throw cause
      const failing = { route: route.id, step: steps[place]?.kind ?? '', contract: transaction.to, chain: route.chain }
      throw waybillError('ROUTE_WOULD_FAIL', { ...failing, detail: cause.message }, { cause })
    })
    hashes.push(hash)
  }
  return hashes
}
