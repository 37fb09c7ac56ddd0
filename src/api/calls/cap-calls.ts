import { USUAL_SHARE } from '../../domain/account.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { accountOf, type Call, callerOf, holderOf, isStream, whenComplete } from './call.ts'
import type { Answer, Interceptor, Next, ServedMethod } from './served-method.ts'
import { createCounts, type Holder, type Places, placesOf } from './shares.ts'

/** How many calls may run at once in this process. */
export interface CallCaps {
  /** Streams and health checks are not counted. */
  readonly maxCalls: number
  /** Streams that need a key. They have a cap of their own, since they last long and would leave no space for calls. */
  readonly maxOpenStreams: number
  /** Streams that need no key, watches of health excepted. */
  readonly maxKeylessStreams: number
}

/** How many streams one caller may have open at once in this process, over all protocols and connections. */
export interface StreamCaps {
  readonly maxStreamsPerKey: number
  /** Over all keys of the account. */
  readonly maxStreamsPerAccount: number
  /** Of publishable keys together. They are in public hands, so streams with secret keys keep space. */
  readonly maxPageStreams: number
}

/** Streams with publishable keys from one client address. */
const MAX_STREAMS_PER_PAGE_ADDRESS = 5

/** A tenth of the streams of the process for one key, a fifth for one account, and half for pages; at least one. */
export function streamCapsOf(maxOpenStreams: number): StreamCaps {
  return {
    maxStreamsPerKey: placesOf(maxOpenStreams, USUAL_SHARE),
    maxStreamsPerAccount: placesOf(maxOpenStreams, 0.2),
    maxPageStreams: placesOf(maxOpenStreams, 0.5),
  }
}

/** Monitoring must see a busy process as alive. */
const HEALTH_PATH = '/grpc.health.v1.Health/'

/** Whether a method tells whether the process is well: it is answered however busy the process is. */
export function isHealth({ path, scope }: Pick<ServedMethod, 'path' | 'scope'>): boolean {
  return scope === 'open' && path.startsWith(HEALTH_PATH)
}

/** Gives back what a call holds. */
type GiveBack = () => void

/**
 * Counts calls and streams from when their request is whole until their answer is complete, and refuses those for which there is no place.
 * Health checks are always answered; one address may hold a tenth of the streams for watches of health.
 *
 * @param places - of running calls
 * @throws WaybillError OVERLOADED, TOO_MANY_STREAMS, TOO_MANY_PAGE_STREAMS, which say when to retry
 */
export function capCalls(caps: CallCaps & StreamCaps, places: Places): Interceptor {
  const takeStream = capStreams(caps)
  const takeKeylessStream = takeAll(
    capByAddress(placesOf(caps.maxKeylessStreams, USUAL_SHARE)),
    createPools(caps.maxKeylessStreams, overloaded),
  )
  const takeHealthWatch = capByAddress(placesOf(caps.maxOpenStreams, USUAL_SHARE))
  const chooseTake = (method: ServedMethod): Take | undefined => {
    const isUnary = method.desc.methodKind === 'unary'
    if (isHealth(method)) return isUnary ? undefined : takeHealthWatch
    if (isUnary) return (call) => takePlace(places, holderOf(call))
    return method.scope === 'open' ? takeKeylessStream : takeStream
  }
  return (method, next) => {
    const take = chooseTake(method)
    return take === undefined ? next : async (call) => holdUntilOver(call, next, take(call))
  }
}

/**
 * Refuses a call for which there is no place now before its request is read, which would cost more.
 *
 * @throws WaybillError OVERLOADED
 */
export function refuseWhenFull(places: Places): Interceptor {
  return (method, next) => {
    if (method.desc.methodKind !== 'unary' || isHealth(method)) return next
    return (call) => {
      if (!places.hasPlaceFor(holderOf(call))) throw overloaded()
      return next(call)
    }
  }
}

/** Takes a place for a running call. @throws WaybillError OVERLOADED */
export function takePlace(places: Places, holder: Holder): GiveBack {
  const place = places.take(holder)
  if (typeof place !== 'function') throw overloaded()
  return place
}

function overloaded(): WaybillError {
  return waybillError('OVERLOADED', {})
}

function tooManyStreams(holder: 'key' | 'account' | 'address', limit: number): () => WaybillError {
  return () => waybillError('TOO_MANY_STREAMS', { holder, limit })
}

type Take = (call: Call) => GiveBack

function capStreams({ maxOpenStreams, maxStreamsPerKey, maxStreamsPerAccount, maxPageStreams }: CallCaps & StreamCaps) {
  const tooManyOfPages = () => waybillError('TOO_MANY_PAGE_STREAMS', {})
  const any = createPools(maxOpenStreams, overloaded)
  const takeOfSecret = takeAll(
    any,
    createPools(maxStreamsPerKey, tooManyStreams('key', maxStreamsPerKey), (call) => callerOf(call).keyId),
    createPools(maxStreamsPerAccount, tooManyStreams('account', maxStreamsPerAccount), (call) => accountOf(call).id),
  )
  const takeOfPage = takeAll(
    any,
    createPools(MAX_STREAMS_PER_PAGE_ADDRESS, tooManyOfPages, (call) => callerOf(call).page?.address),
    createPools(maxPageStreams, tooManyOfPages),
  )
  return (call: Call): GiveBack => (callerOf(call).page === undefined ? takeOfSecret : takeOfPage)(call)
}

function capByAddress(limit: number): Take {
  return createPools(limit, tooManyStreams('address', limit), ({ incoming }) => incoming.clientAddress())
}

/**
 * Pools of one size, one for each holder; by default one for all.
 *
 * @returns takes from one; throws what `refuse` makes when the pool is empty
 */
function createPools(size: number, refuse: () => WaybillError, holderOf: (call: Call) => unknown = () => 'all'): Take {
  const taken = createCounts<unknown>()
  return (call) => {
    const holder = holderOf(call)
    if (taken.of(holder) >= size) throw refuse()
    taken.add(holder, 1)
    return () => taken.add(holder, -1)
  }
}

/** Takes from several pools, or from none if one is empty. */
function takeAll(...takes: readonly Take[]): Take {
  return (call) => {
    using taken = new DisposableStack()
    for (const take of takes) taken.defer(take(call))
    const kept = taken.move()
    return () => kept.dispose()
  }
}

/** Runs the call and calls `giveBack` once: when the call has failed, or its answer is complete or abandoned. */
export async function holdUntilOver(call: Call, next: Next, giveBack: GiveBack): Promise<Answer> {
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
