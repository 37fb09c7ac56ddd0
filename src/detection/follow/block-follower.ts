import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { Findings } from '../match/detected.ts'
import type { FindingTools } from '../match/find-payments.ts'
import type { BlockHeader, ChainReader, ChainView } from '../read/chain-reader.ts'
import { ChainMovedError, createEventReader, inChainOrder } from '../read/read-events.ts'
import type { ChainContractsRepository, ContractGap } from '../sql/chain-contracts-repository.ts'
import type { DetectionRepository, StoredBlock } from '../sql/detection-repository.ts'
import type { PaymentWriter } from '../sql/payment-writer.ts'
import { createFinality } from './finality.ts'
import { createFinalBlocksReader, type WantedBlocks, type WriteFinalBlocks } from './read-final-blocks.ts'

/**
 * What a step came to: it moved and there is more to do at once, there is nothing before the next block, or the chain is stopped.
 * Or it came to nothing: `AGAIN` is to be tried anew, `WAIT` hangs on the node.
 */
export type StepOutcome =
  | { readonly kind: 'MORE' | 'CAUGHT_UP' | 'ALARM' }
  | { readonly kind: 'AGAIN' | 'WAIT'; readonly reason: string }

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
  readonly contracts: ChainContractsRepository
  readonly writer: PaymentWriter
  readonly logger: Logger
  readonly clock: () => Date
  /** Told after each commit what was found, and who knew which topics at that time. */
  readonly onCommitted: (findings: Findings) => Promise<void>
}

const BLOCKS_A_STEP = 50

/** From so many on, another node is asked. */
const DISAGREEMENTS_OF_A_NODE = 3

/** For so long one that does not answer is waited for, where the others say that final blocks are others now. */
const SILENCE_OF_A_NODE_MS = 60_000

const MORE: StepOutcome = { kind: 'MORE' }
const CAUGHT_UP: StepOutcome = { kind: 'CAUGHT_UP' }
const ALARM: StepOutcome = { kind: 'ALARM' }

/** Makes the follower of one chain: ranges of final blocks first, then block by block by hash. */
export function createBlockFollower(options: BlockFollowerOptions): BlockFollower {
  const { config, lease, tools, reader, repository, contracts, writer, logger, clock, onCommitted } = options
  const { name: network } = config
  const { useFinalizedTag } = config.finality
  const finality = createFinality({ network, config: config.finality, logger, clock })
  const events = createEventReader({ tools, reader, logger })
  const finalBlocks = createFinalBlocksReader({ reader, events, clock })
  let state: FollowerState | undefined
  let gaps: readonly ContractGap[] = []
  /** Looks in a row that came to nothing because what the node told did not agree, with itself or with what was looked at. */
  let disagreements = 0
  /** Which nodes have said that final blocks are others now, and since when: milliseconds since 1970. */
  let accusation: { readonly sinceMs: number; readonly nodes: Set<number> } | undefined

  async function load(signal: AbortSignal | undefined): Promise<FollowerState | 'ALARM'> {
    const stored = await repository.chain(tools.chain.chainId)
    if (stored?.alarm !== undefined) return 'ALARM'
    if (stored === undefined) {
      await open(signal)
      return load(signal)
    }
    await checkGenesis(stored.genesisHash, signal)
    finality.recall(stored.hasFinalizedTag)
    gaps = await contracts.declare(followedContracts(config), stored.scannedBlock)
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
    const first = Math.min(...followedContracts(config).map(({ fromBlock }) => fromBlock))
    const view = await reader.view(0, useFinalizedTag, signal)
    const byDepth = Math.max(0, view.head.number - config.finality.depth)
    const before = Math.max(0, Math.min(first - 1, finality.finalBlock(view, byDepth)))
    const [genesis, checkpoint] = await reader.headers([0, before], signal)
    if (genesis === undefined || checkpoint === undefined) {
      throw new RpcError('UNREACHABLE', `the node of ${network} does not have block ${before}`)
    }
    await writer.open(genesis.hash, checkpoint, view.head.number)
  }

  async function step(signal?: AbortSignal): Promise<StepOutcome> {
    try {
      return await look(signal)
    } catch (error) {
      doubtOver(error)
      if (!(error instanceof ChainMovedError)) throw error
      disagree(error.message)
      logger.debug({ network, reason: error.message }, 'the chain moved while it was read')
      return { kind: 'AGAIN', reason: error.message }
    }
  }

  /** Another node may have what this one lacks; where none answered, there is nobody to doubt. */
  function doubtOver(error: unknown): void {
    if (error instanceof RpcError && error.kind !== 'TOO_LARGE') reader.doubt(error.message)
  }

  async function look(signal: AbortSignal | undefined): Promise<StepOutcome> {
    const loaded = state ?? (await load(signal))
    if (loaded === 'ALARM') return ALARM
    state = loaded
    const view = await reader.view(loaded.scanned.number, useFinalizedTag, signal)
    if (findFork(loaded, view)) return rewind(loaded, signal)
    accusation = undefined
    const finalBlock = Math.max(loaded.finalBlock, finality.finalBlock(view, loaded.finalBlock))
    const at = { ...loaded, headBlock: Math.max(view.head.number, loaded.scanned.number), finalBlock }
    if (at.headBlock === at.scanned.number) return stay(loaded, at, view, signal)
    if (at.scanned.number < finalBlock) return backfill(at, signal)
    const followed = await follow(at, signal)
    disagreements = 0
    return followed.kind === 'CAUGHT_UP' ? fillGap(at, signal) : followed
  }

  /** Chains move, and nodes behind one address differ by some blocks for some seconds; what does so at every look is the node. */
  function disagree(reason: string): void {
    disagreements += 1
    if (disagreements % DISAGREEMENTS_OF_A_NODE === 0) reader.doubt(reason)
  }

  /** Another node may have it. */
  function lacking(reason: string): StepOutcome {
    reader.doubt(reason)
    return { kind: 'WAIT', reason }
  }

  /** No new block: finality alone may have moved. */
  async function stay(
    before: FollowerState,
    at: FollowerState,
    { head }: ChainView,
    signal: AbortSignal | undefined,
  ): Promise<StepOutcome> {
    if (before.finalBlock !== at.finalBlock || before.headBlock !== at.headBlock)
      await advance(at, [], undefined, signal)
    if (head.number < at.scanned.number) {
      const reason = `the node is at block ${head.number}, and ${at.scanned.number} was looked at`
      disagree(reason)
      return { kind: 'WAIT', reason }
    }
    disagreements = 0
    return fillGap(at, signal)
  }

  async function backfill(at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    const wanted = { from: at.scanned.number + 1, until: at.finalBlock }
    return readFinal(wanted, (last, findings) => advance(at, [last], findings, signal), signal)
  }

  async function readFinal(
    wanted: WantedBlocks,
    write: WriteFinalBlocks,
    signal: AbortSignal | undefined,
  ): Promise<StepOutcome> {
    const outcome = await finalBlocks.read(wanted, write, signal)
    return outcome.kind === 'LACKING' ? lacking(outcome.reason) : outcome
  }

  /** A contract that was added later: its events in blocks that were looked at before. What follows the chain goes first. */
  async function fillGap(at: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
    const gap = gaps.find(({ filledBlock }) => filledBlock < at.finalBlock)
    if (gap === undefined) return CAUGHT_UP
    const { address, fillUntil } = gap
    const until = Math.min(at.finalBlock, fillUntil)
    const write: WriteFinalBlocks = async (last, findings) => {
      await writer.addContractEvents({ lease, address, filledBlock: last.number, findings }, signal)
      const rest = last.number < fillUntil ? [{ ...gap, filledBlock: last.number }] : []
      gaps = [...gaps.filter((each) => each !== gap), ...rest]
      if (rest.length === 0) logger.info({ network, address }, 'an added contract was read up to now')
      await onCommitted(findings)
    }
    try {
      return await readFinal({ from: gap.filledBlock + 1, until, addresses: [address] }, write, signal)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      doubtOver(error)
      return { kind: 'WAIT', reason: `the added contract ${address} cannot be read: ${error.message}` }
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
    const refused = lists.findIndex((list) => list instanceof RpcError)
    const blocks = refused < 0 ? linked : linked.slice(0, refused)
    const tip = blocks.at(-1)
    if (tip === undefined) {
      const refusal = lists.find((list) => list instanceof RpcError)
      throw new ChainMovedError(refusal?.message ?? `block ${numbers[0]} does not stand on the one before`)
    }
    // A node may answer an orphaned hash with an empty list. What stands now stood while it was asked, and so did all below.
    const [standing] = await reader.headers([tip.number], signal)
    if (standing?.hash !== tip.hash) throw new ChainMovedError(`block ${tip.number} was replaced while it was read`)
    const hashes = new Set(blocks.map(({ hash }) => hash))
    const logs = inChainOrder(lists.slice(0, blocks.length).flatMap((list) => (list instanceof RpcError ? [] : list)))
    const stands = (_: number, hash: Hex) => hashes.has(hash)
    const findings = await events.read({ logs, blocks, areFinal: false, stands }, signal)
    await advance(at, blocks, findings, signal)
    return tip.number === at.headBlock ? CAUGHT_UP : MORE
  }

  async function advance(
    at: FollowerState,
    blocks: readonly BlockHeader[],
    findings: Findings | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { headBlock, finalBlock } = at
    const hasFinalizedTag = finality.hasTag()
    const write = { lease, from: at.scanned, blocks, headBlock, finalBlock, hasFinalizedTag }
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
    if (to.number === at.scanned.number) return { kind: 'AGAIN', reason: `block ${to.number} was away and came back` }
    await writer.rewind({ lease, from: at.scanned, to }, signal)
    logger.info({ network, from: at.scanned.number, to: to.number }, 'the chain reorganised: blocks were taken back')
    state = { ...at, scanned: to, blocks: at.blocks.filter(({ number }) => number <= to.number) }
    return MORE
  }

  async function stop(at: FollowerState, standing: BlockHeader | undefined): Promise<StepOutcome> {
    const [ground] = at.blocks
    // The node merely lacks the block: it is behind, or catching up.
    if (standing === undefined || ground === undefined) {
      return lacking(`the node does not have block ${ground?.number}, which was looked at`)
    }
    const text = `block ${ground.number} was final with hash ${ground.hash}, and is now ${standing.hash}`
    // Nobody takes back an alarm but the operator, so every node that answers has to say so, and that it is of this chain.
    accusation ??= { sinceMs: clock().getTime(), nodes: new Set() }
    const { sinceMs, nodes } = accusation
    if (nodes.size < config.rpcUrls.length && clock().getTime() - sinceMs < SILENCE_OF_A_NODE_MS) {
      const node = reader.doubt(text)
      if (node !== undefined) nodes.add(node)
      return { kind: 'AGAIN', reason: text }
    }
    await writer.raiseAlarm(text)
    accusation = undefined
    state = undefined
    return ALARM
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
