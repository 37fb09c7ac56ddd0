import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { toQuantity } from '../../contracts/words.ts'
import { type BlockRun, caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { ignoreRpcError, isObject, RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReading, OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { Condition } from '../sql/chain-reports-repository.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { createBlockCheck } from './check-block.ts'
import { compareLogs } from './compare-logs.ts'
import { guardReader } from './guarded-reader.ts'
import { createSetAside, type NodeFault } from './set-aside.ts'
import { forgetProven, readQueued } from './sql/unproven-blocks-repository.ts'
import { blame, createFollowedBlocks, createGivenBlocks, type ReadingLane, type TrustedNodes } from './trusted-nodes.ts'

export type NodeTrust = ReturnType<typeof createNodeTrust>

export interface NodeTrustOptions
  extends Pick<TrustedNodes, 'openNodes'>,
    Pick<OpenChainOptions, 'knex' | 'config' | 'logger' | 'clock'> {
  readonly chain: Pick<OpenChain, 'peers' | 'tools' | 'client' | 'backfill'>
  readonly repair: RepairBlocks
}

const DEFAULT_SAMPLE = 50
const CHECK_EVERY_MS = 60_000
/** While a node is set aside. */
const CHECK_AGAIN_MS = 30_000
const PROVE_AGAIN_MS = 30_000

/** Makes what finds nodes of one chain that answer wrongly, sets them aside, and has the blocks that they gave proven. */
export function createNodeTrust(options: NodeTrustOptions) {
  const { knex, config, chain, logger, clock, repair } = options
  const network = config.name
  const chainId = caip2Of(config.chainId)
  const { peers } = chain
  const hosts = peers.map(({ host }) => host)
  const addresses = followedContracts(config).map(({ address }) => address)
  const aside = createSetAside({
    network,
    hosts,
    logger,
    clock,
    leave(index, untilMs) {
      for (const { client } of [chain, chain.backfill]) client.avoid(index, untilMs)
    },
  })
  const nodes: TrustedNodes = {
    knex,
    chainId,
    peers,
    addresses,
    factories: chain.tools.chain.followed.factories,
    sampleLogs: config.sampleLogs ?? DEFAULT_SAMPLE,
    aside,
    given: createGivenBlocks(knex, chainId, hosts),
    followed: createFollowedBlocks(),
    openNodes: options.openNodes,
  }
  let offersReceipts: boolean | undefined
  const checkBlock = createBlockCheck(nodes, () => offersReceipts !== false)
  const guarded = { ...nodes, checkBlock, fills: new Map<number, number>() }
  const compared = new Set<number>()
  let checkAtMs = 0
  let proveAtMs = 0
  let unproven: Condition | undefined

  /** Asks for the receipts of a block until a node gives them. */
  async function checkReceipts({ hash }: StoredBlock, signal: AbortSignal | undefined): Promise<void> {
    if (offersReceipts === true) return
    const call = { method: 'eth_getBlockReceipts', params: [hash] }
    const answers = await chain.client.batch([call], signal).catch(ignoreRpcError)
    if (answers !== undefined) offersReceipts = Array.isArray(resultIn(answers[0]))
  }

  function whyUnproven(isProven: boolean): string | undefined {
    if (!isProven) return 'blocks could not be proven, and no two nodes agree on them'
    if (peers.length > 1 || offersReceipts !== false) return undefined
    return 'the only node has no eth_getBlockReceipts, so nobody notices what it leaves out: add a second node'
  }

  async function tick(final: StoredBlock, signal?: AbortSignal): Promise<void> {
    await compareFollowed({ ...nodes, compared }, final, signal)
    if (clock().getTime() >= checkAtMs) {
      await checkReceipts(final, signal)
      await compareHeads(nodes, { ...config, clock }, final, signal)
      checkAtMs = clock().getTime() + (aside.list().length > 0 ? CHECK_AGAIN_MS : CHECK_EVERY_MS)
    }
    if (clock().getTime() < proveAtMs) return
    const isProven = await proveQueued({ ...nodes, network, logger, repair }, final, signal)
    if (!isProven) proveAtMs = clock().getTime() + PROVE_AGAIN_MS
    const reason = whyUnproven(isProven)
    unproven = reason === undefined ? undefined : { since: unproven?.since ?? clock(), reason }
    if (isProven) aside.releaseDue()
  }

  return {
    /** Wraps the reader of a lane so that its logs are checked. */
    guard: (reading: ChainReading, lane: ReadingLane) => guardReader(guarded, reading, lane),
    /** Does what is due beside following: compares heads and final logs, proves what is queued, uses nodes again. @param final - the last final block */
    tick,
    /** Call it when this process takes the chain over: what another one followed last may not have been compared. */
    async takeOver(): Promise<void> {
      if (peers.length > 1 && nodes.sampleLogs > 0) await nodes.given.takeOver()
    },
    suspects: () => aside.list(),
    /** Why what is stored is not proven, and cannot be; undefined where it is. */
    unproven: () => unproven,
  }
}

/**
 * Compares blocks that were followed and are final now with another node, in runs: what was given then, not what the node would give now. A run waits
 * until another node answers: a node that left logs out is often the one that answers while others are down.
 *
 * @param compared - nodes that had a run compared: the first one of a node is compared at once
 */
async function compareFollowed(
  nodes: TrustedNodes & { readonly compared: Set<number> },
  final: StoredBlock,
  signal?: AbortSignal,
): Promise<void> {
  const { followed, sampleLogs, compared, peers, given } = nodes
  const known = followed.upTo(final.number)
  const [[from, head] = []] = known
  if (from === undefined || head === undefined || sampleLogs === 0 || peers.length < 2) return
  const { node } = head
  const run = known.filter(([number, block], index) => number === from + index && block.node === node)
  if (compared.has(node) && run.length < sampleLogs && run.length === known.length) return
  const blocks = new Map(run)
  const range = { from, to: from + run.length - 1 }
  const logs = run.flatMap(([, block]) => block.logs)
  const outcome = await compareLogs(nodes, { node, range, logs, hashOf: (block) => blocks.get(block)?.hash }, signal)
  if (outcome.kind === 'NOTHING') return
  compared.add(node)
  // Where the second node alone was wrong, the run is compared with another.
  if (outcome.kind === 'OTHER_LOGS' && outcome.isRight) return
  const to = outcome.kind === 'SAME' ? outcome.to : range.to
  followed.forget(Array.from({ length: to - from + 1 }, (_, index) => from + index))
  if (outcome.kind === 'SAME') await given.pass({ node, lane: 'FOLLOW', to: Math.min(to, followed.lowestOf(node) - 1) })
  // Of a node with another block it shows which is right when heads are compared.
  else await given.doubt({ node, from, to })
}

interface Terms extends Pick<ChainConfig, 'chainId' | 'blockTimeSeconds'> {
  readonly clock: () => Date
}

/** Compares the heads, chain ids and one final block of all nodes, and sets those aside that are late or serve another chain. */
async function compareHeads(
  nodes: TrustedNodes,
  { chainId, blockTimeSeconds, clock }: Terms,
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<void> {
  const heads = await Promise.all(nodes.peers.map(({ client }) => readHead(client, final, signal)))
  const terms = { chainId, final, blockTimeSeconds, nowSec: clock().getTime() / 1_000 }
  const faults = judgeHeads(heads, terms)
  nodes.aside.releaseHeads((node) => heads[node] !== undefined && !faults.has(node))
  for (const [node, { fault, reason }] of faults) {
    if (nodes.aside.has(node)) continue
    if (fault === 'STALE') nodes.aside.add(node, fault, reason)
    else await blame(nodes, node, fault, reason)
  }
}

/** Asks a node for its chain, its head and a final block. @returns undefined where it does not answer */
async function readHead(
  client: RpcClient,
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<NodeHead | undefined> {
  const calls = [
    { method: 'eth_chainId', params: [] },
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_getBlockByNumber', params: [toQuantity(final.number), false] },
  ]
  try {
    const [chainId, latest, block] = (await client.batch(calls, signal)).map(resultIn)
    if (!isObject(latest)) return undefined
    const finalHash = isObject(block) ? String(block['hash']) : undefined
    const { number, timestamp } = latest
    return { chainId: Number(chainId), number: Number(number), timestampSec: Number(timestamp), finalHash }
  } catch (error) {
    signal?.throwIfAborted()
    const isOther = error instanceof RpcError && error.kind === 'WRONG_CHAIN'
    return isOther ? { chainId: Number.NaN, number: 0, timestampSec: 0, otherChain: error.detail } : undefined
  }
}

/** Proves final blocks again and corrects what is stored of them. @returns whether all of them could be proven */
type RepairBlocks = (blocks: BlockRun, signal: AbortSignal | undefined) => Promise<boolean>

/** Blocks after which progress is stored. */
const BLOCKS_AT_ONCE = 10_000

/**
 * Proves the blocks that nodes gave which answered wrongly, since until then searches do not say that they are read; then those that were never compared.
 *
 * @returns whether all that are final could be proven
 */
async function proveQueued(
  {
    knex,
    chainId,
    network,
    logger,
    repair,
  }: Pick<TrustedNodes, 'knex' | 'chainId'> & {
    readonly network: string
    readonly logger: Logger
    readonly repair: RepairBlocks
  },
  final: StoredBlock,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  let areProven = true
  for (const { from: first, to: last } of await readQueued(knex, chainId, final.number)) {
    for (let from = first; from <= last; from += BLOCKS_AT_ONCE) {
      const span = { from, to: Math.min(last, from + BLOCKS_AT_ONCE - 1) }
      const isProven = await repair(span, signal).catch((error: unknown) => {
        signal?.throwIfAborted()
        logger.warn({ chain: network, ...span, err: error }, 'blocks that a node gave could not be read again')
        return false
      })
      if (isProven) {
        await forgetProven(knex, chainId, span)
        logger.info({ chain: network, ...span }, 'blocks that a node gave were proven')
      } else {
        areProven = false
      }
    }
  }
  return areProven
}

/** Decides which nodes are late or serve another chain, by the head and the final block of each. No I/O. */

type HeadFault = Extract<NodeFault, 'STALE' | 'OTHER_CHAIN'>

/** What a node says of itself. */
export interface NodeHead {
  readonly chainId: number
  readonly number: number
  readonly timestampSec: number
  /** Why it was refused, where it serves another chain; the other fields are then unknown. */
  readonly otherChain?: string | undefined
  /** The hash of the last final block that was read; absent where the node does not have it. */
  readonly finalHash?: string | undefined
}

/** A head is behind another if it is this much lower and this much older: nodes differ by some blocks for some seconds. */
const MAX_LAG_BLOCKS = 10
const MAX_LAG_SEC = 60
/** A head is old if it is older than this many blocks take, and than this. */
const MAX_AGE_BLOCKS = 20
const MAX_AGE_SEC = 300

/** What is known of a chain whose nodes are compared. */
interface Known {
  readonly chainId: number
  readonly final: StoredBlock
  readonly blockTimeSeconds: number
  readonly nowSec: number
}

/** Compares the nodes of a chain with each other and with what was read. @returns the fault of each node that has one */
export function judgeHeads(
  heads: readonly (NodeHead | undefined)[],
  { chainId, final, blockTimeSeconds, nowSec }: Known,
): Map<number, { readonly fault: HeadFault; readonly reason: string }> {
  const faults = new Map<number, { fault: HeadFault; reason: string }>()
  const ofChain = heads.filter((head) => head?.chainId === chainId)
  const isKept = ofChain.some((head) => head?.finalHash === final.hash)
  const best = ofChain.reduce((a, b) => ((b?.number ?? 0) > (a?.number ?? 0) ? b : a), ofChain[0])
  for (const [index, head] of heads.entries()) {
    if (head === undefined) continue
    const { number, timestampSec, finalHash } = head
    const behind = (best?.number ?? number) - number
    const isLate = behind > MAX_LAG_BLOCKS && (best?.timestampSec ?? 0) - timestampSec >= MAX_LAG_SEC
    const ageSec = nowSec - timestampSec
    if (head.chainId !== chainId) {
      const reason = head.otherChain ?? `it serves chain ${head.chainId}, not ${chainId}`
      faults.set(index, { fault: 'OTHER_CHAIN', reason })
    } else if (isKept && finalHash !== undefined && finalHash !== final.hash) {
      const reason = `its block ${final.number} is ${finalHash}; that of the chain is ${final.hash}`
      faults.set(index, { fault: 'OTHER_CHAIN', reason })
    } else if (isLate) {
      faults.set(index, {
        fault: 'STALE',
        reason: `its head ${number} is ${behind} blocks behind that of another node`,
      })
    } else if (ageSec > Math.max(MAX_AGE_SEC, MAX_AGE_BLOCKS * blockTimeSeconds)) {
      faults.set(index, { fault: 'STALE', reason: `its head ${number} is ${Math.round(ageSec)} s old` })
    }
  }
  return faults
}
