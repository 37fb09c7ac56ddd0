/** Every deposit, as the logs of the bridge's contracts describe it. The bridge stores nothing else. */
import type { Hex } from 'viem'
import { toQuantity } from '../network/rpc.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { type BridgeEvent, type Deposit, decodeBridgeLog } from './deposit.ts'

/** Where an event happened. */
export interface Place {
  chain: BridgeChain
  txHash: Hex
  block: number
}

export interface Entry {
  id: Hex
  deposit: Deposit
  deposited: Place
  delivered?: Place & { isPaid: boolean }
  /** The payer got it back. */
  returned?: Place
}

interface Head {
  number: number
  hash: string
  timestampSec: number
}

/** The last blocks are read again each time, because a reorg may have replaced them. */
const UNSETTLED_BLOCKS = 64

interface Found {
  place: Place
  event: BridgeEvent
}

interface Pages {
  head: Head
  found: readonly Found[]
}

export type Book = ReturnType<typeof createBook>

/** Creates an empty book. */
export function createBook(chains: readonly BridgeChain[]) {
  const pages = new Map<BridgeChain, Pages>()

  async function readChain(chain: BridgeChain): Promise<void> {
    const known = pages.get(chain)
    const { number, hash, timestampSec } = await chain.client.head()
    if (known?.head.hash === hash) return
    const head = { number: Number(number), hash, timestampSec }
    const from = known === undefined ? 0 : Math.max(0, known.head.number - UNSETTLED_BLOCKS)
    const kept = known?.found.filter(({ place }) => place.block < from) ?? []
    pages.set(chain, { head, found: [...kept, ...(await readLogs(chain, from, head.number))] })
  }

  let reading: Promise<void> | undefined

  async function readAll(): Promise<void> {
    try {
      await Promise.all(chains.map(readChain))
    } finally {
      reading = undefined
    }
  }

  return {
    /** Reads new logs. @throws errors of a chain's node */
    read: () => (reading ??= readAll()),
    entries: () => toEntries([...pages.values()].flatMap(({ found }) => found)),
    /** The last block that was read of a chain. @throws Error when the chain was never read */
    headOf(chain: BridgeChain): Head {
      const known = pages.get(chain)
      if (known === undefined) throw new Error(`${chain.name} was not read yet`)
      return known.head
    },
  }
}

interface RpcLog {
  topics: Hex[]
  data: Hex
  transactionHash: Hex
  blockNumber: Hex
}

async function readLogs(chain: BridgeChain, from: number, to: number): Promise<Found[]> {
  const filter = { address: [chain.escrow, chain.executor], fromBlock: toQuantity(from), toBlock: toQuantity(to) }
  const logs = await chain.client.rpc.call<RpcLog[]>('eth_getLogs', [filter])
  return logs.map((log) => ({
    place: { chain, txHash: log.transactionHash, block: Number(log.blockNumber) },
    event: decodeBridgeLog(log),
  }))
}

function toEntries(found: readonly Found[]): Entry[] {
  const entries = new Map<Hex, Entry>()
  for (const { place, event } of found) {
    if (event.kind === 'DEPOSITED') entries.set(event.id, { id: event.id, deposit: event.deposit, deposited: place })
  }
  for (const { place, event } of found) {
    const entry = entries.get(event.id)
    if (entry === undefined) continue
    // Anybody can deliver under any id; only deliveries of the relayer count.
    if (event.kind === 'DELIVERED' && event.relayer.toLowerCase() === place.chain.relayer.toLowerCase()) {
      entry.delivered = { ...place, isPaid: event.isPaid }
    }
    if (event.kind === 'RETURNED') entry.returned = place
  }
  return [...entries.values()]
}
