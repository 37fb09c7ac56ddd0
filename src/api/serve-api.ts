import { createRegistry, type DescField, type DescMethod, getOption, hasOption } from '@bufbuild/protobuf'
import { http } from '../../gen/google/api/annotations_pb.js'
import { comma_separated } from '../../gen/payments/v1/options_pb.js'
import type { Logger } from '../domain/logger.ts'
import { compileRoutes } from '../transcoding/transcoder.ts'
import { createCallCore, type ServedService } from './calls/call-core.ts'
import { type CallCaps, type StreamCaps, streamCapsOf } from './calls/cap-calls.ts'
import type { ClassifyFailure } from './calls/error-mapping.ts'
import type { TimeLimits } from './calls/keep-deadline.ts'
import type { Authenticate, CountOpen, IsKeyInForce } from './calls/require-caller.ts'
import { type TurnLimits, turnLimitsOf } from './calls/take-turns.ts'
import { createHealthService } from './connect/health-service.ts'
import { createReflectionServices, filesOf } from './connect/reflection-service.ts'
import { createRpcServer } from './connect/serve-rpc.ts'
import { createIsTrustedProxy, createReadClientAddress } from './http/client-address.ts'
import { createCorsPolicy, privateHeaders } from './http/cors.ts'
import { createRequestHandler, healthPaths } from './http/http-server.ts'
import { createAbuseCounter } from './listener/abuse.ts'
import { type ConnectionLimits, DEFAULT_CONNECTION_LIMITS } from './listener/connection-limits.ts'
import { type Listener, startListener, type Transport } from './listener/listener.ts'
import { MAX_DEPTH, MAX_VALUES } from './messages/request-errors.ts'
import { createValidate } from './messages/validation.ts'
import { createRestServer } from './rest/serve-rest.ts'

export interface ApiOptions {
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
  /** Plaintext, and both versions of HTTP by default. */
  readonly transport?: Transport
  readonly services: readonly ServedService[]
  readonly authenticate: Authenticate
  /** Counts what needs no key, and what is no call at all; nothing is counted by default. */
  /** Whether a key still is in force; asked for whoever reads a stream. Always by default. */
  readonly isKeyInForce?: IsKeyInForce
  readonly countOpen?: CountOpen
  /** Proxies whose word is taken for where a request comes from, as addresses and networks; none by default. */
  readonly trustedProxies?: readonly string[]
  readonly logger: Logger
  /** Whether the process can answer: database reachable and migrated. A rejection counts as no, and is logged. */
  readonly ready: () => Promise<boolean>
  /** Recognises failures of the database; what it does not know is INTERNAL. */
  readonly classify?: ClassifyFailure
  /** Pages of which origins may call; none by default. */
  readonly corsOrigins?: readonly string[]
  /** Hosts that may be asked for; all by default. */
  readonly isHostAllowed?: (authority: string) => boolean
  /** What every answer carries in its header. */
  readonly extraHeaders?: Readonly<Record<string, string>>
  /** JSON names of fields that move without the resource having changed. */
  readonly volatileFields?: readonly string[]
  readonly limits?: Partial<ApiLimits>
}

export interface ApiLimits extends ConnectionLimits, CallCaps, StreamCaps, TimeLimits, TurnLimits {
  /** Of a request, compressed or not. */
  readonly maxBodyBytes: number
  /** Of one message of a stream that callers send, compressed or not. */
  readonly maxStreamMessageBytes: number
  /** How often it is looked whether the key of who reads a stream still is in force. */
  readonly recheckMs: number
  /** After how much silence readers of a stream over plain HTTP are told that it is still there. */
  readonly heartbeatMs: number
  /** How long a reader that has stopped has to make room for the end of a stream. */
  readonly drainMs: number
  /** Answers from this size on are compressed for those who take it. */
  readonly compressMinBytes: number
}

const DEFAULT_LIMITS: Omit<ApiLimits, keyof StreamCaps> = {
  ...DEFAULT_CONNECTION_LIMITS,
  // The longest field of a request, its references, has 24 KiB. Looking through 4 MB that are no JSON takes 33 ms of the one
  // thread, through 250 kB 2 ms.
  maxBodyBytes: 256 * 1024,
  // What a stream sends is not counted before it is read: so many empty messages take a fifth of a second.
  maxStreamMessageBytes: 64 * 1024,
  maxCallMs: 30_000,
  maxStreamMs: 60 * 60 * 1000,
  heartbeatMs: 15_000,
  maxStallMs: 30_000,
  // An export of 15 kB/s; whoever keeps what it reads in a database takes hundreds.
  minRowsPerSecond: 10,
  // What is done for each event of a watch may take its time.
  minMessagesPerSecond: 1,
  recheckMs: 5_000,
  drainMs: 2000,
  compressMinBytes: 16 * 1024,
  maxCalls: 1_000,
  maxOpenStreams: 1_000,
  maxKeylessStreams: 200,
  ...turnLimitsOf(1, 8),
}

/**
 * Serves services on one port by gRPC, gRPC-Web, Connect and plain JSON over HTTP, with health and reflection beside them.
 *
 * @throws DuplicateRouteError, InvalidHttpRuleError when the definitions do not fit together; Error when the port is taken
 */
export async function serveApi(options: ApiOptions): Promise<Listener> {
  const { logger, countOpen = () => {} } = options
  const { maxOpenStreams = DEFAULT_LIMITS.maxOpenStreams } = options.limits ?? {}
  const limits: ApiLimits = { ...DEFAULT_LIMITS, ...streamCapsOf(maxOpenStreams), ...options.limits }
  const stopping = new AbortController()
  const isReady = () => askReady(options.ready, stopping.signal, logger)

  const descriptors = options.services.map(({ service }) => service)
  const health = createHealthService(descriptors, isReady)
  const files = filesOf([...descriptors, health.service])
  const registry = createRegistry(...files)
  const services = [...options.services, health, ...createReflectionServices([...descriptors, health.service], files)]
  const methods = createCallCore({
    services,
    authenticate: options.authenticate,
    countOpen,
    isKeyInForce: options.isKeyInForce,
    validate: createValidate(),
    classify: options.classify ?? (() => undefined),
    logger,
    ...limits,
  })
  const { volatileFields = [] } = options
  const transcoder = compileRoutes(descriptors, {
    httpRule: httpRuleOf,
    isCommaSeparated,
    isVolatile: ({ jsonName }) => volatileFields.includes(jsonName),
    registry,
    maxJsonDepth: MAX_DEPTH,
    maxJsonValues: MAX_VALUES,
  })
  const rest = createRestServer({
    transcoder,
    methods,
    ...limits,
    stopping: stopping.signal,
    otherPaths: [...healthPaths, ...methods.keys()],
  })
  const rpc = createRpcServer({
    methods,
    registry,
    ...limits,
    stopping: stopping.signal,
    isRestPath: (rawPath) => rest.allowedMethods(rawPath).length > 0,
  })
  const isManyClients = createIsTrustedProxy(options.trustedProxies ?? [])
  const abuse = createAbuseCounter({
    limits: limits.abuse,
    isManyClients,
    nowMs: () => performance.now(),
    onBarred: (address) => logger.warn({ address }, 'connections are closed at once: too much abuse from there'),
  })
  const cors = createCorsPolicy(options.corsOrigins ?? [])
  const extraHeaders = { ...options.extraHeaders }
  const handle = createRequestHandler({
    rest,
    rpc,
    maxHeaderBytes: limits.maxHeaderBytes,
    logger,
    isReady,
    countOpen,
    abuse,
    readClientAddress: createReadClientAddress(options.trustedProxies ?? []),
    cors,
    isHostAllowed: options.isHostAllowed ?? (() => true),
    extraHeaders,
  })
  return startListener({
    host: options.host,
    port: options.port,
    transport: { ...options.transport },
    isManyClients,
    abuse,
    handle,
    commonHeaders: { ...extraHeaders, ...privateHeaders(cors) },
    httpMethods: rest.httpMethods,
    limits,
    logger,
    stopping,
  })
}

async function askReady(ready: () => Promise<boolean>, stopping: AbortSignal, logger: Logger): Promise<boolean> {
  if (stopping.aborted) return false
  try {
    return await ready()
  } catch (err) {
    logger.warn({ err }, 'not ready')
    return false
  }
}

function httpRuleOf(method: DescMethod) {
  return hasOption(method, http) ? getOption(method, http) : undefined
}

function isCommaSeparated(field: DescField): boolean {
  return getOption(field, comma_separated)
}
