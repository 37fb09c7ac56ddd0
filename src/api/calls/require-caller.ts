import type { Authenticate } from '../../auth/authenticate.ts'
import type { ReportLimit } from '../../auth/caller.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { headerOf, holderOf, whenComplete } from './call.ts'
import { isHealth } from './cap-calls.ts'
import type { Interceptor } from './served-method.ts'

/** Whether a key is neither revoked nor expired. */
export type IsKeyInForce = (keyId: string) => Promise<boolean>

/**
 * Counts the calls that an address makes without a key.
 *
 * @throws WaybillError RATE_LIMITED
 */
export type CountOpen = (address: string, report: ReportLimit) => void

export interface CallerOptions {
  readonly authenticate: Authenticate
  readonly countOpen: CountOpen
  /** Asked at intervals while a stream is open. Without it keys stay in force. */
  readonly isKeyInForce?: IsKeyInForce | undefined
  /** The interval, in milliseconds: how long a stream may outlive its key. */
  readonly recheckMs: number
}

/**
 * Admits callers whose key has the method's scope. Calls of methods that need no key count against the caller's address. A stream ends
 * when its key is revoked or expires.
 */
export function requireCaller({ authenticate, countOpen, isKeyInForce, recheckMs }: CallerOptions): Interceptor {
  return (method, next) => {
    const { scope, desc, takesTicket, isForPages } = method
    // Monitoring calls it all the time, so it is not counted.
    if (isHealth(method)) return next
    return async (call) => {
      const { headers, clientAddress, reportLimit } = call.incoming
      if (scope === 'open') {
        countOpen(clientAddress(), reportLimit)
        return next(call)
      }
      const apiKey = headerOf(headers, 'x-api-key')
      const ticket = takesTicket && apiKey === null ? call.incoming.readTicket?.() : null
      const readPage = () => ({
        origin: headerOf(headers, 'origin'),
        fetchSite: headerOf(headers, 'sec-fetch-site'),
        host: headerOf(headers, ':authority') ?? headerOf(headers, 'host'),
      })
      const page = isForPages ? readPage : undefined
      const credentials = { apiKey, ticket, account: headerOf(headers, 'x-account'), address: clientAddress, page }
      call.caller = await authenticate(credentials, scope, reportLimit)
      call.incoming.holdConnectionFor(holderOf(call))
      const { keyId } = call.caller
      if (desc.methodKind === 'unary' || isKeyInForce === undefined) return next(call)
      const answer = await next(call)
      const stopChecking = recheck(() => isKeyInForce(keyId), {
        everyMs: recheckMs,
        onNo: () => call.end?.(waybillError('INVALID_API_KEY', {})),
        // A stream may also be abandoned before anybody has begun to read it.
        signal: call.signal,
      })
      return whenComplete(answer, stopChecking)
    }
  }
}

interface Recheck {
  readonly everyMs: number
  readonly onNo: () => void
  /** Aborting it stops the checks as well. */
  readonly signal: AbortSignal
}

/**
 * Asks at intervals until the answer is no.
 *
 * @returns stops the checks
 */
function recheck(ask: () => Promise<boolean>, { everyMs, onNo, signal }: Recheck): () => void {
  let timer: NodeJS.Timeout
  let isOver = false
  const check = async () => {
    // A database that does not answer ends no stream.
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
