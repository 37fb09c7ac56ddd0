import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { isObject } from '../../nodes/rpc-error.ts'

/** What is known about a transaction's calls beside its receipt: all of them by a trace, or only the sender's own. `value` in wei. */
export type KnownCalls =
  | { readonly kind: 'TRACE'; readonly root: CallFrame }
  | { readonly kind: 'OWN_CALL'; readonly value: bigint; readonly input: Hex }

/** A call within a transaction, as a node traced it. `value` in wei. */
export interface CallFrame {
  /** DELEGATE runs the code of `to` in the context of the caller. STATIC cannot emit events. */
  readonly kind: 'CALL' | 'DELEGATE' | 'STATIC' | 'CREATE'
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  /** Only the selector where it is too long to be a payment's. */
  readonly input: Hex
  /** Whether it was reverted, and with it all calls within it. */
  readonly isReverted: boolean
  readonly calls: readonly CallFrame[]
}

const KINDS: Readonly<Record<string, CallFrame['kind']>> = {
  CALL: 'CALL',
  CALLCODE: 'DELEGATE',
  DELEGATECALL: 'DELEGATE',
  STATICCALL: 'STATIC',
  CREATE: 'CREATE',
  CREATE2: 'CREATE',
}

/** Reads what `debug_traceTransaction` answers with the callTracer; undefined for anything else. */
export function readCallTracer(json: unknown): CallFrame | undefined {
  if (!isObject(json) || typeof json['type'] !== 'string' || typeof json['from'] !== 'string') return undefined
  const { type, calls } = json
  const inner = Array.isArray(calls) ? calls.flatMap((each) => readCallTracer(each) ?? []) : []
  return { ...toFrame(type, json), calls: inner.filter(canPay) }
}

/** Reverted and static calls cannot pay and are dropped, since a trace can be large. */
function canPay({ kind, isReverted }: Pick<CallFrame, 'kind' | 'isReverted'>): boolean {
  return kind !== 'STATIC' && !isReverted
}

/** Reads what `trace_transaction` answers, a flat list in which each call names its place in the tree; undefined for anything else. */
export function readParityTrace(json: unknown): CallFrame | undefined {
  if (!Array.isArray(json)) return undefined
  const frames = new Map<string, CallFrame & { readonly calls: CallFrame[] }>()
  for (const trace of json.filter(isObject)) {
    const { type, action, result, error, traceAddress } = trace
    if (!isObject(action) || typeof action['from'] !== 'string' || !Array.isArray(traceAddress)) continue
    const created = isObject(result) ? result['address'] : undefined
    const kind = type === 'create' ? 'CREATE' : String(action['callType'])
    const frame = { ...toFrame(kind, { ...action, to: action['to'] ?? created, error }), calls: [] }
    frames.set(traceAddress.join(), frame)
    if (traceAddress.length > 0 && canPay(frame)) frames.get(traceAddress.slice(0, -1).join())?.calls.push(frame)
  }
  return frames.get('')
}

function toFrame(type: string, { from, to, value, input, error }: Readonly<Record<string, unknown>>) {
  return {
    // Other kinds, such as SELFDESTRUCT, call nobody.
    kind: KINDS[type.toUpperCase()] ?? 'STATIC',
    from: toAddress(from),
    to: toAddress(to),
    value: toValue(value),
    input: toInput(input),
    isReverted: isError(error),
  }
}

const isError = (error: unknown) => error !== undefined && error !== null && error !== ''
const toAddress = (text: unknown) => (typeof text === 'string' ? text.toLowerCase() : '') as Address
const toValue = (text: unknown) => (typeof text === 'string' && /^0x[0-9a-f]+$/i.test(text) ? BigInt(text) : 0n)

/** In characters; longer than the input of any payment. */
const MAX_INPUT_LENGTH = 4_096
const SELECTOR_LENGTH = 10

/** Cuts a long input to its selector, so that it is neither empty (a plain transfer) nor a payment. */
function toInput(text: unknown): Hex {
  if (typeof text !== 'string' || !text.startsWith('0x')) return '0x'
  return (text.length > MAX_INPUT_LENGTH ? text.slice(0, SELECTOR_LENGTH) : text) as Hex
}
