import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { OpenChainOptions } from '../chain/open-chain.ts'
import { createChainReader } from '../read/chain-reader.ts'
import { type FoundTransaction, findLatest } from '../sql/account-rows-repository.ts'

/**
 * How many of the highest transactions are checked. A reorg removes the highest blocks, so these are affected first; several, because some may have
 * been mined again in a block of the same number.
 */
const TRANSACTIONS_CHECKED = 100

/**
 * Checks whether what a restart from a block would keep is still part of the chain.
 *
 * @returns a transaction that is now in another block, or in none; undefined where all are where they were
 * @throws RpcError
 */
export async function findTakenBack(
  { knex, config, limits, clock }: Pick<OpenChainOptions, 'knex' | 'config' | 'limits' | 'clock'>,
  block: number,
): Promise<FoundTransaction | undefined> {
  const kept = await findLatest(knex, caip2Of(config.chainId), block, TRANSACTIONS_CHECKED)
  const client = createRpcClient({ urls: config.rpcUrls, chainId: config.chainId, clock, limits })
  const receipts = await createChainReader(client, []).receipts(kept.map(({ txHash }) => txHash))
  const blockOf = new Map<Hex, number>()
  for (const receipt of receipts) {
    if (receipt instanceof RpcError) throw receipt
    if (receipt !== undefined) blockOf.set(receipt.txHash, receipt.blockNumber)
  }
  return kept.find(({ txHash, blockNumber }) => blockOf.get(txHash) !== blockNumber)
}
