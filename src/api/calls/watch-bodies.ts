import { USUAL_SHARE } from '../../domain/account.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { createAlarms } from './alarms.ts'
import { type Call, holderOf } from './call.ts'
import { createPlaces, placesOf } from './shares.ts'

/** How the bodies of requests may arrive. */
export interface BodyLimits {
  /** How many bodies may be on their way at once, over all callers. One caller has a tenth of them. As many as calls by default. */
  readonly maxOpenBodies: number
  /** A body that arrives within this time is not counted, in milliseconds. */
  readonly bodyGraceMs: number
  /** How long a body may take beyond what its least rate allows, in milliseconds. */
  readonly bodySlackMs: number
  readonly minBodyBytesPerSecond: number
}

/**
 * Watches the bodies of requests while they are read. Ends a call whose body is one too many of its caller, or arrives below the least rate.
 *
 * @returns begins to watch the body of a call; the function that it returns is to be called when the body has been read
 */
export function createBodyWatch(limits: BodyLimits): (call: Call) => () => void {
  const { maxOpenBodies: size, bodyGraceMs, bodySlackMs, minBodyBytesPerSecond } = limits
  const places = createPlaces({ size, isCapped: true })
  const setAlarm = createAlarms()

  function takePlace(call: Call): (() => void) | undefined {
    const holder = holderOf(call)
    const place = places.take(holder)
    if (typeof place === 'function') return place
    if (place === 'FULL') call.end?.(waybillError('OVERLOADED', {}))
    else {
      const named = holder.standing === 'secret' ? 'key' : 'address'
      call.end?.(waybillError('TOO_MANY_OPEN_BODIES', { holder: named, limit: placesOf(size, USUAL_SHARE) }))
    }
    return undefined
  }

  return (call) => {
    const startMs = performance.now()
    let leave: (() => void) | undefined
    let isOver = false
    let callOff = () => {}
    const check = () => {
      if (isOver) return
      leave ??= takePlace(call)
      if (leave === undefined) return
      const elapsedMs = performance.now() - startMs
      const least = ((elapsedMs - bodySlackMs) / 1000) * minBodyBytesPerSecond
      if (call.incoming.receivedBytes() >= least) watchOn()
      else call.end?.(waybillError('REQUEST_TOO_SLOW', { timeoutMs: Math.round(elapsedMs) }))
    }
    const watchOn = () => {
      // If this process was held up itself, the bytes that arrived meanwhile are read first.
      callOff = setAlarm(bodyGraceMs, () => setImmediate(check))
    }
    watchOn()
    return () => {
      isOver = true
      callOff()
      leave?.()
    }
  }
}
