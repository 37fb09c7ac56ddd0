/**
 * What went wrong between this process and a node:
 *
 * - `UNREACHABLE`: no connection, or an HTTP error
 * - `TIMEOUT`: no answer in time
 * - `RATE_LIMITED`: the node wants fewer requests
 * - `WRONG_CHAIN`: the URL serves another chain
 * - `BEHIND`: the node does not have the newest blocks yet
 * - `INCONSISTENT`: the answer is not JSON-RPC, or cannot be right
 * - `TOO_LARGE`: the question or its answer is more than the node or this client allows: ask for less
 * - `BATCH_REFUSED`: the node takes only smaller batches, or none
 * - `TOO_MANY_ADDRESSES`: the node takes fewer addresses in one filter
 * - `REVERTED`: the contract reverted the call
 * - `REFUSED`: the node understood the call and refused it, for instance because it has pruned that state
 */
export type RpcErrorKind =
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'RATE_LIMITED'
  | 'WRONG_CHAIN'
  | 'BEHIND'
  | 'INCONSISTENT'
  | 'TOO_LARGE'
  | 'BATCH_REFUSED'
  | 'TOO_MANY_ADDRESSES'
  | 'REVERTED'
  | 'REFUSED'

/** A JSON-RPC error as the node sent it; `message` is cut to 500 characters. */
export interface RpcRefusal {
  readonly code?: number | undefined
  readonly message: string
  /** The return data of a revert, hexadecimal with `0x`. */
  readonly data?: string | undefined
  /** `data` where it is not bytes, and a field `details`, as text: some nodes put there what was wrong. Cut to 500 characters. */
  readonly details?: string | undefined
}

interface RpcErrorOptions extends ErrorOptions {
  /** The host of the node's URL. The rest of a URL may be a key, so it never stands in an error. */
  readonly host?: string | undefined
  /** Present when the node answered the call with an error of JSON-RPC. */
  readonly refusal?: RpcRefusal | undefined
  /** The pause that the node asks for. */
  readonly retryAfterMs?: number | undefined
}

/** A question to a node that failed. `message` names the node's host and repeats the node's words: it is for operators. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly kind: RpcErrorKind
  /** The failure in this program's words alone, which callers of the API may read. */
  readonly detail: string
  readonly refusal: RpcRefusal | undefined
  readonly retryAfterMs: number | undefined

  constructor(kind: RpcErrorKind, detail: string, options: RpcErrorOptions = {}) {
    const words = [options.host, detail, options.refusal?.message].filter((part) => part !== undefined && part !== '')
    super(words.join(': '), options)
    this.kind = kind
    this.detail = detail
    this.refusal = options.refusal
    this.retryAfterMs = options.retryAfterMs
  }
}

/** For `catch`: a node that fails gave nothing. @throws any other error */
export function ignoreRpcError(error: unknown): undefined {
  if (!(error instanceof RpcError)) throw error
}

/** Failures for which the call is the reason: another node would fail it as well. */
const CALL_KINDS: ReadonlySet<RpcErrorKind> = new Set([
  'TOO_LARGE',
  'BATCH_REFUSED',
  'TOO_MANY_ADDRESSES',
  'REVERTED',
  'REFUSED',
])

/** Whether the node is the reason: another one, or the same one later, may answer the same call. */
export function isTransportFailure(error: unknown): error is RpcError {
  return error instanceof RpcError && !CALL_KINDS.has(error.kind)
}

const MAX_MESSAGE_LENGTH = 500

/** Reads the `error` member of an answer, whatever the node put there. */
export function readRefusal(error: unknown): RpcRefusal {
  if (!isObject(error)) return { message: String(error).slice(0, MAX_MESSAGE_LENGTH) }
  const { code, message, data, details } = error
  // Some nodes wrap the data of a revert in an object.
  const bytes = isObject(data) ? data.data : data
  const isBytes = typeof bytes === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(bytes)
  return {
    code: typeof code === 'number' ? code : undefined,
    message: typeof message === 'string' ? message.slice(0, MAX_MESSAGE_LENGTH) : '',
    data: isBytes ? bytes : undefined,
    details: textOf([isBytes ? undefined : data, details]),
  }
}

/** Joins the parts of an error beside its message; undefined where there are none. */
function textOf(parts: readonly unknown[]): string | undefined {
  const texts = parts
    .filter((part) => part !== undefined && part !== null)
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
  return texts.length === 0 ? undefined : texts.join(' ').slice(0, MAX_MESSAGE_LENGTH)
}

/** All words of a refusal. */
export function wordsOf({ message, details }: RpcRefusal): string {
  return details === undefined ? message : `${message} ${details}`
}

/** @see https://eips.ethereum.org/EIPS/eip-1474 */
export const REVERT_CODE = 3

/** Whether the contract itself reverted the call. Narrower than the kind `REVERTED`, which includes a lack of gas. */
export function isRevert({ code, message }: RpcRefusal): boolean {
  return code === REVERT_CODE || /revert/i.test(message)
}

const UNKNOWN_METHOD_CODES = new Set([-32601, -32004])
const UNKNOWN_METHOD =
  /not (?:found|supported|available|enabled|exist|allowed|whitelisted)|unsupported|(?:unknown|invalid|unrecogni[sz]ed) method/i

/** Whether the node does not offer the method at all. */
export function isUnknownMethod({ code, message }: RpcRefusal): boolean {
  return (code !== undefined && UNKNOWN_METHOD_CODES.has(code)) || UNKNOWN_METHOD.test(message)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
