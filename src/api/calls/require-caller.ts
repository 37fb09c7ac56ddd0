import type { Scope } from '../../auth/api-key.ts'
import type { ReportLimit } from '../../auth/rate-limit.ts'
import type { Account } from '../../domain/account.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { headerOf, whenComplete } from './call.ts'
import type { Interceptor } from './call-core.ts'

/**
 * Tells for whom a caller acts, and counts the call.
 *
 * @param report - hears of the limit that the call counts against
 * @throws WaybillError MISSING_API_KEY, INVALID_API_KEY, MISSING_SCOPE, RATE_LIMITED and the like
 */
export type Authenticate = (
  credentials: {
    /** Header `x-api-key`. */
    readonly apiKey: string | null
    /** What stands for the key where none was sent. */
    readonly ticket?: string | null | undefined
    /** Header `x-account`. */
    readonly account: string | null
    /** From where the call comes. */
    readonly address: () => string
  },
  scope: Scope,
  report: ReportLimit,
) => Promise<{ readonly account: Account; readonly keyId?: string }>

/** Whether a key still is neither revoked nor expired. */
export type IsKeyInForce = (keyId: string) => Promise<boolean>

/**
 * Counts what an address asks for without a key.
 *
 * @throws WaybillError RATE_LIMITED
 */
export type CountOpen = (address: string, report: ReportLimit) => void

/** Asked for all the time by those who keep watch, so not counted. */
const HEALTH_PATH = '/grpc.health.v1.Health/'

export interface CallerOptions {
  readonly authenticate: Authenticate
  readonly countOpen: CountOpen
  /** Asked from time to time for whoever reads a stream. Always by default. */
  readonly isKeyInForce?: IsKeyInForce | undefined
  /** How often, in milliseconds: for how long a stream outlives its key. */
  readonly recheckMs: number
}

/**
 * Lets only callers pass whose key has the method's scope. Methods that are open to all count against the address. A stream ends when
 * its key does.
 */
export function requireCaller({ authenticate, countOpen, isKeyInForce, recheckMs }: CallerOptions): Interceptor {
  return ({ scope, path, desc, takesTicket }, next) => {
    if (scope === 'open' && path.startsWith(HEALTH_PATH)) return next
    return async (call) => {
      const { headers, clientAddress, reportLimit } = call.incoming
      if (scope === 'open') {
        countOpen(clientAddress(), reportLimit)
        return next(call)
      }
      const apiKey = headerOf(headers, 'x-api-key')
      const ticket = takesTicket && apiKey === null ? call.incoming.readTicket?.() : null
      const credentials = { apiKey, ticket, account: headerOf(headers, 'x-account'), address: clientAddress }
      const { account, keyId } = await authenticate(credentials, scope, reportLimit)
      call.account = account
      if (keyId === undefined) return next(call)
      call.keyId = keyId
      if (desc.methodKind === 'unary' || isKeyInForce === undefined) return next(call)
      const answer = await next(call)
      const stopChecking = recheck(() => isKeyInForce(keyId), {
        everyMs: recheckMs,
        onNo: () => call.end?.(waybillError('INVALID_API_KEY', {})),
        // A stream may also be left before anybody has begun to read it.
        signal: call.signal,
      })
      return whenComplete(answer, stopChecking)
    }
  }
}

interface Recheck {
  readonly everyMs: number
  readonly onNo: () => void
  /** Ends the asking, too. */
  readonly signal: AbortSignal
}

/**
 * Asks again and again until the answer is no.
 *
 * @returns what ends the asking
 */
function recheck(ask: () => Promise<boolean>, { everyMs, onNo, signal }: Recheck): () => void {
  let timer: NodeJS.Timeout
  let isOver = false
  const check = async () => {
    // Where the database does not answer, nobody is put out for it.
    const isSo = await ask().catch(() => true)
    if (isOver || signal.aborted) return
    if (isSo) begin()
    else onNo()
  }
  const begin = () => {
    timer = setTimeout(() => void check(), everyMs)
  }
  begin()
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
