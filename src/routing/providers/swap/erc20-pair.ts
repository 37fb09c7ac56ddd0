import type { Address } from '../../../domain/address.ts'
import type { Token } from '../../../domain/currency.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import type { Payment } from '../../due-payment.ts'
import type { Candidate } from '../../quotes/candidates.ts'
import { directTerms } from '../fee-proxy.ts'

/** A token with a contract. */
export type Erc20 = Token & { readonly address: Address }

/** The two tokens of a swap; an explanation where one is the native coin, which exchanges take only wrapped. */
export function erc20Pair(
  exchange: string,
  { source, destination }: Candidate,
  payment: Payment,
): { readonly source: Erc20; readonly destination: Erc20 } | Explanation {
  if (source.address !== undefined && destination.address !== undefined) {
    return {
      source: { ...source, address: source.address },
      destination: { ...destination, address: destination.address },
    }
  }
  return explain('COIN_NOT_SWAPPABLE', {
    exchange,
    coin: (source.address === undefined ? source : destination).symbol,
    token: source.symbol,
    chain: source.chain,
    ...directTerms(payment),
  })
}
