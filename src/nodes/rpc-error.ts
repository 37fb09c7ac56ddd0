/**
 * What went wrong between this process and a node:
 *
 * - `UNREACHABLE`: no connection, or an answer that is no JSON-RPC (an error page, a broken body)
 * - `TIMEOUT`: no answer in time
 * - `RATE_LIMITED`: the node wants fewer calls
 * - `WRONG_CHAIN`: the URL serves another chain
 * - `TOO_LARGE`: the answer, or the range that was asked for, is more than node or client allow: ask for less
 * - `REVERTED`: the contract refused the call
 * - `REFUSED`: the node understood and refused, for instance because it no longer has that state
 */
export type RpcErrorKind =
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'RATE_LIMITED'
  | 'WRONG_CHAIN'
  | 'TOO_LARGE'
  | 'REVERTED'
  | 'REFUSED'

/** A call that did not succeed. Messages name the node by host alone: the rest of a URL often is a key. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly kind: RpcErrorKind

  constructor(kind: RpcErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** The error member of a JSON-RPC answer. */
export interface RpcErrorAnswer {
  readonly code?: number
  readonly message?: string
  readonly data?: unknown
}

const TOO_LARGE =
  /block range|range (is )?too (large|wide|big)|too many (logs|results|blocks)|more than [\d,]+ (results|logs|blocks)|response (size|(is )?too (big|large))|max(imum)? (block )?range|exceeds? (the )?(range|limit of|max)|limited to (a )?[\d,]+|query timeout|returned more than|blocks? distance/i
const RATE_LIMITED = /rate.?limit|too many requests|request limit|exceeded.*(quota|capacity|compute units)|throttl/i
const REVERTED =
  /revert|vm execution error|invalid opcode|(invalid|bad) (jump|instruction)|out of gas|stack (under|over)flow/i

/** Sorts a node's own error by what the caller can do about it. Providers agree on words more than on codes. */
export function classifyErrorAnswer({ code, message = '' }: RpcErrorAnswer): RpcErrorKind {
  if (RATE_LIMITED.test(message) || code === 429) return 'RATE_LIMITED'
  if (TOO_LARGE.test(message)) return 'TOO_LARGE'
  if (REVERTED.test(message) || code === 3) return 'REVERTED'
  return code === -32005 ? 'TOO_LARGE' : 'REFUSED'
}

/** Whether another node, or the same later, may well answer the same call. */
export function isTransportFailure(error: unknown): error is RpcError {
  if (!(error instanceof RpcError)) return false
  return error.kind !== 'TOO_LARGE' && error.kind !== 'REVERTED' && error.kind !== 'REFUSED'
}
