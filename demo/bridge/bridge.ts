/**
 * The demo's own bridge between its chains: quotes and statuses over HTTP with the API of LI.FI, and a relayer that delivers. It runs in
 * the demo's process; its only state is on the chains.
 */
import { setTimeout } from 'node:timers/promises'
import type { Hex } from 'viem'
import type { Logger } from '../../src/domain/logger.ts'
import { MAX_UNSAVED_BLOCKS } from '../network/chain-specs.ts'
import type { ContractCall } from '../network/demo-contracts.ts'
import { type Book, createBook, type Entry } from './book.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { encodeDelivery, encodeGiveBack, encodeTake, returnFrom } from './deposit.ts'
import { startBridgeServer } from './server.ts'

const CHECK_EVERY_MS = 1_000

export type Bridge = Awaited<ReturnType<typeof startBridge>>

export async function startBridge(
  chains: readonly BridgeChain[],
  { now, logger }: { now: () => Date; logger: Logger },
) {
  const book = createBook(chains)
  const relayer = createRelayer(chains, book, logger)
  const server = await startBridgeServer(chains, book, { now, logger })
  const stopping = new AbortController()

  async function check(): Promise<void> {
    await book.read()
    await relayer.step()
  }

  async function run(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      await check().catch((error: unknown) => {
        if (!signal.aborted) logger.warn({ err: error }, 'the bridge could not read its chains; it tries again')
      })
      await setTimeout(CHECK_EVERY_MS, undefined, { signal }).catch(() => undefined)
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

/** A transaction to send, and its chain. */
interface Task {
  chain: BridgeChain
  call: ContractCall
  /** For the log. */
  message: string
}

/** Blocks on top of a delivery before the deposit is claimed: more than a hard kill can lose, so that a claimed delivery stays. */
const CLAIM_DEPTH = MAX_UNSAVED_BLOCKS + 1

/**
 * Several times what a delivery uses. An estimate would be too low: the executor treats a payment that runs out of gas like one that the
 * contract refuses and succeeds all the same, so the node finds the gas for that case.
 */
const GAS = 1_000_000n

/**
 * The relayer delivers a deposit on the other chain from its own funds, and claims the deposit once the delivery is confirmed. It has expired
 * deposits refunded. Its state is on the chains, so that after a restart it continues where it ended.
 */
export function createRelayer(chains: readonly BridgeChain[], book: Book, logger: Logger) {
  const underWay = new Map<string, Hex>()
  const refused = new Set<string>()

  async function carryOut({ chain, call, message }: Task, key: string): Promise<void> {
    const { rpc } = chain.client
    const sent = underWay.get(key)
    if (sent !== undefined && (await isUnderWay(chain, sent))) return
    const { relayer: from, tipPerGas } = chain
    try {
      // The estimate only shows whether the transaction would be reverted.
      await rpc.call('eth_estimateGas', [{ from, to: call.to, data: call.data }])
      const hash = await chain.client.send(from, call, { gas: GAS, maxPriorityFeePerGas: tipPerGas })
      underWay.set(key, hash)
      logger.info({ chain: chain.name, hash }, message)
    } catch (error) {
      if (!refused.has(key))
        logger.warn(
          { chain: chain.name, err: error },
          'a transaction of the bridge was refused; the bridge keeps trying',
        )
      refused.add(key)
    }
  }

  return {
    /** Sends what is due according to the book. Resolves when the nodes have accepted it, before it is mined. */
    async step(): Promise<void> {
      for (const entry of book.entries()) {
        const task = decide(entry, chains, book)
        if (task !== undefined) await carryOut(task, `${task.message} ${entry.id}`)
      }
    },
  }
}

/** False after it was reverted, or after a reorg removed it and the node dropped it. */
async function isUnderWay({ client }: BridgeChain, hash: Hex): Promise<boolean> {
  const receipt = await client.receipt(hash)
  return receipt?.succeeded ?? (await client.rpc.call('eth_getTransactionByHash', [hash])) !== null
}

/** The next transaction for a deposit; undefined while something else must happen first. */
function decide(entry: Entry, chains: readonly BridgeChain[], book: Book): Task | undefined {
  const { id, deposit, deposited, delivered, closed } = entry
  const source = deposited.chain
  const destination = chains.find(({ chainId }) => BigInt(chainId) === deposit.toChainId)
  if (destination === undefined || closed?.kind === 'RETURNED') return undefined
  if (delivered === undefined) {
    // A claimed deposit is delivered again when a kill has lost the delivery.
    if (book.headOf(destination).timestampSec <= deposit.across.fillDeadline) {
      const call = encodeDelivery(destination.executor, id, deposit)
      return { chain: destination, call, message: 'the bridge delivers a deposit' }
    }
    if (closed !== undefined || book.headOf(source).timestampSec < returnFrom(deposit)) return undefined
    return {
      chain: source,
      call: encodeGiveBack(source.escrow, deposit),
      message: 'the bridge refunds a deposit that was not delivered in time',
    }
  }
  const isConfirmed = book.headOf(destination).number - delivered.block >= CLAIM_DEPTH
  if (closed !== undefined || !isConfirmed) return undefined
  return {
    chain: source,
    call: encodeTake(source.escrow, deposit),
    message: 'the bridge claims a deposit that it delivered',
  }
}
