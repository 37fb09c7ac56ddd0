import type { ChainDirectory } from '../../chains/chain-directory.ts'
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

/** The chain of a token, and the newest contract of a kind there; an explanation where there is none that could pay the token. */
export function findContract(
  chains: ChainDirectory,
  { symbol, chain: name }: Token,
  kind: PaymentContractKind,
): { readonly chain: ChainConfig; readonly contract: Address } | Explanation {
  const chain = chains.config(name)
  const contract = chain && newestContract(chain, kind)
  if (chain === undefined || contract === undefined) {
    return explain('NO_PAYMENT_CONTRACT', { token: symbol, chain: name, kind })
  }
  return { chain, contract }
}

/** The contracts that a plan uses on one chain; coins have none. */
export function usedOn(chain: string, ...addresses: readonly (Address | undefined)[]): UsedContract[] {
  return addresses.flatMap((address) => (address === undefined ? [] : [{ chain, address }]))
}
