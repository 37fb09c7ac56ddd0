import type { Scope } from '../auth/api-key.ts'
import type { Account } from '../domain/account.ts'
import { headerOf } from './call.ts'
import type { Interceptor } from './call-core.ts'
import type { ReportLimit } from './rate-limit-headers.ts'

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
    /** Header `x-account`. */
    readonly account: string | null
    /** From where the call comes. */
    readonly address: () => string
  },
  scope: Scope,
  report: ReportLimit,
) => Promise<{ readonly account: Account }>

/**
 * Counts what an address asks for without a key.
 *
 * @throws WaybillError RATE_LIMITED
 */
export type CountOpen = (address: string, report: ReportLimit) => void

/** Asked for all the time by those who keep watch, so not counted. */
const HEALTH_PATH = '/grpc.health.v1.Health/'

/** Lets only callers pass whose key has the method's scope. Methods that are open to all count against the address. */
export function requireCaller(authenticate: Authenticate, countOpen: CountOpen): Interceptor {
  return ({ scope, path }, next) => {
    if (scope === 'open' && path.startsWith(HEALTH_PATH)) return next
    return async (call) => {
      const { headers, clientAddress, reportLimit } = call.incoming
      if (scope === 'open') {
        countOpen(clientAddress(), reportLimit)
        return next(call)
      }
      const apiKey = headerOf(headers, 'x-api-key')
      const credentials = { apiKey, account: headerOf(headers, 'x-account'), address: clientAddress }
      const { account } = await authenticate(credentials, scope, reportLimit)
      call.account = account
      return next(call)
    }
  }
}
