import type { FeeProxyEvent } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { CreatedProxy, Findings } from '../match/detected.ts'
import type { FollowedContracts } from '../match/followed-contracts.ts'
import { addressesIn, needsCalls } from '../match/native-payers.ts'
import { type ReadEvent, readTransaction, type SeenEvent } from '../match/read-transaction.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { Patience } from '../read/patience.ts'
import type { ReadCalls } from '../read/trace-reader.ts'
import type { FindingTools } from './finding-tools.ts'

/** Transactions with topics that some account knows. */
interface KnownTransactions {
  /** In the order of the chain. */
  readonly receipts: readonly TransactionReceipt[]
  /** SingleRequestProxies that were created in the same blocks. */
  readonly proxies: readonly CreatedProxy[]
  readonly directory: Findings['directory']
  /** Where they were read before: those that had no trace then either. */
  readonly neverTraced: ReadonlySet<Hex> | undefined
  readonly patience: Patience
}

/** What was read of them. */
interface KnownEvents {
  readonly events: readonly ReadEvent[]
  /** Left out: the node that traces them failed. */
  readonly untraced: ReadonlySet<Hex>
}

/**
 * Reads the payment events of transactions. Where a receipt leaves open who paid in coins, the transaction's calls are read too; and addresses in
 * it that are SingleRequestProxies count as intermediaries.
 *
 * @throws RpcError
 */
export async function readKnownEvents(
  { chain, repository, traces }: Pick<FindingTools, 'chain' | 'repository' | 'traces'>,
  { receipts, proxies, directory, neverTraced, patience }: KnownTransactions,
  signal: AbortSignal | undefined,
): Promise<KnownEvents> {
  const { followed } = chain
  const isKnown = ({ topic }: FeeProxyEvent) => directory.has(topic)
  const unclear = receipts.filter((receipt) => needsCalls(receipt, followed, isKnown))
  const { known, failed } = unclear.length === 0 ? NO_CALLS : await traces.read(unclear, patience, signal)
  // A payer that was found by a trace before must not be lost because no trace can be read now.
  const untraced: KnownEvents['untraced'] = new Set(
    neverTraced === undefined ? [] : [...failed].filter((txHash) => !neverTraced.has(txHash)),
  )
  const addresses = followed.factories.size === 0 ? [] : addressesIn(receipts, known)
  const stored = await repository.requestProxiesAmong(chain.chainId, addresses)
  const all = withIntermediaries(followed, [...stored, ...proxies.map(({ address }) => address)])
  const lacksTrace = (event: SeenEvent, { txHash }: TransactionReceipt) =>
    event.token === undefined && event.payer === undefined && !event.isCarried && known.get(txHash)?.kind !== 'TRACE'
  const events = receipts
    .filter(({ txHash }) => !untraced.has(txHash))
    .flatMap((receipt) =>
      readTransaction(receipt, all, known.get(receipt.txHash)).map((event) => ({
        event,
        receipt,
        lacksTrace: isKnown(event) && lacksTrace(event, receipt),
      })),
    )
  return { events, untraced }
}

const NO_CALLS: ReadCalls = { known: new Map(), failed: new Set() }

function withIntermediaries(followed: FollowedContracts, added: readonly Address[]): FollowedContracts {
  if (added.length === 0) return followed
  return { ...followed, intermediaries: new Set([...followed.intermediaries, ...added]) }
}
