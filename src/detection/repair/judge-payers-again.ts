import type { Hex } from '../../domain/hex.ts'
import type { OpenChain } from '../open-chain.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { recheckRequests } from './recheck.ts'

/**
 * Reads requests again whose payers may be others than when their events were matched. One was paid by a SingleRequestProxy that was not known as one,
 * because the block that created it was read later: whoever gave the proxy the money is the payer, or nobody is known as such. To another a bridge
 * delivered, which told its payer later, or whose source a reorg removed. What is a refund depends on the payer, so refunds come and go.
 *
 * @param chains - by CAIP-2; requests on other chains are left out
 * @throws RpcError
 */
export async function judgePayersAgain(
  repository: DetectionRepository,
  chains: ReadonlyMap<string, OpenChain>,
  { accountId, topics }: { readonly accountId: number; readonly topics: readonly Hex[] },
  signal?: AbortSignal,
): Promise<void> {
  for (const [chainId, requests] of await repository.paidThroughOthers(accountId, topics)) {
    const chain = chains.get(chainId)
    if (chain === undefined) continue
    for await (const _ of recheckRequests(chain, requests, { accountId, isTrial: false, signal }))
      signal?.throwIfAborted()
  }
}
