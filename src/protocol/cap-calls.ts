import { waybillError } from '../errors.ts'
import { whenComplete } from './call.ts'
import type { Interceptor, ServedMethod } from './call-core.ts'

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
      let isOver = false
      const end = () => {
        if (!isOver) pool.give()
        isOver = true
      }
      try {
        const answer = await next(call)
        if (!(Symbol.asyncIterator in answer)) {
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
