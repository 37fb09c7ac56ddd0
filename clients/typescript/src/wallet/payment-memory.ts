/** What was sent for a request, kept over a reload of the page: a second `pay()` waits for it instead of paying again. */

/**
 * The payment that was sent, a transaction or a batch, and its chain. `isPart`: a step before the payment, such as a swap. `isLost`: a call has waited
 * for it and ended with UNKNOWN. `minedAtMs`: when one ended with MINED.
 */
export type SentPayment = {
  readonly chainId: string
  readonly isLost?: true
  readonly minedAtMs?: number
  /** Of a payment that is mined. */
  readonly transactionHashes?: readonly string[]
} & ({ readonly transactionHash: string; readonly isPart?: true } | { readonly batchId: string })

export interface PaymentMemory {
  readonly keep: (sent: SentPayment) => void
  readonly recall: () => SentPayment | undefined
  readonly forget: () => void
}

/** Where the memory is: `localStorage` has this form. */
export type PaymentStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>

/** @param storage - without it, and where it fails, nothing is remembered */
export function rememberIn(
  storage: PaymentStorage | undefined,
  paymentReference: string,
  wallet: string,
): PaymentMemory {
  const name = `waybill:pay:${nameOf(paymentReference)}:${wallet.toLowerCase()}`
  return {
    keep: (sent) => quietly(() => storage?.setItem(name, JSON.stringify(sent))),
    recall: () => quietly(() => JSON.parse(storage?.getItem(name) ?? 'null') as SentPayment | null) ?? undefined,
    forget: () => quietly(() => storage?.removeItem(name)),
  }
}

/** A reference as part of a name: its 16 digits. */
export const nameOf = (paymentReference: string) => paymentReference.toLowerCase().replace(/^0x/, '')

/** A storage that is full, or that the browser denies, must not keep anybody from paying. */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The page's own storage; undefined outside of a browser, and where the browser denies it. */
export const pageStorage = () => quietly(() => (globalThis as { readonly localStorage?: PaymentStorage }).localStorage)
