import { readQuantity } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { isObject } from '../../nodes/rpc-error.ts'
import type { ChainNodes } from './chain-nodes.ts'

/** A call within a transaction, as a trace shows it; reverted calls are left out. `value` in wei. */
export interface Frame {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly input: Hex
  /** Whether it is a CALL: neither a DELEGATECALL, which runs in the caller's name, nor a STATICCALL. */
  readonly isCall: boolean
  readonly parent?: Frame | undefined
}

/**
 * Reads the calls of a transaction in the order in which they ended, which is the order of the proxies' events: a proxy emits its event last.
 * Asks each node for each kind of trace.
 *
 * @returns undefined where no node traces it
 */
export async function readFrames(nodes: ChainNodes, txHash: Hex): Promise<readonly Frame[] | undefined> {
  const calls = [
    { method: 'debug_traceTransaction', params: [txHash, { tracer: 'callTracer' }], isOptional: true },
    { method: 'trace_transaction', params: [txHash], isOptional: true },
  ]
  for (let node = 0; node < nodes.count; node++) {
    for (const call of calls) {
      const [answer] = await nodes.ask(node, [call]).catch(() => [])
      if (!answer?.ok) continue
      const frames = Array.isArray(answer.result) ? fromList(answer.result) : fromTree(answer.result, undefined)
      if (frames !== undefined && frames.length > 0) return frames
    }
  }
  return undefined
}

/** Reads the output of geth's callTracer: a call with its inner `calls`. Where one has an `error`, everything within it was reverted. */
function fromTree(value: unknown, parent: Frame | undefined): Frame[] | undefined {
  if (!isObject(value)) return undefined
  if (value['error'] !== undefined) return []
  const frame = toFrame(value, value['type'], parent)
  if (frame === undefined) return undefined
  const inner = Array.isArray(value['calls']) ? value['calls'] : []
  const frames: Frame[] = []
  for (const call of inner) {
    const below = fromTree(call, frame)
    if (below === undefined) return undefined
    frames.push(...below)
  }
  return [...frames, frame]
}

/** Reads the output of `trace_transaction`: a list whose entries name their place in the tree in `traceAddress`. */
function fromList(list: readonly unknown[]): Frame[] | undefined {
  const root: Record<string, unknown> = { calls: [] }
  for (const entry of list) {
    if (!isObject(entry) || !isObject(entry['action']) || !Array.isArray(entry['traceAddress'])) return undefined
    // Block rewards and self-destructs are no calls: they have no `callType`.
    const { action, error, type } = entry
    const callType = type === 'call' ? action['callType'] : type
    const node: Record<string, unknown> = { ...action, type: callType, calls: [], ...(error ? { error } : {}) }
    if (type === 'create') node['to'] = isObject(entry['result']) ? entry['result']['address'] : undefined
    let above: Record<string, unknown> = root
    for (const place of [0, ...entry['traceAddress']].slice(0, -1) as number[]) {
      above = (above['calls'] as Record<string, unknown>[])[place] ?? {}
    }
    const siblings = above['calls']
    if (!Array.isArray(siblings)) return undefined
    siblings.push(node)
  }
  return fromTree((root['calls'] as unknown[])[0], undefined)
}

function toFrame(value: Record<string, unknown>, type: unknown, parent: Frame | undefined): Frame | undefined {
  const { from, to, input, init } = value
  if (typeof from !== 'string') return undefined
  const data = typeof input === 'string' ? input : typeof init === 'string' ? init : '0x'
  return {
    from: from.toLowerCase() as Address,
    to: (typeof to === 'string' ? to.toLowerCase() : '') as Address,
    value: readQuantity(value['value']) ?? 0n,
    input: data as Hex,
    isCall: typeof type === 'string' && type.toLowerCase() === 'call',
    parent,
  }
}
