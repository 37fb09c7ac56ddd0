import { waybillError } from '../../errors/waybill-error.ts'
import { type Call, callerOf } from './call.ts'
import { holdUntilOver } from './cap-calls.ts'
import { createRoster } from './roster.ts'
import type { Interceptor } from './served-method.ts'

/** Knows which accounts have their rows on a server that does not answer, where accounts are spread over several. */
export interface LostServers {
  readonly isLost: (accountId: number) => Promise<boolean>
  /** Calls back each time that a server is lost. */
  readonly onLoss: (listener: () => void) => void
}

/** Operators' methods read no rows of accounts. */
const OPERATORS_SCOPES: ReadonlySet<string> = new Set(['open', 'chains:read', 'operations:read'])

/**
 * Refuses calls of accounts whose server does not answer, and ends those that wait for it: else they would hold places and connections until their
 * deadlines, and keep them from accounts whose servers are well.
 *
 * @throws WaybillError DATABASE_UNAVAILABLE
 */
export function endLostCalls(servers: LostServers | undefined): Interceptor {
  if (servers === undefined) return (_, next) => next
  const running = createRoster<Call>()
  const unavailable = () => waybillError('DATABASE_UNAVAILABLE', {})
  servers.onLoss(() => {
    for (const call of running.members()) {
      void servers.isLost(callerOf(call).account.id).then((isLost) => isLost && call.end?.(unavailable()))
    }
  })
  return ({ scope }, next) => {
    if (OPERATORS_SCOPES.has(scope)) return next
    return async (call) => {
      const leave = running.join(call)
      return holdUntilOver(
        call,
        async (each) => {
          if (await servers.isLost(callerOf(each).account.id)) throw unavailable()
          return next(each)
        },
        leave,
      )
    }
  }
}
