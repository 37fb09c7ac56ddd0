/**
 * The demo's own bridge between its chains: quotes and statuses over HTTP with the API of LI.FI, and a relayer that delivers. It runs in
 * the demo's process; its only state is on the chains.
 */
import { setTimeout } from 'node:timers/promises'
import type { Logger } from '../../src/domain/logger.ts'
import { createBook } from './book.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { createRelayer } from './relayer.ts'
import { startBridgeServer } from './server.ts'

const LOOK_EVERY_MS = 1_000

export type Bridge = Awaited<ReturnType<typeof startBridge>>

export async function startBridge(
  chains: readonly BridgeChain[],
  { now, logger }: { now: () => Date; logger: Logger },
) {
  const book = createBook(chains)
  const relayer = createRelayer(chains, book, logger)
  const server = await startBridgeServer(chains, book, { now, logger })
  const stopping = new AbortController()

  async function look(): Promise<void> {
    await book.read()
    await relayer.step()
  }

  async function run(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      await look().catch((error: unknown) => {
        if (!signal.aborted) logger.warn({ err: error }, 'the bridge could not read its chains; it tries again')
      })
      await setTimeout(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  let running: Promise<void> | undefined
  return {
    /** Without `/v1`. */
    url: server.url,
    /** Starts the relayer, which also completes the open deposits of an earlier run. */
    relay(): void {
      running ??= run()
    },
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.all([running, server.stop()])
    },
  }
}
