import { setTimeout as delay } from 'node:timers/promises'
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
      const over = new AbortController()
      // A stream may also be abandoned before anybody has begun to read it.
      const signal = AbortSignal.any([call.signal, over.signal])
      untilNo(() => isKeyInForce(keyId), recheckMs, signal).then(
        () => call.end?.(waybillError('INVALID_API_KEY', {})),
        () => {},
      )
      return whenComplete(answer, () => over.abort())
    }
  }
}

/** Asks at intervals until the answer is no. Rejects when the signal aborts. */
async function untilNo(ask: () => Promise<boolean>, everyMs: number, signal: AbortSignal): Promise<void> {
  do {
    await delay(everyMs, undefined, { signal })
    // A database that does not answer ends no stream.
  } while (await ask().catch(() => true))
  signal.throwIfAborted()
}
