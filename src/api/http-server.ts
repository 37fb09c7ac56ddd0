import { randomUUID } from 'node:crypto'
import { printable, type WaybillError, waybillError } from '../errors/waybill-error.ts'
import { headerOf, keylessAt, type Protocol } from './calls/call.ts'
import type { CallCoreOptions } from './calls/call-core.ts'
import { takePlace } from './calls/cap-calls.ts'
import { toWaybillError, wireFormOfError } from './calls/error-mapping.ts'
import { isLogged, logOutcome, outcomeOf, writeRefusal } from './calls/log-calls.ts'
import type { Observed } from './calls/observe-calls.ts'
import type { CountOpen } from './calls/require-caller.ts'
import { sendRpcError } from './connect/call-outcome.ts'
import type { RpcServer } from './connect/serve-rpc.ts'
import type { ReadClientAddress } from './http/client-address.ts'
import { type CorsPolicy, isPreflight, preflightHeaders, privateHeaders } from './http/cors.ts'
import {
  type Exchange,
  type HeaderFields,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  type RequestHandler,
} from './http/exchange.ts'
import { type Inbound, methodNotAllowed, reportLimitIn, sendHttpError } from './http/http-answer.ts'
import { type OpenFiles, openFileMethods, sendOpenFile } from './http/open-files.ts'
import { type PageCalls, sendPageCall } from './http/page-calls.ts'
import { type AbuseCounter, costOfRefusal } from './listener/abuse.ts'
import type { RestServer } from './rest/serve-rest.ts'

export interface HttpServerOptions extends Pick<CallCoreOptions, 'logger' | 'refusalLog' | 'places' | 'loggedCalls'> {
  readonly rest: RestServer
  readonly rpc: RpcServer
  /** Whether this process can answer. The answer does not say why not. */
  readonly isReady: () => Promise<boolean>
  /** How far this machine's clock is off, in milliseconds; undefined where it is right. */
  readonly clockOffsetMs?: (() => number | undefined) | undefined
  /** Counts requests that are no calls: preflights, unknown paths and methods. Not health checks. */
  readonly countOpen: CountOpen
  readonly abuse: Pick<AbuseCounter, 'charge' | 'isBarred'>
  readonly readClientAddress: ReadClientAddress
  readonly cors: CorsPolicy
  /** Whether a host may be asked for, by `Host` or `:authority`. */
  readonly isHostAllowed: (authority: string) => boolean
  /** Additional headers of every answer. */
  readonly extraHeaders: HeaderFields
  readonly openFiles?: OpenFiles
  readonly pageCalls?: PageCalls | undefined
  readonly observed?: Observed
}

export function createRequestHandler(options: HttpServerOptions): RequestHandler {
  return async (exchange) => {
    const startMs = performance.now()
    const origin = headerOf(exchange.headers, 'origin')
    // A call may reach another process than its preflight. Without its CORS headers a browser would withhold the answer.
    if (origin !== null) await options.cors.isAllowed(origin)
    const inbound = createInbound(exchange, options)
    const report = (route: string) =>
      options.observed?.request(route, { method: exchange.method, status: exchange.sentStatus() }, startMs)
    try {
      const route = await answer(inbound, options)
      if (route !== undefined) report(route)
    } catch (thrown) {
      // No call, or one whose answer could not be written: the call core has not logged it.
      const error = countRefused(inbound, toWaybillError(thrown, unclassified), options)
      logRefused(inbound, error, startMs, options)
      answerLast(inbound, error, options)
      options.observed?.refused(error, protocolOf(exchange, options))
      report('refused')
    }
  }
}

function createInbound(
  exchange: Exchange,
  { extraHeaders, cors, readClientAddress, abuse }: HttpServerOptions,
): Inbound {
  const { headers, holdConnectionFor, onHangUp } = exchange
  const requestId = requestIdOf(exchange)
  const grpcHeaders = { 'x-request-id': requestId, ...extraHeaders }
  const commonHeaders = {
    ...grpcHeaders,
    ...privateHeaders,
    ...cors.headersFor(headerOf(headers, 'origin')),
  }
  const reportLimit = reportLimitIn(commonHeaders, grpcHeaders)
  let isKeyless = false
  return {
    exchange,
    requestId,
    headers,
    commonHeaders,
    grpcHeaders,
    holdConnectionFor,
    onHangUp,
    receivedBytes: () => exchange.received.bytes,
    clientAddress: () => readClientAddress(exchange.peerAddress(), headers),
    addHeaders(fields) {
      Object.assign(commonHeaders, fields)
      Object.assign(grpcHeaders, fields)
    },
    reportLimit(state) {
      isKeyless = state?.policy === 'address'
      reportLimit(state)
    },
    onRefused(error) {
      const peer = exchange.peerAddress()
      const units = costOfRefusal(error, isKeyless)
      abuse.charge(peer, units)
      // New connections of a barred address are closed; over an old one it would go on.
      if (units > 0 && abuse.isBarred(peer)) exchange.endConnection()
    },
  }
}

/** @returns what was asked for, if that was no call */
async function answer(inbound: Inbound, options: HttpServerOptions): Promise<string | undefined> {
  const { exchange } = inbound
  const { rest, rpc } = options
  refuseLargeHeaders(exchange)
  if (!options.isHostAllowed(exchange.authority)) throw waybillError('HOST_NOT_ALLOWED', { value: exchange.authority })
  if (exchange.method === 'CONNECT') throw methodNotAllowed(exchange, rest.httpMethods)
  refuseFragment(exchange)
  if (healthPaths.has(exchange.rawPath) && exchange.method !== 'OPTIONS') {
    await sendHealth(inbound, options)
    return exchange.rawPath
  }
  const { openFiles, pageCalls, countOpen } = options
  const inPlace = (kind: string, send: () => Promise<void>) => sendInPlace(inbound, options, { kind, send })
  if (exchange.method === 'OPTIONS') return inPlace('options', () => sendOptions(inbound, options))
  if (openFiles?.covers(exchange.rawPath)) return inPlace('files', () => sendOpenFile(inbound, openFiles, countOpen))
  if (pageCalls?.covers(exchange.rawPath)) return inPlace('wallets', () => sendPageCall(inbound, pageCalls))
  const form = rpc.formOf(exchange)
  await (form === undefined ? rest.serve(inbound) : rpc.serve(inbound, form))
  return undefined
}

/** What needs no key is answered as a running call without one. @returns its kind @throws WaybillError OVERLOADED */
async function sendInPlace(
  { clientAddress }: Inbound,
  { places }: HttpServerOptions,
  { kind, send }: { readonly kind: string; readonly send: () => Promise<void> },
): Promise<string> {
  const giveBack = takePlace(places, keylessAt(clientAddress()))
  try {
    await send()
    return kind
  } finally {
    giveBack()
  }
}

async function sendOptions(inbound: Inbound, options: HttpServerOptions): Promise<void> {
  const { exchange, commonHeaders } = inbound
  const allow = allowedMethods(exchange.rawPath, options)
  if (allow.length === 0) throw options.rest.notFound(exchange.rawPath)
  options.countOpen(inbound.clientAddress(), inbound.reportLimit)
  const preflight = isPreflight(exchange) ? await answerPreflight(exchange, allow, options) : {}
  exchange.send({ status: 204, headers: { ...commonHeaders, ...preflight, allow: allow.join(', ') } })
}

/** @throws WaybillError ORIGIN_UNKNOWN. A page sees none of it; its developer does, in the network tools of the browser and in the log */
async function answerPreflight(
  { headers }: Exchange,
  methods: readonly string[],
  { cors, logger, refusalLog }: HttpServerOptions,
): Promise<HeaderFields> {
  const origin = headerOf(headers, 'origin') ?? ''
  if (await cors.isAllowed(origin)) return preflightHeaders(cors, headers, methods)
  const error = waybillError('ORIGIN_UNKNOWN', { value: origin })
  const shown = printable(origin, MAX_LOGGED)
  refusalLog.once(shown, error.reason, () => logger.warn({ origin: shown }, error.message))
  throw error
}

function allowedMethods(rawPath: string, { rest, rpc, openFiles, pageCalls }: HttpServerOptions): readonly string[] {
  if (rawPath === '*') return rest.httpMethods
  if (healthPaths.has(rawPath)) return healthMethods
  if (openFiles?.covers(rawPath)) return openFileMethods
  if (pageCalls?.covers(rawPath)) return pageCalls.methodsOf(rawPath)
  const ofRpc = rpc.allowedMethods(rawPath)
  return ofRpc.length > 0 ? ofRpc : rest.allowedMethods(rawPath)
}

/** Counts a request that was no call for its address. @returns the error to send, which may be that the address has made too many */
function countRefused(inbound: Inbound, error: WaybillError, { countOpen }: HttpServerOptions): WaybillError {
  if (error.reason === 'RATE_LIMITED' || wireFormOfError(error, 'rest').httpStatus === 500) return error
  try {
    countOpen(inbound.clientAddress(), inbound.reportLimit)
    return error
  } catch (limited) {
    return toWaybillError(limited, unclassified)
  }
}

function logRefused(inbound: Inbound, error: WaybillError, startMs: number, options: HttpServerOptions): void {
  const { logger, refusalLog } = options
  const { requestId, exchange } = inbound
  const protocol = protocolOf(exchange, options)
  if (!isLogged(options.loggedCalls ?? 1, error, protocol)) return
  const path = printable(exchange.rawPath, MAX_LOGGED)
  const client = inbound.clientAddress()
  const outcome = outcomeOf(error, protocol, startMs)
  const status = protocol === 'rest' ? wireFormOfError(error, protocol).httpStatus : undefined
  const httpMethod = printable(exchange.method, MAX_LOGGED)
  const fields = { requestId, httpMethod, path, ...outcome, status, client }
  const write = () => logOutcome(logger, 'request', { fields, error, protocol })
  writeRefusal(refusalLog, { error, name: client, isKeyless: true }, write)
}

function protocolOf(exchange: Exchange, { rpc }: HttpServerOptions): Protocol {
  return rpc.formOf(exchange)?.protocol ?? 'rest'
}

/** Of a method, a path or an origin. */
const MAX_LOGGED = 200

/** Sends an error in the form of the caller. Never throws; breaks off an answer that was begun and cannot be ended. */
function answerLast(inbound: Inbound, error: WaybillError, { logger, rpc }: HttpServerOptions): void {
  const { exchange, requestId } = inbound
  try {
    const form = rpc.formOf(exchange)
    if (form === undefined) sendHttpError(inbound, error)
    else sendRpcError(inbound, form, error)
  } catch (err) {
    logger.error({ requestId, err }, 'no answer could be sent')
  }
  exchange.abandon()
}

/** Nothing outside of a call fails for reasons of the database. */
function unclassified(): undefined {}

/** A request target has no fragment. A client that sends one has left a `#` in a value unescaped, and what follows it would be lost. */
function refuseFragment({ rawPath, rawQuery }: Exchange): void {
  if (!rawPath.includes('#') && !rawQuery.includes('#')) return
  throw waybillError('MALFORMED_URL', { detail: 'it has a #, which is written %23 in a value' })
}

/** For HTTP/2. Node enforces the bytes for HTTP/1.1, whose headers are counted before. */
function refuseLargeHeaders({ httpVersion, headers }: Exchange): void {
  if (httpVersion === '1.1') return
  let bytes = 0
  let fields = 0
  for (const name in headers) {
    const value = headers[name]
    bytes += name.length + (value?.length ?? 0)
    fields += Array.isArray(value) ? value.length : 1
  }
  if (bytes > MAX_HEADER_BYTES)
    throw waybillError('HEADERS_TOO_LARGE', { limit: `${MAX_HEADER_BYTES} bytes of request line and headers` })
  if (fields > MAX_HEADERS) throw waybillError('HEADERS_TOO_LARGE', { limit: `${MAX_HEADERS} headers` })
}

/** Callers may choose request ids that are harmless in logs and headers. */
const saneRequestId = /^[\w.:/+=@-]{1,128}$/

function requestIdOf({ headers }: Exchange): string {
  const sent = headers['x-request-id']
  return typeof sent === 'string' && saneRequestId.test(sent) ? sent : randomUUID()
}

export const healthPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz'])
const healthMethods = ['GET', 'HEAD', 'OPTIONS']

async function sendHealth(
  { exchange, commonHeaders }: Inbound,
  { isReady, clockOffsetMs }: HttpServerOptions,
): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
    throw methodNotAllowed(exchange, healthMethods)
  }
  const asksReady = exchange.rawPath === '/readyz'
  const isGood = !asksReady || (await isReady())
  const offsetMs = asksReady ? clockOffsetMs?.() : undefined
  exchange.send({
    status: isGood ? 200 : 503,
    headers: { ...commonHeaders, 'cache-control': 'no-store', 'content-type': 'application/json' },
    body: JSON.stringify({
      status: isGood ? 'ok' : 'unavailable',
      ...(offsetMs !== undefined && { clockOffsetSeconds: offsetMs / 1_000 }),
    }),
  })
}
