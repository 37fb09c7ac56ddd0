import type { Code } from '@connectrpc/connect'
import {
  CALL_BUCKETS,
  type Labels,
  parseTraceparent,
  type SpanAttributes,
  type Telemetry,
} from '../../domain/telemetry/telemetry.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import type { Call, Protocol } from './call.ts'
import { codeName, wireFormOfError } from './error-mapping.ts'

/** Reports calls, and requests that are none. Undefined where nothing is measured or traced. */
export type Observed = ReturnType<typeof observeCalls>

const CALL_SECONDS = {
  name: 'rpc_server_call_duration_seconds',
  help: 'Duration of calls. Streams count from their begin to their end.',
  labels: ['rpc_system_name', 'rpc_method', 'rpc_response_status_code', 'protocol'],
  buckets: CALL_BUCKETS,
}

const REQUEST_SECONDS = {
  name: 'http_server_request_duration_seconds',
  help: 'Duration of requests that are no calls: probes, pages, preflights, what no method answers.',
  labels: ['http_request_method', 'http_route', 'http_response_status_code'],
  buckets: CALL_BUCKETS,
}

const ERRORS = {
  name: 'waybill_errors_total',
  help: 'Errors that callers got, refusals included, by reason.',
  labels: ['reason', 'protocol'],
}

const IN_FLIGHT = { name: 'waybill_calls_in_flight', help: 'Calls and open streams now.', labels: ['kind'] }

/** The methods that OpenTelemetry's conventions name. Callers of HTTP/2 may send any word, and each would be a series that is never forgotten. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

const SYSTEMS: Readonly<Record<Protocol, string>> = {
  rest: 'http',
  connect: 'connectrpc',
  grpc: 'grpc',
  'grpc-web': 'grpc',
}

export function observeCalls(telemetry: Telemetry | undefined) {
  if (telemetry?.meter === undefined && telemetry?.tracer === undefined) return undefined
  const { meter, tracer } = telemetry
  const callSeconds = meter?.histogram(CALL_SECONDS)
  const requestSeconds = meter?.histogram(REQUEST_SECONDS)
  const countError = meter?.counter(ERRORS)
  const labelsOf = createCallLabels()
  const inFlight = { unary: 0, stream: 0 }
  meter?.observe([IN_FLIGHT], () => Object.entries(inFlight).map(([kind, value]) => [IN_FLIGHT.name, value, { kind }]))
  return {
    /** Begins a call; its trace is noted on it. @param method - its full name */
    begin(method: string, call: Call) {
      const startMs = performance.now()
      const { protocol, headers } = call.incoming
      const span = tracer?.beginCall(method, parseTraceparent(headers['traceparent']), () => ({
        'rpc.system.name': SYSTEMS[protocol],
        'rpc.method': method,
        'waybill.protocol': protocol,
        'waybill.request_id': call.requestId,
      }))
      if (span !== undefined) call.traceId = span.traceId
      const kind = call.method.methodKind === 'unary' ? 'unary' : 'stream'
      inFlight[kind] += 1
      let isOver = false
      const end = (error?: WaybillError): void => {
        if (isOver) return
        isOver = true
        inFlight[kind] -= 1
        const form = error && wireFormOfError(error, protocol)
        const labels = labelsOf(method, protocol, form?.code)
        callSeconds?.(labels, (performance.now() - startMs) / 1_000)
        if (error !== undefined) countError?.({ reason: error.reason, protocol })
        if (span === undefined) return
        const ending: SpanAttributes = { 'rpc.response.status_code': labels.rpc_response_status_code }
        // The caller's mistakes are no errors of a server.
        span.end(form !== undefined && form.httpStatus >= 500 ? error?.reason : undefined, ending)
      }
      return { span, end }
    },
    /** A request that is no call was answered. */
    request(route: string, { method, status }: { method: string; status: number }, startMs: number): void {
      const labels = {
        http_request_method: METHODS.has(method) ? method : '_OTHER',
        http_route: route,
        http_response_status_code: String(status),
      }
      requestSeconds?.(labels, (performance.now() - startMs) / 1_000)
    },
    /** A request that is no call was refused. */
    refused: (error: WaybillError, protocol: Protocol) => countError?.({ reason: error.reason, protocol }),
  }
}

interface CallLabels extends Labels {
  readonly rpc_response_status_code: string
}

/** Makes the labels of calls, once for each method, protocol and code: with the lists of the meter they save one in a hundred of a small call. */
function createCallLabels() {
  const known = new Map<string, { protocol: Protocol; code: Code | undefined; labels: CallLabels }[]>()
  return (method: string, protocol: Protocol, code: Code | undefined): CallLabels => {
    let ofMethod = known.get(method)
    if (ofMethod === undefined) {
      ofMethod = []
      known.set(method, ofMethod)
    }
    const found = ofMethod.find((each) => each.protocol === protocol && each.code === code)
    if (found !== undefined) return found.labels
    const status = codeName(code).toUpperCase()
    const labels = {
      rpc_system_name: SYSTEMS[protocol],
      rpc_method: method,
      rpc_response_status_code: status,
      protocol,
    }
    ofMethod.push({ protocol, code, labels })
    return labels
  }
}
