import type { Payment } from '@waybill/client'

/**
 * Whether a payment is certainly one of the chain's own coin. Its gas is paid in that coin. That `tokenAddress` is absent proves nothing: an
 * import may leave it out.
 */
export function isNativeCoin({
  tokenAddress,
  currency,
  gas,
}: Pick<Payment, 'tokenAddress' | 'currency' | 'gas'>): boolean {
  return tokenAddress === undefined && gas?.currency === currency
}
