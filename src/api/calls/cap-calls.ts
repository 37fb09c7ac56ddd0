import { waybillError } from '../../errors/waybill-error.ts'
import { type Call, isStream, whenComplete } from './call.ts'
import type { Answer, Interceptor, Next, ServedMethod } from './call-core.ts'

/** How many calls may be under way at once in this process, of all connections together. */
export interface CallCaps {
  readonly maxCalls: number
  /** Streams that need a key. They last long, and so must not take the place of calls. */
  readonly maxOpenStreams: number
  /** Streams that need none: reflection and health. */
  readonly maxKeylessStreams: number
}

/**
 * Refuses calls beyond what may be under way at once, before anything is read or looked up for them. A health check is
 * answered at any time.
 *
 * @throws WaybillError OVERLOADED, with when to come back
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

/** How many streams one caller may have open at once in this process, over all protocols and connections together. */
export interface StreamCaps {
  readonly maxStreamsPerKey: number
  /** Of all keys of the account. */
  readonly maxStreamsPerAccount: number
}

/** A tenth of the streams of the process for one key, and a fifth for one account; at least one. */
export function streamCapsOf(maxOpenStreams: number): StreamCaps {
  return {
    maxStreamsPerKey: Math.max(1, Math.floor(maxOpenStreams / 10)),
    maxStreamsPerAccount: Math.max(1, Math.floor(maxOpenStreams / 5)),
  }
}

/**
 * Refuses streams of a caller that has its part of them open, so that others find room.
 *
 * @throws WaybillError TOO_MANY_STREAMS
 */
export function capStreams({ maxStreamsPerKey, maxStreamsPerAccount }: StreamCaps): Interceptor {
  const ofKeys = createPools<string>(maxStreamsPerKey)
  const ofAccounts = createPools<number>(maxStreamsPerAccount)
  return ({ desc, scope }, next) => {
    if (desc.methodKind === 'unary' || scope === 'open') return next
    return async (call) => {
      const { keyId, account } = call
      if (keyId !== undefined && !ofKeys.take(keyId)) {
        throw waybillError('TOO_MANY_STREAMS', { holder: 'key', limit: maxStreamsPerKey })
      }
      if (account !== undefined && !ofAccounts.take(account.id)) {
        if (keyId !== undefined) ofKeys.give(keyId)
        throw waybillError('TOO_MANY_STREAMS', { holder: 'account', limit: maxStreamsPerAccount })
      }
      return holdUntilOver(call, next, () => {
        if (keyId !== undefined) ofKeys.give(keyId)
        if (account !== undefined) ofAccounts.give(account.id)
      })
    }
  }
}

/** Makes the call and gives back, once, what is held for it: when it has failed, or its answer is out or left. */
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
    // A stream may also be left before anybody has begun to read it.
    call.incoming.onHangUp(end)
    return whenComplete(answer, end)
  } catch (error) {
    end()
    throw error
  }
}

/** A pool of the same size for each of many; those of which nothing is taken are not remembered. */
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
