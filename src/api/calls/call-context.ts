import { createContextKey, type HandlerContext } from '@connectrpc/connect'
import type { Caller } from '../../auth/caller.ts'
import type { Account } from '../../domain/account.ts'

/**
 * The key of the caller in a handler's context values; undefined for methods that need no key. Handlers take Connect's own
 * {@link HandlerContext} and find their caller in its values, so that they run on any of Connect's servers.
 */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'caller' })

/**
 * The caller of a method that needs a key.
 *
 * @throws TypeError when the method needs none
 */
export function callerOf({ values }: Pick<HandlerContext, 'values'>): Caller {
  const caller = values.get(callerKey)
  if (caller === undefined) throw new TypeError('the handler of a method that needs no key asked for the caller')
  return caller
}

/** What handlers here use of Connect's context; that of a call has no more. */
export type CallContext = Omit<HandlerContext, 'service' | 'protocolName' | 'requestMethod' | 'url'>

/** The account of {@link callerOf}. */
export function accountOf(context: Pick<HandlerContext, 'values'>): Account {
  return callerOf(context).account
}
