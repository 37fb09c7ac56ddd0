/**
 * The clock of one demo chain. The node does not mine by itself, because it would mine a block every second, even an empty one, and let
 * the base fee decay to zero.
 */
import type { Hex } from 'viem'
import type { Logger } from '../../src/domain/logger.ts'
import { IDLE_BLOCK_SEC, MAX_UNSAVED_BLOCKS } from './chain-specs.ts'
import { createFeeds } from './feeds.ts'
import type { DemoChain } from './network.ts'
import { toQuantity } from './rpc.ts'

const TICK_MS = 1_000
/** A save writes the whole state of the chain, so it is not done for each block. */
const SAVE_AFTER_BLOCKS = 4
const SAVE_AFTER_SEC = 30

export type Clock = ReturnType<typeof createClock>

/** A transaction as the node answers it. */
type MinedTransaction = { readonly hash: Hex } & Readonly<
  Record<'from' | 'to' | 'input' | 'value' | 'gas' | 'nonce' | 'maxFeePerGas' | 'maxPriorityFeePerGas', Hex>
>

/**
 * Each second, mines a block when transactions wait or the last block is ten seconds old, and moves the feeds that are due. Saves the chain so
 * often that a hard kill never loses more than `MAX_UNSAVED_BLOCKS`.
 */
export function createClock(
  chain: DemoChain,
  options: { now: () => Date; logger: Logger; startBlock: { number: bigint; timestampSec: number } },
) {
  const { now, logger, startBlock } = options
  const { client, spec, state } = chain
  const feeds = createFeeds(chain)
  let head = startBlock.number
  let blockTimeSec = startBlock.timestampSec
  let minedSec = Math.min(blockTimeSec, nowSec())
  /** How far the chain's time is ahead of the real one. */
  let aheadSec = Math.max(0, blockTimeSec - nowSec())
  let savedBlock = startBlock.number
  let savedSec = nowSec()
  let timer: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()
  let stopped = false

  function nowSec(): number {
    return Math.floor(now().getTime() / 1000)
  }

  async function save(): Promise<void> {
    const block = head
    await state.save(client.rpc)
    savedBlock = block
    savedSec = nowSec()
  }

  async function mine(): Promise<void> {
    if (Number(head - savedBlock) >= MAX_UNSAVED_BLOCKS) await save()
    minedSec = nowSec()
    blockTimeSec = Math.max(minedSec + aheadSec, blockTimeSec + 1)
    await feeds.move(blockTimeSec)
    head = await client.mine({ timestampSec: blockTimeSec, baseFeePerGas: spec.baseFeePerGas })
    // Also for the next block, so that estimates of its gas price are right.
    await client.rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(spec.baseFeePerGas)])
    if (Number(head - savedBlock) >= SAVE_AFTER_BLOCKS) await save()
  }

  async function tick(): Promise<void> {
    const pool = await client.rpc.call<{ pending: string }>('txpool_status')
    const waiting = Number(pool.pending) > 0
    if (waiting || nowSec() - minedSec >= IDLE_BLOCK_SEC) await mine()
    else if (head > savedBlock && nowSec() - savedSec >= SAVE_AFTER_SEC) await save()
  }

  /** Runs steps one after the other: concurrent ones would mix up times and base fees. */
  function enqueue<T>(step: () => Promise<T>): Promise<T> {
    const done = work.then(step)
    work = done.then(
      () => undefined,
      () => undefined,
    )
    return done
  }

  /** Nothing final changes, and a kill does not bring the old blocks back. */
  async function reorg(depth: number, before: (hashes: readonly Hex[]) => Promise<unknown>) {
    const replaced = Array.from({ length: depth }, (_, at) => toQuantity(head - BigInt(depth - 1 - at)))
    const blocks = await client.rpc.callAll<{ transactions: MinedTransaction[] }>(
      replaced.map((number) => ['eth_getBlockByNumber', [number, true]]),
    )
    const transactions = blocks.flatMap((block) => block.transactions)
    const hashes = transactions.map(({ hash }) => hash)
    const raw = await client.rpc.callAll<Hex>(hashes.map((hash) => ['eth_getRawTransactionByHash', [hash]]))
    await before(hashes)
    await client.rpc.call('anvil_reorg', [depth, []])
    feeds.refresh()
    await mine()
    await save()
    return transactions.map((fields, at) => ({ raw: raw[at] as Hex, fields }))
  }

  function schedule(): void {
    timer = setTimeout(() => {
      void enqueue(tick)
        .catch((error: unknown) => {
          if (!stopped) logger.warn({ chain: spec.name, err: error }, "a tick of a demo chain's clock failed")
        })
        .then(() => {
          if (!stopped) schedule()
        })
    }, TICK_MS)
  }

  // The network reports the crash of a node itself.
  void chain.anvil.exited.then(() => {
    stopped = true
    clearTimeout(timer)
  })

  return {
    /** Ticks each second. */
    start: schedule,
    /** Mines a block at once. */
    mineNow: () => enqueue(mine),
    /** Puts the chain's time forward, and mines. */
    moveBy: (seconds: number) => {
      aheadSec += seconds
      return enqueue(mine)
    },
    /** Holds the price of a symbol, in USD with 8 decimals, and mines; undefined lets it move again. */
    holdPrice: (symbol: string, price: bigint | undefined) => {
      feeds.hold(symbol, price)
      return enqueue(mine)
    },
    /** How many blocks `reorg` may replace: those that are not final, and whose states the node has, which it forgets when it ends. */
    replaceable: () => Math.min(spec.finalityDepth, Number(head - startBlock.number)),
    /**
     * Replaces the last blocks by as many empty ones and one more.
     *
     * @param depth - how many; at most `replaceable`
     * @param before - is given the transactions in them first
     * @returns these, in order
     */
    reorg: (depth: number, before: (hashes: readonly Hex[]) => Promise<unknown>) => enqueue(() => reorg(depth, before)),
    /** Resolves when the last tick is over. */
    async stop(): Promise<void> {
      stopped = true
      clearTimeout(timer)
      await work
    },
  }
}
