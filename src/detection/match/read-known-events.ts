import type { FeeProxyEvent } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { Patience } from '../read/patience.ts'
import type { ReadCalls } from '../read/trace-reader.ts'
import type { CreatedProxy, Findings } from './detected.ts'
import type { FindingTools } from './finding-tools.ts'
import type { FollowedContracts } from './followed-contracts.ts'
import { addressesIn, needsCalls } from './native-payers.ts'
import { readTransaction, type SeenEvent } from './read-transaction.ts'

/** A payment event and the receipt of its transaction. */
export interface ReadEvent {
  readonly event: SeenEvent
  readonly receipt: TransactionReceipt
}

/** Transactions with topics that some account knows. */
interface KnownTransactions {
  /** In the order of the chain. */
  readonly receipts: readonly TransactionReceipt[]
  /** SingleRequestProxies that were created in the same blocks. */
  readonly proxies: readonly CreatedProxy[]
  readonly directory: Findings['directory']
  /** Whether they were read before. */
  readonly areReread: boolean
  /** Of those that were read before: which had no trace then either. */
  readonly neverTraced: ReadonlySet<Hex>
  readonly patience: Patience
}

/** What was read of them. */
interface KnownEvents {
  readonly events: readonly ReadEvent[]
  /** Left out: the node that traces them failed. */
  readonly untraced: ReadonlySet<Hex>
  /** Transactions whose trace was not read, and may tell a payer that is not known otherwise. */
  readonly lackTrace: ReadonlySet<Hex>
}

/**
 * Reads the payment events of transactions. Where a receipt leaves open who paid in coins, the transaction's calls are read too; and addresses in
 * it that are SingleRequestProxies count as intermediaries.
 *
 * @throws RpcError
 */
export async function readKnownEvents(
  { chain, repository, traces }: Pick<FindingTools, 'chain' | 'repository' | 'traces'>,
  { receipts, proxies, directory, areReread, neverTraced, patience }: KnownTransactions,
  signal: AbortSignal | undefined,
): Promise<KnownEvents> {
  const { followed } = chain
  const isKnown = ({ topic }: FeeProxyEvent) => directory.has(topic)
  const unclear = receipts.filter((receipt) => needsCalls(receipt, followed, isKnown))
  const { known, failed } = unclear.length === 0 ? NO_CALLS : await traces.read(unclear, patience, signal)
  // A payer that was found by a trace before must not be lost because no trace can be read now.
  const untraced: KnownEvents['untraced'] = new Set(
    areReread ? [...failed].filter((txHash) => !neverTraced.has(txHash)) : [],
  )
  const addresses = followed.factories.size === 0 ? [] : addressesIn(receipts, known)
  const stored = await repository.requestProxiesAmong(chain.chainId, addresses)
  const all = withIntermediaries(followed, [...stored, ...proxies.map(({ address }) => address)])
  const events = receipts
    .filter(({ txHash }) => !untraced.has(txHash))
    .flatMap((receipt) => readTransaction(receipt, all, known.get(receipt.txHash)).map((event) => ({ event, receipt })))
  const isOpen = ({ event, receipt }: ReadEvent) =>
    event.token === undefined && event.payer === undefined && !event.isCarried && isKnown(event) && hasNoTrace(receipt)
  const hasNoTrace = ({ txHash }: TransactionReceipt) => known.get(txHash)?.kind !== 'TRACE'
  return { events, untraced, lackTrace: new Set(events.filter(isOpen).map(({ receipt }) => receipt.txHash)) }
}

const NO_CALLS: ReadCalls = { known: new Map(), failed: new Set() }

function withIntermediaries(followed: FollowedContracts, added: readonly Address[]): FollowedContracts {
  if (added.length === 0) return followed
  return { ...followed, intermediaries: new Set([...followed.intermediaries, ...added]) }
}
