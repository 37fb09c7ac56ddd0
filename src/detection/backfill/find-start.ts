import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import type { ReadContract } from '../sql/chain-contracts-repository.ts'
import type { StoredChain } from '../sql/chain-state-repository.ts'
import { oldestRequestOn, sinceRequest } from '../sql/oldest-request.ts'

/** The first block of a chain to read. */
export interface FoundStart {
  readonly block: number
  /** The time at or after which `block` is the first; undefined where the chains file gives the block. */
  readonly since: Date | undefined
  /** Whether it replaces a lower stored start: one from the chains file does, one from the time of a request does not. */
  readonly mayRaise: boolean
}

/** Whether the start has to be found again: none is stored, the chains file has changed, or an older request was stored. */
export function isStartOutdated(stored: StoredChain, { startBlock, since }: ChainConfig): boolean {
  if (stored.startBlock === undefined) return true
  if (startBlock !== undefined) return stored.startBlock !== startBlock || stored.startSince !== undefined
  if (since !== undefined) return stored.startSince?.getTime() !== since.getTime()
  if (stored.startSince === undefined) return true
  return stored.wantedSince !== undefined && stored.wantedSince < stored.startSince
}

/**
 * Finds the block from which a chain is read: the configured one, else that of the oldest request. Without a request, it is the last block that was read.
 *
 * @throws RpcError
 */
export async function findStart(
  { knex, config, reader }: { readonly knex: Knex; readonly config: ChainConfig; readonly reader: ChainReader },
  stored: StoredChain,
  signal: AbortSignal | undefined,
): Promise<FoundStart> {
  const { startBlock, since } = config
  if (startBlock !== undefined) return { block: startBlock, since: undefined, mayRaise: true }
  if (since !== undefined) {
    return { block: await findFirstBlock(reader, since, stored.finalBlock, signal), since, mayRaise: true }
  }
  const wanted = await findWanted(knex, config, stored)
  const block = await findFirstBlock(reader, wanted, stored.scannedBlock, signal)
  return { block, since: wanted, mayRaise: false }
}

/** The earliest of three times: that of the oldest stored request, that which older requests have asked for since, and that of the stored start. */
async function findWanted(knex: Knex, { name }: ChainConfig, stored: StoredChain): Promise<Date> {
  const { startSince, wantedSince, scannedTime } = stored
  const oldest = await oldestRequestOn(knex, name)
  const times = [startSince, wantedSince, oldest && sinceRequest(oldest)].filter((time) => time !== undefined)
  return times.length === 0 ? scannedTime : new Date(Math.min(...times.map((time) => time.getTime())))
}

/**
 * Finds the first block whose time is not before a moment, by halving: about 25 requests on a chain of 30 million blocks.
 *
 * @param until - the highest block to look at
 * @returns `until` + 1 where all blocks are older
 * @throws RpcError
 */
async function findFirstBlock(
  reader: Pick<ChainReader, 'headers'>,
  since: Date,
  until: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  if (since.getTime() <= 0) return 0
  let low = 0
  let high = until + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [header] = await reader.headers([middle], signal)
    if (header === undefined) throw new RpcError('UNREACHABLE', `the node does not have block ${middle}`)
    if (header.timestampSec * 1_000 >= since.getTime()) high = middle
    else low = middle + 1
  }
  return low
}

/** From which block each contract is read. The genesis block has no logs. */
export function contractsFrom(config: ChainConfig, start: number): ReadContract[] {
  return followedContracts(config).map(({ address, fromBlock }) => ({
    address,
    fromBlock: Math.max(1, fromBlock, start),
  }))
}
