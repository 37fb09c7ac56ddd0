/** The nodes of a chain as the services see them: proxies in front of one real node, which die, hang, limit and lie by a plan, and come back. */
import { setTimeout as sleep } from 'node:timers/promises'
import { toQuantity } from '../../src/demo/network/rpc.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
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
  /** Lacks receipts and blocks that it has told of. */
  forgetful: 2,
  /** Answers one block in place of another. */
  contradicts: 2,
  /** Is another chain for a moment. */
  elsewhere: 1,
  /** Leaves out logs. */
  omits: 2,
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
  /** Misbehaves until the signal fires, then is honest. */
  run(signal: AbortSignal): Promise<void>
  stop(): Promise<void>
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
  const proxies = await Promise.all(Array.from({ length: count }, () => startRpcProxy(target)))
  const states = proxies.map(() => 'honest')
  let faults = 0
  let lying = false

  async function live(proxy: RpcProxy, node: number, signal: AbortSignal): Promise<void> {
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
      begin(proxy, fault, plan, { target, otherTarget })
      await pause(lastsMs, signal)
      heal(proxy)
      states[node] = 'honest'
      if (isLie) lying = false
      // The list of calls is not needed here, and would grow.
      proxy.calls.length = 0
    }
  }

  return {
    urls: proxies.map(({ url }) => url),
    faults: () => faults,
    states: () => states,
    async run(signal) {
      await Promise.all(proxies.map((proxy, node) => live(proxy, node, signal)))
      for (const proxy of proxies) heal(proxy)
    },
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy.stop()))
    },
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})

function heal(proxy: RpcProxy): void {
  proxy.meddle()
  proxy.fail()
  proxy.refuseBatches(false)
}

function begin(proxy: RpcProxy, fault: Fault, plan: Plan, urls: Targets): void {
  if (fault === 'down') proxy.fail(503, 'no backend is currently healthy')
  else if (fault === 'busy') proxy.fail(429, 'Too many requests')
  else if (fault === 'single') proxy.refuseBatches(true)
  else proxy.meddle(meddleOf(fault, plan, urls))
}

type Meddled = Exclude<Fault, 'down' | 'busy' | 'single'>

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
