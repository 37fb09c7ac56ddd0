import type { ChainConfig, PaymentContractKind } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'

/** What providers have in common. */

/** The address of the highest version of a contract. */
export function newestContract(chain: ChainConfig, kind: PaymentContractKind): Address | undefined {
  const contracts = chain.contracts.filter((contract) => contract.kind === kind)
  const byVersion = contracts.toSorted((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
  return byVersion.at(-1)?.address
}

/**
 * Each transaction waits for its block, and with the last one the payee has the money. Finality is another matter: it decides when the
 * payment counts as CONFIRMED.
 */
export function secondsOfBlocks(chain: ChainConfig, blocks: number): number {
  return Math.max(1, Math.ceil(chain.blockTimeSeconds * blocks))
}

/** What a token's contract should tell and does not. */
export function explainUnreadable({ symbol, chain }: Token, what: string): Explanation {
  return explain('CONTRACT_UNREADABLE', { contract: symbol, chain, what })
}

/** That a chain has no contract of a kind to pay a token with. */
export function explainNoContract({ symbol, chain }: Token, kind: PaymentContractKind): Explanation {
  return explain('NO_PAYMENT_CONTRACT', { token: symbol, chain, kind })
}
