import type { Lease } from '../db/leases-repository.ts'
import type { ChainConfig, FinalityConfig } from '../domain/chains-file.ts'
import type { Hex } from '../domain/hex.ts'
import type { Logger } from '../domain/logger.ts'
import type { BlockHeader, ChainReader, ChainView } from './chain-reader.ts'
import type { RpcLog } from './decode-events.ts'
import type { Findings } from './detected.ts'
import type { DetectionRepository, StoredBlock } from './detection-repository.ts'
import { type FindingTools, findPayments } from './find-payments.ts'
import type { PaymentWriter } from './payment-writer.ts'
import type { TransactionReceipt } from './read-transaction.ts'
import { RpcError } from './rpc-error.ts'

/** What a step came to: there is more to do at once, or nothing before the next block. */
export type StepOutcome = 'MORE' | 'CAUGHT_UP' | 'ALARM'

/** Where a follower is. */
export interface FollowerState {
  readonly scanned: StoredBlock
  /** Blocks that are not final and the last that is; the last of them is `scanned`. */
  readonly blocks: readonly StoredBlock[]
  readonly headBlock: number
  readonly finalBlock: number
}

/** Follows one chain. */
export interface BlockFollower {
  /**
   * Looks at the chain once and writes what is new.
   *
   * @throws RpcError, errors of the database; nothing is lost, the next step begins where the last one ended
   */
  step(signal?: AbortSignal): Promise<StepOutcome>
  /** What this process knows; undefined before the first step. */
  state(): FollowerState | undefined
  /** Forgets what it knows, so that the next step reads it from the database. */
  reset(): void
}

export interface BlockFollowerOptions {
  readonly config: ChainConfig
  readonly lease: Lease
  readonly tools: FindingTools
  readonly reader: ChainReader
  readonly repository: DetectionRepository
  readonly writer: PaymentWriter
  readonly logger: Logger
  /** Told after each commit what was found, and who knew which topics at that time. */
  readonly onCommitted: (findings: Findings) => Promise<void>
}

const BLOCKS_A_STEP = 50
const FIRST_RANGE = 2_000
const LARGEST_RANGE = 100_000
/** Logs in one step of a back-fill from which on the range no longer grows. */
const MANY_LOGS = 4_000

/** A block or transaction that was there a moment ago is gone: the chain moved while it was read. */
class ChainMovedError extends Error {
  override readonly name = 'ChainMovedError'
}

/** Makes the follower of one chain: ranges of final blocks first, then block by block by hash. */
export function createBlockFollower(options: BlockFollowerOptions): BlockFollower {
  const { config, lease, tools, reader, repository, writer, logger, onCommitted } = options
  const { finality, name: network } = config
  let state: FollowerState | undefined
  let range = FIRST_RANGE

  async function load(signal: AbortSignal | undefined): Promise<FollowerState | 'ALARM'> {
    const stored = await repository.chain(tools.chain.chainId)
    if (stored?.alarm !== undefined) return 'ALARM'
    if (stored === undefined) {
      await open(signal)
      return load(signal)
    }
    await checkGenesis(stored.genesisHash, signal)
    const blocks = await repository.blocks(stored.chainId)
    const scanned = { number: stored.scannedBlock, hash: stored.scannedHash }
    const { headBlock, finalBlock } = stored
    return { scanned, blocks: blocks.length > 0 ? blocks : [scanned], headBlock, finalBlock }
  }

  /** The same id with another beginning is another chain: nothing that is stored would be true of it. */
  async function checkGenesis(known: Hex, signal: AbortSignal | undefined): Promise<void> {
    const [genesis] = await reader.headers([0], signal)
    if (genesis === undefined || genesis.hash === known) return
    const text = `its first block was ${known} and is now ${genesis.hash}`
    throw new RpcError('WRONG_CHAIN', `${network} is another chain than the one that was followed: ${text}`)
  }

  /** The checkpoint begins right before the first block that can have an event, on ground that no reorg takes away. */
  async function open(signal: AbortSignal | undefined): Promise<void> {
    const first = Math.min(...config.contracts.map(({ fromBlock }) => fromBlock))
    const view = await reader.view(0, finality.useFinalizedTag, signal)
    const before = Math.max(0, Math.min(first - 1, finalNumber(view, finality)))
    const [genesis, checkpoint] = await reader.headers([0, before], signal)
    if (genesis === undefined || checkpoint === undefined) {
      throw new RpcError('UNREACHABLE', `the node of ${network} does not have block ${before}`)
    }
    await writer.open(genesis.hash, checkpoint, view.head.number)
  }

  async function step(signal?: AbortSignal): Promise<StepOutcome> {
    const loaded = state ?? (await load(signal))
    if (loaded === 'ALARM') return 'ALARM'
    state = loaded
    const view = await reader.view(loaded.scanned.number, finality.useFinalizedTag, signal)
    const fork = findFork(loaded, view)
    if (fork) return rewind(loaded, signal)
    try {
      const finalBlock = Math.max(loaded.finalBlock, finalNumber(view, finality))
      const at = { ...loaded, headBlock: Math.max(view.head.number, loaded.scanned.number), finalBlock }
      if (at.headBlock === at.scanned.number) return await stay(loaded, at, signal)
      if (at.scanned.number < finalBlock) return await backfill(at, signal)
      return await follow(at, signal)
    } catch (error) {
      if (!(error instanceof ChainMovedError)) throw error
      logger.debug({ network, reason: error.message }, 'the chain moved while it was read')
      return 'MORE'
    }
  }

  /** No new block: finality alone may have moved. */
  async function stay(before: FollowerState, at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    if (before.finalBlock !== at.finalBlock || before.headBlock !== at.headBlock)
      await advance(at, [], undefined, signal)
    return 'CAUGHT_UP'
  }

  async function backfill(at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    const from = at.scanned.number + 1
    const to = Math.min(at.finalBlock, from + range - 1)
    const read = await readRange(from, to, signal)
    if (read === undefined) return 'MORE'
    if (read.last === undefined) return 'CAUGHT_UP'
    const logs = inChainOrder(read.logs)
    const findings = await find(logs, [read.last], (block) => block >= from && block <= to, signal)
    await advance(at, [read.last], findings, signal)
    if (logs.length < MANY_LOGS) range = Math.min(range * 2, LARGEST_RANGE)
    return 'MORE'
  }

  /** @returns undefined when the range was too much for the node, and is smaller now */
  async function readRange(from: number, to: number, signal: AbortSignal | undefined) {
    try {
      return await reader.logsInRange(from, to, signal)
    } catch (error) {
      const isTooMuch = error instanceof RpcError && (error.kind === 'TOO_LARGE' || error.kind === 'TIMEOUT')
      if (!isTooMuch || from === to) throw error
      range = Math.max(1, Math.floor((to - from + 1) / 2))
      return undefined
    }
  }

  async function follow(at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    const last = Math.min(at.headBlock, at.scanned.number + BLOCKS_A_STEP)
    const numbers = Array.from({ length: last - at.scanned.number }, (_, index) => at.scanned.number + 1 + index)
    const linked = linkedTo(at.scanned, await reader.headers(numbers, signal))
    const lists = await reader.logsOfBlocks(
      linked.map(({ hash }) => hash),
      signal,
    )
    const missing = lists.indexOf(undefined)
    const blocks = missing < 0 ? linked : linked.slice(0, missing)
    const tip = blocks.at(-1)
    if (tip === undefined) throw new ChainMovedError('the next block does not stand on the last one')
    // A node may answer an orphaned hash with an empty list. What stands now stood while it was asked, and so did all below.
    const [standing] = await reader.headers([tip.number], signal)
    if (standing?.hash !== tip.hash) throw new ChainMovedError(`block ${tip.number} was replaced while it was read`)
    const hashes = new Set(blocks.map(({ hash }) => hash))
    const logs = inChainOrder(lists.slice(0, blocks.length).flatMap((list) => list ?? []))
    const numbersRead = new Set(blocks.map(({ number }) => number))
    const findings = await find(logs, blocks, (number, hash) => numbersRead.has(number) && hashes.has(hash), signal)
    await advance(at, blocks, findings, signal)
    return tip.number === at.headBlock ? 'CAUGHT_UP' : 'MORE'
  }

  function find(
    logs: readonly RpcLog[],
    blocks: readonly BlockHeader[],
    stands: (block: number, hash: Hex) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<Findings> {
    const logged = {
      logs,
      receipts: async (hashes: readonly Hex[]) => readReceipts(reader, hashes, stands, signal),
      blockTimes: (numbers: readonly number[]) => readBlockTimes(reader, { numbers, blocks, logs }, signal),
    }
    return findPayments(tools, logged, signal)
  }

  async function advance(
    at: FollowerState,
    blocks: readonly BlockHeader[],
    findings: Findings | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { headBlock, finalBlock } = at
    const write = { lease, from: at.scanned, blocks, headBlock, finalBlock }
    await writer.advance(findings === undefined ? write : { ...write, findings }, signal)
    const scanned = blocks.at(-1) ?? at.scanned
    const ground = Math.min(finalBlock, scanned.number)
    const all = [...at.blocks, ...blocks.map(({ number, hash }) => ({ number, hash }))]
    const kept = all.filter(({ number }) => number >= ground)
    state = { scanned: { number: scanned.number, hash: scanned.hash }, blocks: kept, headBlock, finalBlock }
    if (findings !== undefined) await onCommitted(findings)
  }

  /** Takes back every block that no longer stands; beneath finality that must not happen, so there the chain stops. */
  async function rewind(at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    const headers = await reader.headers(
      at.blocks.map(({ number }) => number),
      signal,
    )
    const to = at.blocks.findLast(({ number, hash }) => {
      const standing = headers.find((header) => header?.number === number)
      return standing?.hash === hash
    })
    if (to === undefined) return stop(at, headers[0])
    // Between two looks the block came back.
    if (to.number === at.scanned.number) return 'MORE'
    await writer.rewind({ lease, from: at.scanned, to }, signal)
    logger.info({ network, from: at.scanned.number, to: to.number }, 'the chain reorganised: blocks were taken back')
    state = { ...at, scanned: to, blocks: at.blocks.filter(({ number }) => number <= to.number) }
    return 'MORE'
  }

  async function stop(at: FollowerState, standing: BlockHeader | undefined): Promise<StepOutcome> {
    const [ground] = at.blocks
    // The node merely lacks the block: it is behind, or catching up.
    if (standing === undefined || ground === undefined) return 'CAUGHT_UP'
    const text = `block ${ground.number} was final with hash ${ground.hash}, and is now ${standing.hash}`
    await writer.raiseAlarm(text)
    logger.error(
      { network, block: ground.number, alarm: text },
      'the chain reorganised beneath finality: it is stopped',
    )
    state = undefined
    return 'ALARM'
  }

  return {
    step,
    state: () => state,
    reset: () => {
      state = undefined
    },
  }
}

/** Whether the block that was looked at last, or the head of a chain that became shorter, is another now. */
function findFork({ scanned, blocks }: FollowerState, { atTip, head }: ChainView): boolean {
  if (atTip !== undefined) return atTip.hash !== scanned.hash
  const known = blocks.find(({ number }) => number === head.number)
  return known !== undefined && known.hash !== head.hash
}

/** The node's finalized block where it tells one, else by depth. */
function finalNumber({ head, finalized }: ChainView, { depth, useFinalizedTag }: FinalityConfig): number {
  const number = useFinalizedTag && finalized !== undefined ? finalized.number : head.number - depth
  return Math.max(0, Math.min(number, head.number))
}

/** The headers that form a chain on `ground`, up to the first that is missing or stands elsewhere. */
function linkedTo(ground: StoredBlock, headers: readonly (BlockHeader | undefined)[]): BlockHeader[] {
  const linked: BlockHeader[] = []
  let parent = ground.hash
  for (const header of headers) {
    if (header?.parentHash !== parent) break
    linked.push(header)
    parent = header.hash
  }
  return linked
}

function inChainOrder(logs: readonly RpcLog[]): RpcLog[] {
  return logs.toSorted(
    (a, b) => Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex),
  )
}

async function readReceipts(
  reader: ChainReader,
  hashes: readonly Hex[],
  stands: (block: number, hash: Hex) => boolean,
  signal: AbortSignal | undefined,
): Promise<TransactionReceipt[]> {
  const receipts = hashes.length === 0 ? [] : await reader.receipts(hashes, signal)
  return receipts.map((receipt, index) => {
    if (receipt === undefined || !stands(receipt.blockNumber, receipt.blockHash)) {
      throw new ChainMovedError(`transaction ${hashes[index]} is no longer where its log was`)
    }
    return receipt
  })
}

interface TimesWanted {
  readonly numbers: readonly number[]
  readonly blocks: readonly BlockHeader[]
  readonly logs: readonly RpcLog[]
}

/** From headers and logs that were read already, the rest from the chain. */
async function readBlockTimes(
  reader: ChainReader,
  { numbers, blocks, logs }: TimesWanted,
  signal: AbortSignal | undefined,
): Promise<Map<number, number>> {
  const times = new Map<number, number>()
  for (const { blockNumber, blockTimestamp } of logs) {
    if (blockTimestamp !== undefined) times.set(Number(blockNumber), Number(blockTimestamp))
  }
  for (const { number, timestampSec } of blocks) times.set(number, timestampSec)
  const unread = numbers.filter((number) => !times.has(number))
  const headers = unread.length === 0 ? [] : await reader.headers(unread, signal)
  for (const header of headers) if (header !== undefined) times.set(header.number, header.timestampSec)
  return times
}
