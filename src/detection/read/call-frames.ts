import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'

/** A call within a transaction, as a node traced it. `value` in wei. */
export interface CallFrame {
  /** DELEGATE: it runs the code of `to` in the name of the contract that calls. STATIC calls can emit nothing. */
  readonly kind: 'CALL' | 'DELEGATE' | 'STATIC' | 'CREATE'
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  /** Of long ones the first four bytes. */
  readonly input: Hex
  /** It was undone, and all that it called. */
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

interface FrameJson {
  readonly type?: unknown
  readonly from?: unknown
  readonly to?: unknown
  readonly value?: unknown
  readonly input?: unknown
  readonly error?: unknown
  readonly calls?: unknown
}

/** Reads what `debug_traceTransaction` answers with the callTracer; undefined for anything else. */
export function readCallTracer(json: unknown): CallFrame | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  const { type, from, to, value, input, error, calls } = json as FrameJson
  if (typeof type !== 'string' || typeof from !== 'string') return undefined
  const inner = Array.isArray(calls) ? calls : []
  return {
    // What has no kind here, as SELFDESTRUCT, calls nobody.
    kind: KINDS[type.toUpperCase()] ?? 'STATIC',
    from: toAddress(from),
    to: toAddress(to),
    value: toValue(value),
    input: toInput(input),
    isReverted: isError(error),
    calls: inner.flatMap((each) => readCallTracer(each) ?? []).filter(canPay),
  }
}

/** What was undone, or could change nothing, is not kept: a trace can be large. */
function canPay({ kind, isReverted }: CallFrame): boolean {
  return kind !== 'STATIC' && !isReverted
}

interface ParityTrace {
  readonly type?: unknown
  readonly action?: FrameJson & { readonly callType?: unknown }
  readonly result?: { readonly address?: unknown } | null
  readonly error?: unknown
  readonly traceAddress?: readonly number[]
}

/** Reads what `trace_transaction` answers, a flat list with each call's place in the tree; undefined for anything else. */
export function readParityTrace(json: unknown): CallFrame | undefined {
  if (!Array.isArray(json)) return undefined
  const frames = new Map<string, CallFrame & { readonly calls: CallFrame[] }>()
  for (const trace of json as (ParityTrace | null | undefined)[]) {
    const { action, traceAddress } = trace ?? {}
    if (!trace || typeof action?.from !== 'string' || !Array.isArray(traceAddress)) continue
    const frame = toFrame(trace, action)
    frames.set(traceAddress.join(), frame)
    if (traceAddress.length > 0 && canPay(frame)) frames.get(traceAddress.slice(0, -1).join())?.calls.push(frame)
  }
  return frames.get('')
}

function toFrame({ type, result, error }: ParityTrace, action: NonNullable<ParityTrace['action']>) {
  const called = typeof action.callType === 'string' ? action.callType : 'none'
  return {
    kind: type === 'create' ? 'CREATE' : (KINDS[called.toUpperCase()] ?? 'STATIC'),
    from: toAddress(action.from),
    to: toAddress(action.to ?? result?.address),
    value: toValue(action.value),
    input: toInput(action.input),
    isReverted: isError(error),
    calls: [] as CallFrame[],
  } as const
}

const isError = (error: unknown) => error !== undefined && error !== null && error !== ''
const toAddress = (text: unknown) => (typeof text === 'string' ? text.toLowerCase() : '') as Address
const toValue = (text: unknown) => (typeof text === 'string' && /^0x[0-9a-f]+$/i.test(text) ? BigInt(text) : 0n)

/** Longer than the call of any payment. */
const LONGEST_INPUT = 4_096
const SELECTOR = 10

/** Of what is too long the selector is left, so that it is neither empty nor a payment. */
function toInput(text: unknown): Hex {
  if (typeof text !== 'string' || !text.startsWith('0x')) return '0x'
  return (text.length > LONGEST_INPUT ? text.slice(0, SELECTOR) : text) as Hex
}
