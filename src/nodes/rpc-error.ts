/**
 * What went wrong between this process and a node:
 *
 * - `UNREACHABLE`: no connection, or an HTTP error
 * - `TIMEOUT`: no answer in time
 * - `RATE_LIMITED`: the node wants fewer requests
 * - `WRONG_CHAIN`: the URL serves another chain
 * - `BEHIND`: the node's newest block is too old
 * - `INCONSISTENT`: the answer is not JSON-RPC, or cannot be right
 * - `TOO_LARGE`: the question or its answer is more than the node or this client allows: ask for less
 * - `REVERTED`: the contract reverted the call
 * - `REFUSED`: the node understood the call and refused it, for instance because it has pruned that state
 */
type RpcErrorKind =
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'RATE_LIMITED'
  | 'WRONG_CHAIN'
  | 'BEHIND'
  | 'INCONSISTENT'
  | 'TOO_LARGE'
  | 'REVERTED'
  | 'REFUSED'

/** A JSON-RPC error as the node sent it; `message` is cut to 500 characters. */
export interface RpcRefusal {
  readonly code?: number | undefined
  readonly message: string
  /** The return data of a revert, hexadecimal with `0x`. */
  readonly data?: string | undefined
}

interface RpcErrorOptions extends ErrorOptions {
  /** The host of the node's URL. The rest of a URL may be a key, so it never stands in an error. */
  readonly host?: string | undefined
  /** Present when the node answered the call with an error of JSON-RPC. */
  readonly refusal?: RpcRefusal | undefined
  /** How long the node asks to be left alone. */
  readonly retryAfterMs?: number | undefined
}

/** A question to a node that failed. `message` names the node's host and repeats the node's words: it is for operators. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly kind: RpcErrorKind
  /** The failure in our own words alone, which callers of the API may read. */
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

/** Whether another node, or the same one later, may well answer the same question. */
export function isTransportFailure(error: unknown): error is RpcError {
  if (!(error instanceof RpcError)) return false
  return error.kind !== 'TOO_LARGE' && error.kind !== 'REVERTED' && error.kind !== 'REFUSED'
}

const MAX_MESSAGE_LENGTH = 500

/** Reads the `error` member of an answer, whatever the node put there. */
export function readRefusal(error: unknown): RpcRefusal {
  if (!isObject(error)) return { message: String(error).slice(0, MAX_MESSAGE_LENGTH) }
  const { code, message, data } = error
  // Some nodes wrap the data of a revert in an object.
  const bytes = isObject(data) ? data.data : data
  return {
    code: typeof code === 'number' ? code : undefined,
    message: typeof message === 'string' ? message.slice(0, MAX_MESSAGE_LENGTH) : '',
    data: typeof bytes === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(bytes) ? bytes : undefined,
  }
}

const TOO_LARGE =
  /block range|range (is )?too (large|wide|big)|too many (logs|results|blocks)|more than [\d,]+ (results|logs|blocks)|response (size|(is )?too (big|large))|max(imum)? (block )?range|exceeds? (the )?(range|limit of|max)|limited to (a )?[\d,]+|query timeout|returned more than|blocks? distance/i
const RATE_LIMITED = /rate.?limit|too many requests|request limit|exceeded.*(quota|capacity|compute units)|throttl/i
const REVERTED =
  /revert|vm execution error|invalid opcode|(invalid|bad) (jump|instruction)|out of gas|stack (under|over)flow/i

/** Sorts a node's error by what the caller can do about it. Providers agree on words more than on codes. */
export function classifyRefusal({ code, message }: RpcRefusal): RpcErrorKind {
  if (RATE_LIMITED.test(message) || code === 429) return 'RATE_LIMITED'
  if (TOO_LARGE.test(message)) return 'TOO_LARGE'
  if (REVERTED.test(message) || code === REVERT_CODE) return 'REVERTED'
  return code === -32005 ? 'TOO_LARGE' : 'REFUSED'
}

/** @see https://eips.ethereum.org/EIPS/eip-1474 */
const REVERT_CODE = 3

/** Whether a contract reverted the call, and nothing else went wrong: narrower than `REVERTED`, which also covers a lack of gas. */
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
