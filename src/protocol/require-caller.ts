import type { Scope } from '../auth/api-key.ts'
import type { Account } from '../domain/account.ts'
import { headerOf } from './call.ts'
import type { Interceptor } from './call-core.ts'

/**
 * Tells for whom a caller acts.
 *
 * @throws WaybillError MISSING_API_KEY, INVALID_API_KEY, MISSING_SCOPE and the like
 */
export type Authenticate = (
  credentials: {
    /** Header `x-api-key`. */
    readonly apiKey: string | null
    /** Header `x-account`. */
    readonly account: string | null
  },
  scope: Scope,
) => Promise<{ readonly account: Account }>

/** Lets only callers pass whose key has the method's scope. Methods that are open to all do not ask. */
export function requireCaller(authenticate: Authenticate): Interceptor {
  return ({ scope }, next) => {
    if (scope === 'open') return next
    return async (call) => {
      const { headers } = call.incoming
      const credentials = { apiKey: headerOf(headers, 'x-api-key'), account: headerOf(headers, 'x-account') }
      const { account } = await authenticate(credentials, scope)
      call.account = account
      return next(call)
    }
  }
}
