import { waybillError } from '../../errors/waybill-error.ts'
import { type Call, isStream, whenComplete } from './call.ts'
import { callerOf } from './call-context.ts'
import type { Answer, Interceptor, Next, ServedMethod } from './served-method.ts'

/** How many calls may run at once in this process. */
export interface CallCaps {
  readonly maxCalls: number
  /** Streams that need a key. They have a cap of their own, since they last long and would leave no room for calls. */
  readonly maxOpenStreams: number
  /** Streams that need no key: reflection and health. */
  readonly maxKeylessStreams: number
}

/**
 * Refuses calls beyond the caps, before anything is read or looked up for them. Health checks are never refused.
 *
 * @throws WaybillError OVERLOADED, which says when to retry
 */
export function capCalls(caps: CallCaps): Interceptor {
  const pools = {
    calls: createPool(caps.maxCalls),
    streams: createPool(caps.maxOpenStreams),
    keyless: createPool(caps.maxKeylessStreams),
  }
  return (method, next) => {
    const name = poolOf(method)
    if (name === undefined) return next
    const pool = pools[name]
    return async (call) => {
      if (!pool.take()) throw waybillError('OVERLOADED', {})
      return holdUntilOver(call, next, () => pool.give())
    }
  }
}

/** How many streams one caller may have open at once in this process, over all protocols and connections. */
export interface StreamCaps {
  readonly maxStreamsPerKey: number
  /** Over all keys of the account. */
  readonly maxStreamsPerAccount: number
  /** Of publishable keys together. They are in public hands, so streams with secret keys keep room. */
  readonly maxPageStreams: number
}

/** Streams with publishable keys from one client address. */
const MAX_STREAMS_PER_PAGE_ADDRESS = 5

/** A tenth of the streams of the process for one key, a fifth for one account, and half for pages; at least one. */
export function streamCapsOf(maxOpenStreams: number): StreamCaps {
  return {
    maxStreamsPerKey: Math.max(1, Math.floor(maxOpenStreams / 10)),
    maxStreamsPerAccount: Math.max(1, Math.floor(maxOpenStreams / 5)),
    maxPageStreams: Math.max(1, Math.floor(maxOpenStreams / 2)),
  }
}

/**
 * Refuses further streams of a caller that has reached its cap, so that there is room for others.
 *
 * @throws WaybillError TOO_MANY_STREAMS
 */
export function capStreams({ maxStreamsPerKey, maxStreamsPerAccount, maxPageStreams }: StreamCaps): Interceptor {
  const ofKeys = createPools<string>(maxStreamsPerKey)
  const ofAccounts = createPools<number>(maxStreamsPerAccount)
  const ofPages = capPages(maxPageStreams)
  return ({ desc, scope }, next) => {
    if (desc.methodKind === 'unary' || scope === 'open') return next
    return async (call) => {
      const { keyId, account, pageAddress } = callerOf(call)
      if (pageAddress !== undefined) {
        ofPages.take(pageAddress)
        return holdUntilOver(call, next, () => ofPages.give(pageAddress))
      }
      if (!ofKeys.take(keyId)) throw waybillError('TOO_MANY_STREAMS', { holder: 'key', limit: maxStreamsPerKey })
      if (!ofAccounts.take(account.id)) {
        ofKeys.give(keyId)
        throw waybillError('TOO_MANY_STREAMS', { holder: 'account', limit: maxStreamsPerAccount })
      }
      return holdUntilOver(call, next, () => {
        ofKeys.give(keyId)
        ofAccounts.give(account.id)
      })
    }
  }
}

/** Streams with publishable keys: a few for each client address, and a part of all. @throws WaybillError TOO_MANY_PAGE_STREAMS */
function capPages(maxPageStreams: number) {
  const all = createPool(maxPageStreams)
  const ofAddresses = createPools<string>(MAX_STREAMS_PER_PAGE_ADDRESS)
  return {
    take(address: string) {
      if (!ofAddresses.take(address)) throw waybillError('TOO_MANY_PAGE_STREAMS', {})
      if (all.take()) return
      ofAddresses.give(address)
      throw waybillError('TOO_MANY_PAGE_STREAMS', {})
    },
    give(address: string) {
      ofAddresses.give(address)
      all.give()
    },
  }
}

/** Runs the call and calls `giveBack` once: when the call has failed, or its answer is complete or abandoned. */
async function holdUntilOver(call: Call, next: Next, giveBack: () => void): Promise<Answer> {
  let isOver = false
  const end = () => {
    if (!isOver) giveBack()
    isOver = true
  }
  try {
    const answer = await next(call)
    if (!isStream(answer)) {
      end()
      return answer
    }
    // A stream may also be abandoned before anybody has begun to read it.
    call.incoming.onHangUp(end)
    return whenComplete(answer, end)
  } catch (error) {
    end()
    throw error
  }
}

/** Pools of one size, one for each holder. Pools from which nothing is taken are forgotten. */
function createPools<K>(size: number) {
  const taken = new Map<K, number>()
  return {
    take(of: K) {
      const before = taken.get(of) ?? 0
      if (before >= size) return false
      taken.set(of, before + 1)
      return true
    },
    give(of: K) {
      const left = (taken.get(of) ?? 1) - 1
      if (left === 0) taken.delete(of)
      else taken.set(of, left)
    },
  }
}

function poolOf({ desc, scope }: ServedMethod): 'calls' | 'streams' | 'keyless' | undefined {
  if (desc.methodKind === 'unary') return scope === 'open' ? undefined : 'calls'
  return scope === 'open' ? 'keyless' : 'streams'
}

function createPool(size: number) {
  let taken = 0
  return {
    take() {
      if (taken >= size) return false
      taken += 1
      return true
    },
    give() {
      taken -= 1
    },
  }
}
