import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { resultIn } from '../../nodes/json-rpc.ts'
import { ignoreRpcError } from '../../nodes/rpc-error.ts'
import type { ChainReading, OpenChain } from '../chain/open-chain.ts'
import type { Condition } from '../sql/chain-report.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { createBloomCheck } from './bloom-check.ts'
import { createBlockCheck } from './check-block.ts'
import { compareFollowed } from './compare-followed.ts'
import { compareHeads } from './compare-heads.ts'
import { createFollowedBlocks } from './followed-blocks.ts'
import { createGivenBlocks, type ReadingLane } from './given-blocks.ts'
import { guardReader } from './guarded-reader.ts'
import { proveQueued, type RepairBlocks } from './prove-queued.ts'
import { createSetAside } from './set-aside.ts'
import type { TrustedNodes } from './trusted-nodes.ts'

export type NodeTrust = ReturnType<typeof createNodeTrust>

export interface NodeTrustOptions extends Pick<TrustedNodes, 'openNodes'> {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly chain: Pick<OpenChain, 'peers' | 'tools' | 'client' | 'backfill'>
  readonly logger: Logger
  readonly clock: () => Date
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
    blooms: createBloomCheck(addresses),
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
