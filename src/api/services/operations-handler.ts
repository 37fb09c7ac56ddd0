import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import {
  Chain_Node_State,
  type Chain_NodeSchema,
  Chain_Rate_Unit,
  Chain_State,
  type ChainSchema,
} from '../../../gen/payments/v1/chain_pb.js'
import type { ListUnmatchedEventsRequest, OperationsService } from '../../../gen/payments/v1/operations_service_pb.js'
import {
  UnmatchedEvent_Acceptance,
  UnmatchedEvent_Reason,
  type UnmatchedEventSchema,
} from '../../../gen/payments/v1/unmatched_event_pb.js'
import type { Explorer, FindExplorer } from '../../chains/explorer.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Explanation } from '../../detection/report/explain-unmatched.ts'
import type { ListedChain } from '../../detection/report/list-chains.ts'
import type { UnmatchedEvents, UnmatchedInput } from '../../detection/report/list-unmatched.ts'
import type { NodeReport } from '../../detection/sql/chain-reports-repository.ts'
import type { ListedUnmatched } from '../../detection/sql/unmatched-repository.ts'
import type { Account } from '../../domain/account.ts'
import { type Address, formatAddress } from '../../domain/address.ts'
import { formatAmount } from '../../domain/decimal.ts'
import { callerOf } from '../calls/call.ts'
import { memberOf, paginationOf } from './payment-filter-input.ts'

/** What the handlers ask of the other modules. */
export interface OperationsCalls {
  readonly tokens: TokenDirectory
  /** @param account - whose unmatched events are counted; undefined: those of all */
  readonly listChains: (account: Account | undefined, signal: AbortSignal) => Promise<readonly ListedChain[]>
  /** @param account - the only one whose events the caller may see; undefined: all */
  readonly listUnmatched: (
    account: Account | undefined,
    input: UnmatchedInput,
    signal: AbortSignal,
  ) => Promise<UnmatchedEvents>
  readonly explain: (event: ListedUnmatched) => Explanation
  readonly now: () => Date
}

/** Serves OperationsService. */
export function createOperationsHandlers(
  calls: OperationsCalls,
  findExplorer: FindExplorer,
): ServiceImpl<typeof OperationsService> {
  return {
    async listChains(_, context) {
      const { account, operates } = callerOf(context)
      const chains = await calls.listChains(operates === 'ALL' ? undefined : account, context.signal)
      const toProto = (chain: ListedChain) =>
        chainToProto(chain, operates !== undefined, calls.now(), findExplorer(chain.network))
      return { chains: chains.map(toProto), pagination: { limit: MAX_CHAINS, hasMore: false } }
    },
    async listUnmatchedEvents(request, context) {
      const { account, operates } = callerOf(context)
      const visible = operates === 'ALL' ? undefined : account
      const page = await calls.listUnmatched(visible, inputOf(request), context.signal)
      return { events: page.events.map((event) => eventToProto(event, calls)), pagination: paginationOf(page) }
    },
  }
}

/** More than any configuration has. */
const MAX_CHAINS = 1_000

const MAX_INT32 = 2 ** 31 - 1

function inputOf(request: ListUnmatchedEventsRequest): UnmatchedInput {
  const { account, network, txHash, fromDate, toDate, limit, cursor } = request
  const reason = request.reason.map((number) => memberOf('reason', UnmatchedEvent_Reason, number))
  return { account, network, reason, txHash, fromDate, toDate, limit, cursor }
}

/**
 * The message of a chain.
 *
 * @param isOperators - whether the reader may see what only operators see
 */
export function chainToProto(
  chain: ListedChain,
  isOperators: boolean,
  now: Date,
  explorer?: Explorer,
): MessageInitShape<typeof ChainSchema> {
  const { heights, lag, trouble, unproven, reorgs, backfill, follower } = chain
  return {
    network: chain.network,
    chainId: chain.chainId,
    state: Chain_State[chain.state],
    headBlock: heights && BigInt(heights.head),
    scannedBlock: heights && BigInt(heights.scanned),
    scannedTime: heights && timestampFromDate(heights.scannedTime),
    finalBlock: heights && BigInt(heights.final),
    lagBlocks: lag?.blocks,
    lagSeconds: lag?.seconds,
    alarm: chain.alarm,
    screeningListChangedAt: chain.listChangedAt && timestampFromDate(chain.listChangedAt),
    explorer,
    trouble: trouble && { since: timestampFromDate(trouble.since), reason: trouble.reason },
    unproven: unproven && { since: timestampFromDate(unproven.since), reason: unproven.reason },
    reorgs: reorgs && { count: reorgs.count, deepestBlocks: reorgs.deepest, lastAt: timeOf(reorgs.lastAt) },
    backfill: backfill && {
      ...backfill,
      blocksDone: BigInt(backfill.blocksDone),
      blocksTotal: BigInt(backfill.blocksTotal),
    },
    nodes: chain.nodes.map((node) => nodeToProto(node, now)),
    suspects: chain.suspects.map(({ host, reason, at }) => ({ host, reason, at: timeOf(at) })),
    follower: follower && {
      since: timestampFromDate(follower.since),
      reportedAt: timestampFromDate(follower.reportedAt),
      process: isOperators ? follower.process : undefined,
    },
    backlog: isOperators
      ? {
          unmatched: chain.unmatched.map(({ reason, events }) => ({ reason: UnmatchedEvent_Reason[reason], events })),
          unpricedPayments: chain.unpricedPayments,
        }
      : undefined,
  }
}

function nodeToProto(node: NodeReport, now: Date): MessageInitShape<typeof Chain_NodeSchema> {
  const { host, rate, pausedUntilMs = 0, budgetLeft, logRange, batchSize, requests } = node
  const isPaused = pausedUntilMs > now.getTime()
  const state = isPaused ? 'PAUSED' : node.breaker === 'OPEN' ? 'LEFT_ALONE' : 'IN_USE'
  return {
    host,
    state: Chain_Node_State[state],
    pausedUntil: isPaused ? timestampFromDate(new Date(pausedUntilMs)) : undefined,
    rate: rate && { ...rate, unit: Chain_Rate_Unit[rate.unit] },
    budgetLeft: budgetLeft === undefined ? undefined : toInt32(budgetLeft),
    logRange: logRange === undefined ? undefined : toInt32(logRange),
    batchSize,
    requests: toInt32(requests),
    calls: Object.entries(node.calls).map(([method, { calls, errors }]) => ({
      method,
      calls: toInt32(calls),
      errors: toInt32(errors),
    })),
  }
}

function toInt32(count: number): number {
  return Math.max(0, Math.min(MAX_INT32, Math.floor(count)))
}

function timeOf(iso: string | undefined) {
  return iso === undefined ? undefined : timestampFromDate(new Date(iso))
}

/** The message of an unmatched event. */
export function eventToProto(
  listed: ListedUnmatched,
  { tokens, explain }: Pick<OperationsCalls, 'tokens' | 'explain'>,
): MessageInitShape<typeof UnmatchedEventSchema> {
  const { network, event } = listed
  const { explanation, remedy, acceptableAs } = explain(listed)
  const { to = '', emitter = '', amount = '0' } = event
  const token = event['token'] as Address | undefined
  const known = token === undefined ? tokens.native(network) : tokens.byAddress(network, token)
  return {
    network,
    txHash: listed.txHash,
    eventIndex: listed.eventIndex,
    blockNumber: BigInt(listed.blockNumber),
    timestamp: timestampFromDate(listed.timestamp),
    account: listed.account,
    reason: UnmatchedEvent_Reason[listed.reason],
    explanation,
    remedy,
    acceptableAs: acceptableAs && UnmatchedEvent_Acceptance[acceptableAs],
    contract: formatAddress(emitter as Address),
    topic: listed.topic,
    payee: formatAddress(to as Address),
    payer: event['payer'] && formatAddress(event['payer'] as Address),
    tokenAddress: token && formatAddress(token),
    currency: known?.id,
    amount: known && formatAmount(BigInt(amount), known.decimals),
    amountBaseUnits: amount,
  }
}
