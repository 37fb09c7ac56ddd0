/** A chain with payments in it, read through a node with limits by a clock that stands still unless somebody waits. */
import type { Knex } from 'knex'
import { toQuantity } from '../../../src/contracts/words.ts'
import type { Account } from '../../../src/domain/account.ts'
import { caip2Of } from '../../../src/domain/chain.ts'
import type { PaymentRequest } from '../../../src/domain/payment-request.ts'
import { createNodeLimits } from '../../../src/nodes/node-limits.ts'
import { forgetChain } from '../../../src/store/forget-chain.ts'
import { addAccount, canonical, configOf, detect, makeRequest, storeRequest } from '../detection.ts'
import { startTestChain, type TestChain } from './chain.ts'
import { type LimitedNode, type NodeTerms, startLimitedNode } from './limited-node.ts'

export interface LimitsStage {
  /** Reads the whole chain anew through a node with these limits, then follows some new blocks with payments. */
  run(terms: NodeTerms): Promise<LimitsOutcome>
  stop(): Promise<void>
}

export interface LimitsOutcome {
  /** Payments that were found, of those that were made. */
  readonly found: number
  readonly made: number
  /** Final blocks that were read as ranges. */
  readonly blocks: number
  /** The calls of each request. */
  readonly sizes: readonly number[]
  /** Calls for the logs of a range. */
  readonly ranges: number
  /** Calls that were refused. */
  readonly refused: number
}

interface StageState {
  readonly chain: TestChain
  readonly node: LimitedNode
  readonly knex: Knex
  readonly request: PaymentRequest
  readonly clock: { nowMs: number }
  made: number
}

const FINALITY = 3

/**
 * @param knex - a migrated database without chains
 * @param blocks - empty ones, in each of the gaps between payments
 */
export async function openLimitsStage(
  knex: Knex,
  chainId: number,
  { blocks, payments }: { blocks: number; payments: number },
): Promise<LimitsStage> {
  const chain = await startTestChain({ chainId })
  const clock = { nowMs: Date.now() }
  const node = await startLimitedNode(chain.rpcUrl, {}, () => clock.nowMs)
  const account = await addAccount(knex, 'shop')
  const terms = { payee: canonical(chain.wallets[3]), network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '100000' }
  const request = makeRequest(terms)
  const state: StageState = { chain, node, knex, request, clock, made: 0 }
  for (let n = 0; n < payments; n++) {
    await chain.client.rpc.call('anvil_mine', [toQuantity(blocks)])
    await pay(state)
  }
  await chain.mine({ blocks: FINALITY + 1 })
  return {
    run: (limits) => run(state, limits, account),
    async stop() {
      await node.stop()
      await chain.stop()
    },
  }
}

async function pay(state: StageState): Promise<void> {
  const { chain, request } = state
  const { paymentReference } = request
  await chain.pay(chain.wallets[1], { kind: 'NATIVE', to: chain.wallets[3], amount: 1n, paymentReference })
  state.made += 1
}

/** Goes back to the same chain after each run. */
async function run(state: StageState, terms: NodeTerms, account: Account): Promise<LimitsOutcome> {
  const { chain, node, knex, clock } = state
  const { rpc } = chain.client
  const snapshot = await rpc.call('evm_snapshot', [])
  const madeBefore = state.made
  await forgetChain(knex, { name: 'BASE', chainId: caip2Of(chain.chainId) }, new Date(clock.nowMs))
  await knex('leases').delete()
  await storeRequest(knex, account, state.request)
  const { number } = await chain.client.head()
  node.limit(terms)
  node.resetCounts()
  const config = configOf(chain, 'BASE', { rpcUrls: [node.url], finality: { useFinalizedTag: false, depth: FINALITY } })
  const limits = createNodeLimits([config], {
    clock: () => clock.nowMs,
    async sleep(ms) {
      const untilMs = clock.nowMs + ms
      await new Promise((resolve) => setImmediate(resolve))
      clock.nowMs = Math.max(clock.nowMs, untilMs)
    },
  })
  const detection = detect(knex, [config], { clock: () => new Date(clock.nowMs), limits })
  await detection.scanOnce()
  for (let n = 0; n < 3; n++) {
    await pay(state)
    await detection.scanOnce()
  }
  await chain.mine({ blocks: FINALITY + 1 })
  await detection.scanOnce()
  const [row] = await knex('payments').where({ account_id: account.id }).count<{ count: string }[]>()
  const counts = { sizes: [...node.sizes()], ranges: node.ranges(), refused: node.refused() }
  const made = state.made
  state.made = madeBefore
  await rpc.call('evm_revert', [snapshot])
  return { found: Number(row?.count), made, blocks: Number(number) - FINALITY, ...counts }
}

/**
 * The same, of a client that knows the limits and is refused nothing: computed from what a node without limits was asked.
 *
 * @returns `requests` is undefined where narrow ranges leave nothing to put in one batch
 */
function idealOf(
  { sizes, ranges }: LimitsOutcome,
  { blocks, made }: LimitsOutcome,
  { range, logs, batch }: NodeTerms,
): { readonly calls: number; readonly requests: number | undefined } {
  const byBlocks = range === undefined ? 0 : Math.ceil(blocks / range.blocks)
  const byLogs = logs === undefined ? 0 : Math.ceil(made / logs.most)
  // Each range is two calls: its logs, and the block at its end.
  const calls = sumOf(sizes) + 2 * Math.max(0, Math.max(byBlocks, byLogs) - ranges)
  if (range !== undefined || logs !== undefined) return { calls, requests: undefined }
  const most = batch?.most ?? Number.POSITIVE_INFINITY
  return { calls, requests: sumOf(sizes.map((size) => Math.ceil(size / Math.min(most, size)))) }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Calls and requests, whichever is more, as a part of what a client needs that knows the limits. */
export function overheadOf(unlimited: LimitsOutcome, outcome: LimitsOutcome, terms: NodeTerms): number {
  const ideal = idealOf(unlimited, outcome, terms)
  const ofRequests = ideal.requests === undefined ? 0 : outcome.sizes.length / ideal.requests
  return Math.max(sumOf(outcome.sizes) / ideal.calls, ofRequests)
}

/** What is needed at most, as a part of what a client needs that knows the limits. */
export const MAX_OVERHEAD = 1.3
