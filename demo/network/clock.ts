/**
 * The clock of one demo chain. The node does not mine by itself, because it would mine a block every second, even an empty one, and let
 * the base fee decay to zero.
 */
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
    await feeds.move(nowSec())
    blockTimeSec = Math.max(nowSec(), blockTimeSec + 1)
    head = await client.mine({ timestampSec: blockTimeSec, baseFeePerGas: spec.baseFeePerGas })
    // Also for the next block, so that estimates of its gas price are right.
    await client.rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(spec.baseFeePerGas)])
    if (Number(head - savedBlock) >= SAVE_AFTER_BLOCKS) await save()
  }

  async function tick(): Promise<void> {
    const pool = await client.rpc.call<{ pending: string }>('txpool_status')
    const waiting = Number(pool.pending) > 0
    if (waiting || nowSec() - blockTimeSec >= IDLE_BLOCK_SEC) await mine()
    else if (head > savedBlock && nowSec() - savedSec >= SAVE_AFTER_SEC) await save()
  }

  /** Runs steps one after the other: concurrent ones would mix up times and base fees. */
  function enqueue(step: () => Promise<void>): Promise<void> {
    const done = work.then(step)
    work = done.catch(() => undefined)
    return done
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
    /** Resolves when the last tick is over. */
    async stop(): Promise<void> {
      stopped = true
      clearTimeout(timer)
      await work
    },
  }
}
