import { createRegistry } from '@bufbuild/protobuf'
import type { Logger } from '../domain/logger.ts'
import { compileRoutes } from '../transcoding/transcoder.ts'
import type { Ending } from './calls/call.ts'
import { type CallCoreOptions, createCallCore } from './calls/call-core.ts'
import { type CallCaps, type StreamCaps, streamCapsOf } from './calls/cap-calls.ts'
import type { TimeLimits } from './calls/keep-deadline.ts'
import { createRefusalLog } from './calls/log-calls.ts'
import { observeCalls } from './calls/observe-calls.ts'
import { createPlaces } from './calls/shares.ts'
import { type SlotLimits, slotLimitsOf } from './calls/take-slots.ts'
import type { BodyLimits } from './calls/watch-bodies.ts'
import { createHealthService } from './connect/health-service.ts'
import { createReflectionServices } from './connect/reflection-service.ts'
import { createRpcServer } from './connect/serve-rpc.ts'
import { createIsTrustedProxy, createReadClientAddress } from './http/client-address.ts'
import { createCorsPolicy, type KeyOrigins, privateHeaders } from './http/cors.ts'
import type { OpenFiles } from './http/open-files.ts'
import type { PageCalls } from './http/page-calls.ts'
import { createRequestHandler, healthPaths } from './http-server.ts'
import { createAbuseCounter } from './listener/abuse.ts'
import { type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from './listener/connection-limits.ts'
import { createEnding, type Listener, type ListenerOptions, signalsOf, startListener } from './listener/listener.ts'
import { filesOf } from './messages/proto-files.ts'
import { httpRuleOf, isCommaSeparated } from './messages/proto-options.ts'
import { createValidate } from './messages/validation.ts'
import { createRestServer } from './rest/serve-rest.ts'

/** By default, calls without a key are not counted, keys of open streams stay in force, all failures are INTERNAL, and pages see nothing. */
type CallOptions = Pick<CallCoreOptions, 'services' | 'authenticate' | 'logger'> &
  Partial<
    Pick<
      CallCoreOptions,
      'countOpen' | 'isKeyInForce' | 'classify' | 'shownToPages' | 'lostServers' | 'loggedCalls' | 'telemetry'
    >
  >

export interface ApiOptions extends CallOptions, Pick<ListenerOptions, 'host' | 'port' | 'tls'> {
  /** Proxies whose forwarding headers are trusted, as addresses and networks; none by default. */
  readonly trustedProxies?: readonly string[]
  /** Whether the process can answer: the database is reachable and migrated. A rejection counts as no, and is logged. */
  readonly ready: () => Promise<boolean>
  /** How far this machine's clock is off, in milliseconds; undefined where it is right. Shown by /readyz. */
  readonly clockOffsetMs?: (() => number | undefined) | undefined
  /** Origins whose pages may call; none by default. */
  readonly corsOrigins?: readonly string[]
  /** Origins whose pages have publishable keys. */
  readonly pageOrigins?: KeyOrigins
  /** Hosts that may be asked for; all by default. */
  readonly isHostAllowed?: (authority: string) => boolean
  /** Additional headers of every answer. */
  readonly extraHeaders?: Readonly<Record<string, string>>
  /** JSON names of fields that change without the resource having changed. Entity tags leave them out. */
  readonly volatileFields?: readonly string[]
  /** Files that need no key; none by default. */
  readonly openFiles?: OpenFiles
  /** What pages that the process serves may ask beside the API. */
  readonly pageCalls?: PageCalls | undefined
  readonly limits?: Partial<ApiLimits>
}

export interface ApiLimits extends ConnectionLimits, CallCaps, StreamCaps, BodyLimits, TimeLimits, SlotLimits {
  /** Of a request, compressed or not. */
  readonly maxBodyBytes: number
  /** Of one message of a stream that callers send, compressed or not. */
  readonly maxStreamMessageBytes: number
  /** The interval at which the key of an open stream is checked. */
  readonly recheckMs: number
  /** After how much silence REST sends a heartbeat on a stream. */
  readonly heartbeatMs: number
  /** How long a reader that takes nothing has to make space for the end of a stream. */
  readonly drainMs: number
  /** Smaller answers are not compressed. */
  readonly compressMinBytes: number
}

const DEFAULT_LIMITS: Omit<ApiLimits, keyof StreamCaps | 'maxOpenBodies'> = {
  ...DEFAULT_CONNECTION_LIMITS,
  // The longest field of a request, its references, has 24 KiB. Parsing 4 MB of malformed JSON takes 33 ms of the one thread, 250 kB 2 ms.
  maxBodyBytes: 256 * 1024,
  // The messages of a stream are not counted against a rate limit. This many bytes of empty messages take a fifth of a second.
  maxStreamMessageBytes: 64 * 1024,
  maxCallMs: 30_000,
  maxStreamMs: 60 * 60 * 1000,
  heartbeatMs: 15_000,
  maxStallMs: 30_000,
  // 15 kB/s of an export. A reader that stores its rows in a database takes hundreds of rows a second.
  minRowsPerSecond: 10,
  recheckMs: 5_000,
  drainMs: 2000,
  compressMinBytes: 16 * 1024,
  maxCalls: 1_000,
  maxOpenStreams: 1_000,
  maxKeylessStreams: 200,
  bodyGraceMs: 1_000,
  // As for the headers.
  bodySlackMs: 10_000,
  // The slowest mobile networks carry as much. The largest body has arrived then when the call's own time is over.
  minBodyBytesPerSecond: 4 * 1024,
  ...slotLimitsOf(1, 8),
}

const DEFAULTS = {
  countOpen: (): void => {},
  classify: (): undefined => {},
  isHostAllowed: () => true,
  trustedProxies: [],
  corsOrigins: [],
  volatileFields: [],
  shownToPages: {},
  extraHeaders: {},
} satisfies Partial<ApiOptions>

/**
 * Serves services on one port over gRPC, gRPC-Web, Connect and REST, with health checks and reflection.
 *
 * @throws DuplicateRouteError, InvalidHttpRuleError when the definitions of the services conflict; Error when the port is taken
 */
export async function serveApi(options: ApiOptions): Promise<Listener> {
  const ending = createEnding()
  const shared = prepare(options, signalsOf(ending))
  const { logger, limits, trustedProxies, extraHeaders } = shared
  const { rest, rpc } = createServers(shared)
  const isManyClients = createIsTrustedProxy(trustedProxies)
  const abuse = createAbuseCounter({
    limits: limits.abuse,
    isManyClients,
    nowMs: () => performance.now(),
    onBarred: (address) => logger.warn({ address }, 'connections are closed at once: too much abuse from there'),
  })
  const handle = createRequestHandler({
    ...shared,
    rest,
    rpc,
    abuse,
    readClientAddress: createReadClientAddress(trustedProxies),
    cors: createCorsPolicy(shared.corsOrigins, shared.pageOrigins),
  })
  return startListener({
    ...shared,
    isManyClients,
    abuse,
    handle,
    commonHeaders: { ...extraHeaders, ...privateHeaders },
    httpMethods: rest.httpMethods,
    ending,
  })
}

type Shared = ReturnType<typeof prepare>

/** Adds to the options what they leave out, and what the servers of all protocols share. */
function prepare(options: ApiOptions, ending: Ending) {
  const { maxOpenStreams, maxCalls } = { ...DEFAULT_LIMITS, ...options.limits }
  const derived = { ...streamCapsOf(maxOpenStreams), maxOpenBodies: maxCalls }
  const limits: ApiLimits = { ...DEFAULT_LIMITS, ...derived, ...options.limits }
  return {
    ...DEFAULTS,
    ...options,
    limits,
    ...ending,
    isReady: () => askReady(options.ready, ending.draining, options.logger),
    observed: observeCalls(options.telemetry),
    refusalLog: createRefusalLog(options.logger),
    places: createPlaces({ size: limits.maxCalls, isCapped: false }),
  }
}

/** Makes the call core and the servers of all protocols above it. */
function createServers(shared: Shared) {
  const { limits, stopping, volatileFields, openFiles } = shared
  const descriptors = shared.services.map(({ service }) => service)
  const health = createHealthService(descriptors, shared.isReady, shared.draining)
  const files = filesOf([...descriptors, health.service])
  const registry = createRegistry(...files)
  const services = [...shared.services, health, ...createReflectionServices([...descriptors, health.service], files)]
  const methods = createCallCore({ ...shared, ...limits, services, validate: createValidate() })
  const transcoder = compileRoutes(descriptors, {
    httpRule: httpRuleOf,
    isCommaSeparated,
    isVolatile: ({ jsonName }) => volatileFields.includes(jsonName),
    registry,
  })
  const rest = createRestServer({
    transcoder,
    methods,
    ...limits,
    stopping,
    otherPaths: [...healthPaths, ...(openFiles?.paths ?? []), ...methods.keys()],
  })
  const rpc = createRpcServer({
    methods,
    registry,
    ...limits,
    stopping,
    isRestPath: (rawPath) => rest.allowedMethods(rawPath).length > 0,
  })
  return { rest, rpc }
}

async function askReady(ready: () => Promise<boolean>, draining: AbortSignal, logger: Logger): Promise<boolean> {
  if (draining.aborted) return false
  try {
    return await ready()
  } catch (err) {
    logger.warn({ err }, 'not ready')
    return false
  }
}
