import type { ChainConfig, PaymentContractKind } from '../../chains/chains-file.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import type { UsedContract } from './provider.ts'

/** The address of the highest version of a contract. */
export function newestContract(chain: ChainConfig, kind: PaymentContractKind): Address | undefined {
  const contracts = chain.contracts.filter((contract) => contract.kind === kind)
  const byVersion = contracts.toSorted((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
  return byVersion.at(-1)?.address
}

/**
 * The time until the payee has the money: each transaction waits for its block. Finality comes later, and decides when the payment counts as
 * CONFIRMED.
 */
export function secondsOfBlocks(chain: ChainConfig, blocks: number): number {
  return Math.max(1, Math.ceil(chain.blockTimeSeconds * blocks))
}

/** The explanation for a token's contract that gives no answer. @param what - what it should have returned */
export function explainUnreadable({ symbol, chain }: Token, what: string): Explanation {
  return explain('CONTRACT_UNREADABLE', { contract: symbol, chain, what })
}

/** The explanation for a chain without a contract of the kind that could pay a token. */
export function explainNoContract({ symbol, chain }: Token, kind: PaymentContractKind): Explanation {
  return explain('NO_PAYMENT_CONTRACT', { token: symbol, chain, kind })
}

/** The contracts that a plan uses on one chain; coins have none. */
export function usedOn(chain: string, ...addresses: readonly (Address | undefined)[]): UsedContract[] {
  return addresses.flatMap((address) => (address === undefined ? [] : [{ chain, address }]))
}
