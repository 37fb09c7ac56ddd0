import type { Knex } from 'knex'
import type { Address } from '../../domain/address.ts'
import type { BlockRun } from '../../domain/chain.ts'
import type { CreatedProxy } from '../match/detected.ts'
import { createDetectionRepository } from '../sql/detection-repository.ts'
import {
  deleteRequestProxies,
  findRequestProxiesBetween,
  storeRequestProxies,
} from '../sql/request-proxies-repository.ts'

/**
 * Makes what knows SingleRequestProxies as the blocks that were read say, in place of what is stored of these blocks.
 *
 * @param chainId - CAIP-2
 * @param repairs - whether the proxies of the blocks are stored
 */
export function knowProxies(knex: Knex, chainId: string, repairs: boolean) {
  const repository = createDetectionRepository(knex)
  const found = new Set<Address>()
  const invented = new Set<Address>()
  return {
    repository: {
      ...repository,
      async requestProxiesAmong(id: string, addresses: readonly Address[]): Promise<Set<Address>> {
        const stored = await repository.requestProxiesAmong(id, addresses)
        return new Set(addresses.filter((each) => found.has(each) || (stored.has(each) && !invented.has(each))))
      },
    },
    /** Takes the proxies that some blocks created, and stores them where it repairs. */
    async note(span: BlockRun, created: readonly CreatedProxy[]): Promise<void> {
      const stored = await findRequestProxiesBetween(knex, chainId, span)
      const addresses = new Set(created.map(({ address }) => address))
      const wrong = stored.filter((address) => !addresses.has(address))
      for (const address of wrong) invented.add(address)
      for (const address of addresses) found.add(address)
      if (!repairs) return
      await deleteRequestProxies(knex, chainId, wrong)
      await storeRequestProxies(knex, chainId, created)
    },
  }
}
