/**
 * The clock of one demo chain. The node mines nothing by itself: left to it, base fees would decay to nothing and a
 * block would come every second, used or not.
 */

import type { Logger } from '../../domain/logger.ts'
import { IDLE_BLOCK_SEC, MOST_UNSAVED_BLOCKS } from './chain-specs.ts'
import { createFeeds } from './feeds.ts'
import type { DemoChain } from './network.ts'
import { toQuantity } from './rpc.ts'

const TICK_MS = 1_000
/** Saving writes the whole chain, so it waits for a few blocks, or for a while. */
const SAVE_AFTER_BLOCKS = 4
const SAVE_AFTER_SEC = 30

export interface Clock {
  /** Ticks each second from now on. */
  start(): void
  /** Mines a block at once. */
  mineNow(): Promise<void>
  /** Resolves when the last tick is over and none follows. */
  stop(): Promise<void>
}

/**
 * Every second: mines when transactions wait, or when the last block is ten seconds old; moves the feeds that are due
 * with it. Saves the chain so often that never more than `MOST_UNSAVED_BLOCKS` would be lost by a hard kill of everything.
 */
export function createClock(
  chain: DemoChain,
  {
    now,
    logger,
    startBlock,
  }: { now: () => Date; logger: Logger; startBlock: { number: bigint; timestampSec: number } },
): Clock {
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
    if (Number(head - savedBlock) >= MOST_UNSAVED_BLOCKS) await save()
    await feeds.move(nowSec())
    blockTimeSec = Math.max(nowSec(), blockTimeSec + 1)
    head = await client.mine({ timestampSec: blockTimeSec, baseFeePerGas: spec.baseFeePerGas })
    // Also for the next block, so that whoever asks what it will cost is told the truth.
    await client.rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(spec.baseFeePerGas)])
    if (Number(head - savedBlock) >= SAVE_AFTER_BLOCKS) await save()
  }

  async function tick(): Promise<void> {
    const pool = await client.rpc.call<{ pending: string }>('txpool_status')
    const waiting = Number(pool.pending) > 0
    if (waiting || nowSec() - blockTimeSec >= IDLE_BLOCK_SEC) await mine()
    else if (head > savedBlock && nowSec() - savedSec >= SAVE_AFTER_SEC) await save()
  }

  /** One after the other: two that mine at once would mix up times and base fees. */
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

  // Nothing is to be done for a chain that has ended; whoever watches the network's crashes tells of it.
  void chain.anvil.exited.then(() => {
    stopped = true
    clearTimeout(timer)
  })

  return {
    start: schedule,
    mineNow: () => enqueue(mine),
    async stop() {
      stopped = true
      clearTimeout(timer)
      await work
    },
  }
}
