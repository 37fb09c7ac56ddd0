import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Meter } from '../../domain/meter.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReading, NodePeer } from '../open-chain.ts'
import type { BlockHeader, BlockRange, ChainReader } from '../read/chain-reader.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { type BloomCheck, createBloomCheck } from './bloom-check.ts'
import { judgeHeads, readHead } from './inspect-heads.ts'
import { logsByReceipts, readsByReceipts } from './logs-by-receipts.ts'
import { proveLogs } from './prove-logs.ts'
import { readsProven } from './proven-reads.ts'
import { firstDifference, logsWithin } from './same-logs.ts'
import {
  forgetReadings,
  noteReading,
  noteReread,
  type PendingReread,
  queueLeftovers,
  queueReadings,
  type ReadingLane,
  readPendingRereads,
} from './sql/node-readings-repository.ts'
import { createSuspects, type SuspectStatus, type Suspects } from './suspects.ts'

/** Finds out which nodes of a chain answer wrongly, leaves them, and has what they gave read again. */
export interface NodeTrust {
  /** The reader of a lane, whose logs are checked: by the blooms of headers, and by sample against a second node. */
  guard(reading: ChainReading, lane: ReadingLane): ChainReader
  /** Does what is due beside following: compares heads and final logs, tries suspects again, reads blocks again. @param final - the last final block */
  tick(final: StoredBlock, signal?: AbortSignal): Promise<void>
  suspects(): SuspectStatus[]
}

export interface NodeTrustOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  /** One for each URL, in their order. */
  readonly peers: readonly NodePeer[]
  /** The readings whose nodes are to be left. */
  readonly readings: readonly ChainReading[]
  readonly logger: Logger
  readonly clock: () => Date
  readonly meter: Meter
  /** Reads final blocks again and corrects what is stored of them; gives the last block of each step. */
  readonly reread: (
    blocks: { readonly from: number; readonly to: number },
    urls: readonly string[],
    wrap: (reader: ChainReader) => ChainReader,
    signal: AbortSignal | undefined,
  ) => AsyncIterable<{ readonly block: number }>
  /** Default 60,000. */
  readonly checkNodesEveryMs?: number | undefined
  /** After which a node that was found out is tried again; default 30,000. */
  readonly suspectMs?: number | undefined
}

interface Given {
  readonly hash: Hex
  readonly node: number
  readonly logs: readonly RpcLog[]
}

interface Trust extends NodeTrustOptions {
  readonly chainId: string
  readonly sampleLogs: number
  readonly addresses: readonly Address[]
  readonly suspected: Suspects
  readonly blooms: BloomCheck
  /** Readings since the last check, by lane and node: the row that grows. */
  readonly open: Map<string, { from: number; to: number }>
  /** Ranges since the last sample, by node. */
  readonly unsampled: Map<number, number>
  /** Nodes whose followed blocks were compared. */
  readonly compared: Set<number>
  /** Blocks that following read, by number, until they are final and compared. */
  readonly given: Map<number, Given>
  readonly headers: Map<Hex, BlockHeader>
  checkedAtMs: number
  hasAdopted: boolean
  rereadAfterMs: number
}

const DEFAULT_SAMPLE = 50
/** Following notes so many blocks ahead, so that it writes a reading once in so many blocks. */
const NOTED_AHEAD = 100
const MAX_REMEMBERED = 1_000
const MAX_HALVINGS = 8
/** Blocks of a range whose blooms are looked at where there is no second node. */
const BLOOMS_OF_RANGE = 5
const CHECK_EVERY_MS = 60_000
const REREAD_AGAIN_MS = 30_000

/** Makes the trust in the nodes of one chain. */
export function createNodeTrust(options: NodeTrustOptions): NodeTrust {
  const { config, peers, readings, clock } = options
  const addresses = followedContracts(config).map(({ address }) => address)
  const trust: Trust = {
    ...options,
    chainId: caip2Of(config.chainId),
    sampleLogs: config.sampleLogs ?? DEFAULT_SAMPLE,
    addresses,
    suspected: createSuspects({
      ...options,
      network: config.name,
      hosts: peers.map(({ host }) => host),
      firstWaitMs: options.suspectMs,
      leave(index, untilMs) {
        for (const { client } of readings) client.leave(index, untilMs)
      },
    }),
    blooms: createBloomCheck(addresses),
    open: new Map(),
    unsampled: new Map(),
    compared: new Set(),
    given: new Map(),
    headers: new Map(),
    checkedAtMs: clock().getTime(),
    hasAdopted: false,
    rereadAfterMs: 0,
  }
  return {
    guard: (reading, lane) => guard(trust, reading, lane),
    async tick(final, signal) {
      await adoptReadings(trust)
      await compareFollowed(trust, final, signal)
      await compareHeads(trust, final, signal)
      await trust.suspected.tryAgain()
      await rereadPending(trust, final, signal)
    },
    suspects: () => trust.suspected.list(),
  }
}

function guard(trust: Trust, reading: ChainReading, lane: ReadingLane): ChainReader {
  const { reader, client } = reading
  return {
    ...reader,
    async headers(numbers, signal) {
      const headers = await reader.headers(numbers, signal)
      if (lane === 'FOLLOW')
        for (const header of headers) if (header !== undefined) remember(trust.headers, header.hash, header)
      return headers
    },
    async logsFrom(wanted, signal) {
      const isOnlyNode = trust.peers.length === 1
      if (isOnlyNode && trust.suspected.has(0)) {
        return readsByReceipts(reader, client, trust.addresses).logsFrom(wanted, signal)
      }
      const read = await reader.logsFrom(wanted, signal)
      const { node, to, logs, last } = read
      refuseSuspect(trust, node)
      if (logs instanceof RpcError || last === undefined) return read
      const range = { from: wanted.from, to, addresses: wanted.addresses }
      await note(trust, lane, node, range)
      if (isSampleDue(trust, node)) await checkRange(trust, range, { node, lane, logs, last }, signal)
      return read
    },
    async logsOfBlocks(hashes, signal) {
      const lists = await reader.logsOfBlocks(hashes, signal)
      const node = client.answeredLast()
      refuseSuspect(trust, node)
      if (node === undefined) return lists
      const numbers = hashes.flatMap((hash) => trust.headers.get(hash)?.number ?? [])
      await note(trust, lane, node, { from: Math.min(...numbers), to: Math.max(...numbers) })
      return Promise.all(
        hashes.map(async (hash, index) => {
          const list = lists[index] ?? []
          if (list instanceof RpcError) return list
          const logs = await checkBlock(trust, { hash, node, logs: list }, signal)
          const number = trust.headers.get(hash)?.number
          if (number !== undefined) remember(trust.given, number, { hash, node, logs })
          return logs
        }),
      )
    },
  }
}

/** A node that was found out is asked only where no other answers, and is not believed then either. @throws RpcError */
function refuseSuspect({ peers, suspected }: Trust, node: number | undefined): void {
  if (node === undefined || peers.length === 1 || !suspected.isDistrusted(node)) return
  const others = suspected.list().map(({ node: host, reason }) => `${host}: ${reason}`)
  throw new RpcError('INCONSISTENT', `only nodes answer that were found to answer wrongly (${others.join('; ')})`)
}

function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > MAX_REMEMBERED && oldest !== undefined) map.delete(oldest)
}

/** Notes who gives blocks before anything of them is written, so that no stop of the process forgets it. */
async function note(
  { knex, chainId, peers, open }: Trust,
  lane: ReadingLane,
  node: number,
  { from, to }: Pick<BlockRange, 'from' | 'to'>,
): Promise<void> {
  const host = peers[node]?.host
  if (host === undefined || !Number.isFinite(from)) return
  const key = `${lane} ${node}`
  const known = open.get(key)
  if (known !== undefined && known.from <= from && to <= known.to) return
  const start = known !== undefined && known.from <= from && from <= known.to + 1 ? known.from : from
  const reading = { from: start, to: lane === 'FOLLOW' ? to + NOTED_AHEAD : to }
  await noteReading(knex, chainId, { node: host, lane, ...reading })
  open.set(key, reading)
}

/** A node passed a sample: what it gave before in the lane counts as checked, but not blocks that are followed and still to be compared. */
async function pass(trust: Trust, { node, lane, block }: Passed): Promise<void> {
  const { knex, chainId, peers, open, given } = trust
  const host = peers[node]?.host
  const known = open.get(`${lane} ${node}`)
  if (host === undefined || known === undefined) return
  const waiting = [...given].filter(([, each]) => each.node === node).map(([number]) => number)
  const until = lane === 'FILL' ? Number.MAX_SAFE_INTEGER : Math.min(block, ...waiting.map((number) => number - 1))
  await forgetReadings(knex, chainId, { node: host, lane, from: lane === 'FILL' ? 0 : known.from }, until)
  if (known.to <= until) open.delete(`${lane} ${node}`)
  else if (known.from <= until) open.set(`${lane} ${node}`, { from: until + 1, to: known.to })
}

/** A process that was killed has perhaps not compared the blocks that it followed last. */
async function adoptReadings(trust: Trust): Promise<void> {
  const { knex, chainId, peers, open, sampleLogs } = trust
  if (trust.hasAdopted || sampleLogs === 0 || peers.length === 1) return
  const own = peers.flatMap(({ host: node }, index) => {
    const from = open.get(`FOLLOW ${index}`)?.from
    return from === undefined ? [] : [{ node, from }]
  })
  await queueLeftovers(knex, chainId, own)
  trust.hasAdopted = true
}

interface Passed {
  readonly node: number
  readonly lane: ReadingLane
  /** The last one that was compared. */
  readonly block: number
}

function isSampleDue({ unsampled, sampleLogs }: Trust, node: number): boolean {
  if (sampleLogs === 0) return false
  const count = unsampled.get(node) ?? 0
  unsampled.set(node, (count + 1) % sampleLogs)
  return count === 0
}

/** Another node that is not suspected, to compare with. */
function secondOf({ peers, suspected }: Trust, node: number): number | undefined {
  const others = peers.flatMap((_, index) => (index === node || suspected.has(index) ? [] : [index]))
  return others[Math.floor(Math.random() * others.length)]
}

interface GivenRange {
  readonly node: number
  readonly lane: ReadingLane
  readonly logs: readonly RpcLog[]
  readonly last: BlockHeader
}

/** Compares a range of final blocks with another node. @throws RpcError where what was given must not be written */
async function checkRange(
  trust: Trust,
  range: BlockRange,
  given: GivenRange,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { node, lane } = given
  const second = secondOf(trust, node)
  if (second === undefined) return trust.peers.length === 1 ? checkBlooms(trust, range, given, signal) : undefined
  const other = await askSample(trust, second, range, signal)
  if (other === undefined) return
  const { window } = other
  if (window.to === range.to && other.last.hash !== given.last.hash) {
    contradict(trust, [node, second], `they have different blocks ${range.to}, which is final`, async () => {
      const [one, another] = await Promise.all([node, second].map((index) => blockOf(trust, index, range.to)))
      return one !== undefined && one.hash === another?.hash
    })
    throw new RpcError('INCONSISTENT', `two nodes have different blocks ${range.to}, which is final`)
  }
  const logs = logsWithin(given.logs, window)
  const block = firstDifference(logs, other.logs)
  if (block === undefined) {
    await pass(trust, { node, lane, block: range.to })
    return
  }
  const blamed = await judge(
    trust,
    { block, addresses: range.addresses },
    [
      { node, logs },
      { node: second, logs: other.logs },
    ],
    signal,
  )
  if (blamed.has(node)) throw new RpcError('INCONSISTENT', `its logs of block ${block} are not those of another node`)
}

async function blockOf({ peers }: Trust, node: number, block: number): Promise<BlockHeader | undefined> {
  const headers = await peers[node]?.reader.headers([block])
  return headers?.[0]
}

/** Asks another node for a range, or for a part of it where that is too much. @returns undefined where it cannot tell */
async function askSample({ peers }: Trust, second: number, range: BlockRange, signal: AbortSignal | undefined) {
  let { from, to } = range
  for (let halvings = 0; halvings < MAX_HALVINGS; halvings++) {
    try {
      const read = await peers[second]?.reader.logsInRange({ ...range, from, to }, signal)
      return read?.last && { logs: read.logs, last: read.last, window: { from, to } }
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof RpcError) || (error.kind !== 'TOO_LARGE' && error.kind !== 'TIMEOUT') || from === to)
        return undefined
      const middle = Math.floor((from + to) / 2)
      if (Math.random() < 0.5) to = middle
      else from = middle + 1
    }
  }
  return undefined
}

interface Statement {
  readonly node: number
  readonly logs: readonly RpcLog[]
}

/** Decides which of two nodes gives wrong logs of a final block: by proof, else by a third node, else neither is trusted. @returns the nodes that are blamed */
async function judge(
  trust: Trust,
  {
    block,
    addresses = trust.addresses,
  }: { readonly block: number; readonly addresses?: readonly Address[] | undefined },
  statements: readonly Statement[],
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<number>> {
  const { peers } = trust
  const at = { from: block, to: block }
  const wanted = new Set<string>(addresses)
  const clients = peers.map(({ client }) => client)
  const truth =
    (await proveLogs(clients, block, wanted, signal)) ??
    (await askThird(trust, { ...at, addresses }, statements, signal))
  const isWrong = ({ logs }: Statement) =>
    truth !== undefined && firstDifference(logsWithin(logs, at), truth) !== undefined
  const wrong = statements.filter(isWrong)
  const ask = async (node: number) => {
    const read = await peers[node]?.reader.logsInRange({ ...at, addresses })
    return read?.logs ?? []
  }
  if (truth === undefined || wrong.length === 0) {
    const nodes = statements.map(({ node }) => node)
    contradict(trust, nodes, `they give different logs of block ${block}, and neither can prove its own`, async () => {
      const [one = [], other = []] = await Promise.all(nodes.map(ask))
      return firstDifference(one, other) === undefined
    })
    return new Set(nodes)
  }
  for (const { node } of wrong) {
    const reason = `it gives other logs of block ${block} than the chain has`
    await foundOut(trust, node, reason, async () => firstDifference(await ask(node), truth) === undefined)
  }
  return new Set(wrong.map(({ node }) => node))
}

/** @returns the logs of a third node that agrees with one of two */
async function askThird(
  { peers, suspected }: Trust,
  range: BlockRange,
  statements: readonly Statement[],
  signal: AbortSignal | undefined,
): Promise<readonly RpcLog[] | undefined> {
  for (const [index, { reader }] of peers.entries()) {
    if (suspected.has(index) || statements.some(({ node }) => node === index)) continue
    const read = await reader.logsInRange(range, signal).catch(() => undefined)
    signal?.throwIfAborted()
    const agreeing = statements.filter(
      ({ logs }) => read && firstDifference(logsWithin(logs, range), read.logs) === undefined,
    )
    if (agreeing.length === 1) return read?.logs
  }
  return undefined
}

async function foundOut(trust: Trust, node: number, reason: string, passes: () => Promise<boolean>): Promise<void> {
  await readAgain(trust, node)
  trust.suspected.find(node, 'LOGS', reason, passes)
}

/** Has the blocks of a node read again. What it gives later is noted anew. */
async function readAgain({ knex, chainId, peers, open }: Trust, node: number): Promise<void> {
  const host = peers[node]?.host
  if (host !== undefined) await queueReadings(knex, chainId, host)
  for (const lane of ['FOLLOW', 'FILL']) open.delete(`${lane} ${node}`)
}

function contradict(trust: Trust, nodes: readonly number[], reason: string, passes: () => Promise<boolean>): void {
  const hosts = nodes.map((node) => trust.peers[node]?.host).join(' and ')
  for (const node of nodes) {
    // The next range is compared again.
    trust.unsampled.set(node, 0)
    trust.suspected.find(node, 'CONTRADICTED', `${hosts}: ${reason}`, passes)
  }
}

/** Looks at the blooms of some blocks of a range for which the only node has no logs. @throws RpcError where it left some out */
async function checkBlooms(
  trust: Trust,
  { from, to }: BlockRange,
  { node, logs }: GivenRange,
  signal: AbortSignal | undefined,
): Promise<void> {
  const reader = trust.peers[node]?.reader
  if (reader === undefined) return
  const numbers = new Set(
    Array.from({ length: BLOOMS_OF_RANGE }, () => from + Math.floor(Math.random() * (to - from + 1))),
  )
  for (const header of await reader.headers([...numbers], signal)) {
    if (header === undefined) continue
    const own = logsWithin(logs, { from: header.number, to: header.number })
    const checked = await checkBloom(trust, header, { hash: header.hash, node, logs: own }, signal)
    if (checked.length !== own.length)
      throw new RpcError('INCONSISTENT', `it leaves out logs of block ${header.number}`)
  }
}

/** Checks a block that is followed. @returns its logs, from its receipts where the node left some out */
async function checkBlock(trust: Trust, given: Given, signal: AbortSignal | undefined): Promise<RpcLog[]> {
  const header = trust.headers.get(given.hash)
  return header === undefined ? [...given.logs] : checkBloom(trust, header, given, signal)
}

async function checkBloom(
  trust: Trust,
  { number, logsBloom }: BlockHeader,
  { hash, node, logs }: Given,
  signal: AbortSignal | undefined,
): Promise<RpcLog[]> {
  const peer = trust.peers[node]
  if (logs.length > 0 || peer === undefined || !trust.blooms.isSuspicious(logsBloom)) return [...logs]
  const wanted = new Set<string>(trust.addresses)
  const found = await logsByReceipts(peer.client, hash, wanted, signal).catch(() => undefined)
  signal?.throwIfAborted()
  if (found === undefined || found.length === 0) return [...logs]
  await foundOut(trust, node, `it leaves out logs of block ${number}, which its receipts have`, async () => {
    const [again] = await peer.reader.logsOfBlocks([hash])
    return Array.isArray(again) && firstDifference(again, found) === undefined
  })
  return found
}

/** Compares final blocks that were followed with another node: what was given, not what the node would give now. */
async function compareFollowed(trust: Trust, final: StoredBlock, signal: AbortSignal | undefined): Promise<void> {
  const { given, sampleLogs, compared, peers } = trust
  const numbers = [...given.keys()].filter((number) => number <= final.number).toSorted((a, b) => a - b)
  const [first] = numbers
  const head = first === undefined ? undefined : given.get(first)
  if (first === undefined || head === undefined || sampleLogs === 0 || peers.length < 2) return
  const run = numbers.filter((number, index) => number === first + index && given.get(number)?.node === head.node)
  const isFirst = !compared.has(head.node)
  if (!isFirst && run.length < sampleLogs && run.length === numbers.length) return
  const to = first + run.length - 1
  const blocks = run.flatMap((number) => given.get(number) ?? [])
  const second = secondOf(trust, head.node)
  const other = second === undefined ? undefined : await askSample(trust, second, { from: first, to }, signal)
  for (const number of run) given.delete(number)
  if (second === undefined || other === undefined) return
  compared.add(head.node)
  const { window } = other
  const last = blocks.find((_, index) => first + index === window.to)
  if (last !== undefined && last.hash !== other.last.hash) return
  const logs = logsWithin(
    blocks.flatMap((block) => block.logs),
    window,
  )
  const block = firstDifference(logs, other.logs)
  if (block === undefined) return pass(trust, { node: head.node, lane: 'FOLLOW', block: to })
  await judge(
    trust,
    { block },
    [
      { node: head.node, logs },
      { node: second, logs: other.logs },
    ],
    signal,
  )
}

async function compareHeads(trust: Trust, final: StoredBlock, signal: AbortSignal | undefined): Promise<void> {
  const { clock, suspected, checkNodesEveryMs = CHECK_EVERY_MS } = trust
  const nowMs = clock().getTime()
  if (nowMs - trust.checkedAtMs < checkNodesEveryMs) return
  trust.checkedAtMs = nowMs
  for (const [index, { fault, reason }] of await inspect(trust, final, signal)) {
    if (suspected.has(index)) continue
    const passes = async () => !(await inspect(trust, final, undefined)).has(index)
    if (fault === 'OTHER_CHAIN') await readAgain(trust, index)
    suspected.find(index, fault, reason, passes)
  }
}

async function inspect({ peers, config, clock }: Trust, final: StoredBlock, signal: AbortSignal | undefined) {
  const heads = await Promise.all(peers.map(({ client }) => readHead(client, final, signal)))
  const { chainId, blockTimeSeconds } = config
  return judgeHeads(heads, { chainId, final, blockTimeSeconds, nowSec: clock().getTime() / 1_000 })
}

/** Reads blocks that a node gave which was found out again, from the others. After a failure it waits. */
async function rereadPending(trust: Trust, final: StoredBlock, signal: AbortSignal | undefined): Promise<void> {
  const { knex, chainId, config, logger, clock } = trust
  if (clock().getTime() < trust.rereadAfterMs) return
  for (const pending of await readPendingRereads(knex, chainId)) {
    const to = Math.min(pending.to, final.number)
    if (to < pending.from) continue
    const fields = { network: config.name, node: pending.node, from: pending.from, to }
    try {
      if (await rereadOne(trust, pending, to, signal)) logger.info(fields, 'blocks that a node gave were read again')
    } catch (error) {
      signal?.throwIfAborted()
      trust.rereadAfterMs = clock().getTime() + REREAD_AGAIN_MS
      logger.warn({ ...fields, err: error }, 'blocks that a node gave could not be read again; it is tried again')
    }
  }
}

/** @returns whether a node could be asked */
async function rereadOne(
  { knex, chainId, peers, suspected, reread, addresses }: Trust,
  pending: PendingReread,
  to: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const others = peers.filter(({ host }, index) => host !== pending.node && !suspected.has(index))
  const asked = peers.length === 1 ? peers : others
  const [only] = peers
  if (only === undefined || asked.length === 0) return false
  // Any of the nodes may answer wrongly just now, and what is read again replaces what is stored.
  const wrap = (reader: ChainReader) =>
    peers.length === 1 ? readsByReceipts(reader, only.client, addresses) : readsProven(reader, peers, addresses)
  const urls = asked.map(({ url }) => url)
  let { from } = pending
  for await (const { block } of reread({ from, to }, urls, wrap, signal)) {
    await noteReread(knex, chainId, { ...pending, from }, block)
    from = block + 1
  }
  return true
}
