/** The nodes of a chain as the services see them: proxies in front of one real node, which die, hang, limit and lie by a plan, and come back. */
import { setTimeout as sleep } from 'node:timers/promises'
import { toQuantity } from '../../../demo/network/rpc.ts'
import { type LimitedNode, startLimitedNode } from '../../support/chains/limited-node.ts'
import { NODE_PROFILES } from '../../support/chains/node-profiles.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../../support/chains/rpc-proxy.ts'
import type { Plan } from './seeded-plan.ts'

/** How a node misbehaves for a while. */
const FAULTS = {
  /** Answers 503. */
  down: 3,
  /** Closes connections without an answer. */
  reset: 2,
  /** Never answers. */
  hang: 2,
  /** Answers 429. */
  busy: 2,
  /** Refuses logs of more than some blocks. */
  narrow: 2,
  /** Refuses batches. */
  single: 2,
  /** Serves an old head. */
  stale: 3,
  /** Lacks receipts and blocks that it has reported of. */
  forgetful: 2,
  /** Answers one block in place of another. */
  contradicts: 2,
  /** Is another chain for a moment. */
  elsewhere: 1,
  /** Leaves out logs. */
  omits: 2,
  /** Limits rate, range or batches as one of the providers does, in its words. */
  limits: 3,
} as const
type Fault = keyof typeof FAULTS

/** Faults that give wrong answers instead of none. Of the nodes of a chain at most one has such a fault at a time. */
const LIES: ReadonlySet<Fault> = new Set(['stale', 'forgetful', 'contradicts', 'elsewhere', 'omits'])

export interface FaultyNodes {
  readonly urls: readonly string[]
  /** Begun so far. */
  faults(): number
  /** What each node does now. */
  states(): readonly string[]
  /** Whether some node leaves out logs, or did so a moment ago: until others are asked, that is believed. */
  omittedSince(ms: number): boolean
  /** Misbehaves until the signal fires, then is honest. */
  run(signal: AbortSignal): Promise<void>
  stop(): Promise<void>
}

/** The profiles' rates are scaled down for a chain that stands still; some blocks a second need more. */
const RATE_SCALE = 5
/** A quota that is used up keeps a node out until midnight, longer than a soak lasts. */
const LIMITS = NODE_PROFILES.filter(({ terms }) => terms.daily === undefined).map(({ terms }) =>
  terms.rate === undefined ? terms : { ...terms, rate: { ...terms.rate, allowed: terms.rate.allowed * RATE_SCALE } },
)

/** A node, and the server with limits through which it answers while it has that fault. */
interface FaultyNode {
  readonly proxy: RpcProxy
  readonly limited: LimitedNode
}

interface Targets {
  readonly target: string
  /** Node of another chain. */
  readonly otherTarget: string
}

interface FaultOptions extends Targets {
  readonly count: number
  /** The plan of one node. */
  readonly planOf: (node: number) => Plan
  readonly allowed: (fault: string) => boolean
}

export async function startFaultyNodes({
  target,
  otherTarget,
  count,
  planOf,
  allowed,
}: FaultOptions): Promise<FaultyNodes> {
  const faulty = await Promise.all(Array.from({ length: count }, () => startFaultyNode(target)))
  const states = faulty.map(() => 'honest')
  let omittedUntilMs = 0
  let faults = 0
  let lying = false

  async function live(faultyNode: FaultyNode, node: number, signal: AbortSignal): Promise<void> {
    const plan = planOf(node)
    while (!signal.aborted) {
      await pause(plan.between(1_500, 8_000), signal)
      const fault = plan.weighted(FAULTS)
      const lastsMs = plan.between(500, 5_000)
      const isLie = LIES.has(fault)
      if (signal.aborted || !allowed(fault) || (isLie && lying)) continue
      if (isLie) lying = true
      faults++
      states[node] = fault
      if (fault === 'omits') omittedUntilMs = Number.POSITIVE_INFINITY
      begin(faultyNode, fault, plan, { target, otherTarget })
      await pause(lastsMs, signal)
      heal(faultyNode)
      if (fault === 'omits') omittedUntilMs = Date.now()
      states[node] = 'honest'
      if (isLie) lying = false
      // The list of calls is not needed here, and would grow.
      faultyNode.proxy.calls.length = 0
      faultyNode.limited.resetCounts()
    }
  }

  return {
    urls: faulty.map(({ proxy }) => proxy.url),
    faults: () => faults,
    states: () => states,
    omittedSince: (ms) => omittedUntilMs >= ms,
    async run(signal) {
      await Promise.all(faulty.map((each, node) => live(each, node, signal)))
      for (const each of faulty) heal(each)
    },
    async stop() {
      await Promise.all(faulty.flatMap(({ proxy, limited }) => [proxy.stop(), limited.stop()]))
    },
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})

async function startFaultyNode(target: string): Promise<FaultyNode> {
  const [proxy, limited] = await Promise.all([startRpcProxy(target), startLimitedNode(target)])
  return { proxy, limited }
}

function heal({ proxy }: FaultyNode): void {
  proxy.meddle()
  proxy.relay()
  proxy.fail()
  proxy.refuseBatches(false)
}

function begin({ proxy, limited }: FaultyNode, fault: Fault, plan: Plan, urls: Targets): void {
  if (fault === 'down') proxy.fail(503, 'no backend is currently healthy')
  else if (fault === 'busy') proxy.fail(429, 'Too many requests')
  else if (fault === 'single') proxy.refuseBatches(true)
  else if (fault === 'limits') {
    limited.limit(plan.pick(LIMITS))
    proxy.relay(limited.url)
  } else proxy.meddle(meddleOf(fault, plan, urls))
}

type Meddled = Exclude<Fault, 'down' | 'busy' | 'single' | 'limits'>

function meddleOf(fault: Meddled, plan: Plan, { target, otherTarget }: Targets): Meddle {
  const back = plan.between(1, 6)
  switch (fault) {
    case 'reset':
      return () => Promise.reject(new Error('reset'))
    case 'hang':
      return () => new Promise(() => {})
    case 'narrow':
      return ({ method, params }) => (method === 'eth_getLogs' && isWide(params[0]) ? tooWide() : undefined)
    case 'stale':
      return (call) => (HEADS.has(call.method) ? answerWithoutNewest(call, target, back) : undefined)
    case 'forgetful':
      return ({ method }) => (FORGOTTEN.has(method) && plan.chance(0.3) ? Promise.resolve(null) : undefined)
    case 'contradicts':
      return ({ method, params }, ask) =>
        method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x') && plan.chance(0.3)
          ? ask().then((block) =>
              block === null ? null : { ...(block as object), parentHash: `0x${'ab'.repeat(32)}` },
            )
          : undefined
    case 'elsewhere':
      return (call) => askAt(otherTarget, call)
    case 'omits':
      return ({ method }) => (method === 'eth_getLogs' ? Promise.resolve([]) : undefined)
  }
}

const FORGOTTEN: ReadonlySet<string> = new Set([
  'eth_getTransactionReceipt',
  'eth_getBlockReceipts',
  'eth_getBlockByHash',
])

const HEADS: ReadonlySet<string> = new Set(['eth_blockNumber', 'eth_getBlockByNumber'])

function isWide(filter: unknown): boolean {
  const { fromBlock, toBlock } = filter as { fromBlock?: string; toBlock?: string }
  return fromBlock !== undefined && toBlock !== undefined && Number(toBlock) - Number(fromBlock) > 3
}

const tooWide = () =>
  Promise.resolve({ rpcError: { code: -32_600, message: 'eth_getLogs is limited to a 4 block range' } })

/** Answers as if the newest blocks were not there. */
async function answerWithoutNewest({ method, params }: Call, target: string, back: number): Promise<unknown> {
  const call = (name: string, args: readonly unknown[]) => askAt(target, { method: name, params: args })
  const head = Math.max(0, Number(await call('eth_blockNumber', [])) - back)
  if (method === 'eth_blockNumber') return toQuantity(head)
  const [block, ...rest] = params
  if (block === 'latest') return call(method, [toQuantity(head), ...rest])
  if (block === 'finalized') return call(method, [toQuantity(Math.max(0, head - 2)), ...rest])
  return Number(block) > head ? null : call(method, params)
}

interface Call {
  readonly method: string
  readonly params: readonly unknown[]
}

async function askAt(url: string, call: Call): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: call.method, params: call.params }),
  })
  const answer = (await response.json()) as { result?: unknown; error?: unknown }
  return answer.error === undefined ? answer.result : { rpcError: answer.error }
}
