import type { IncomingHttpHeaders } from 'node:http'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { serveLocally } from '../../demo/network/local-server.ts'
import { createOpenTelemetryTracer } from '../../src/observability/open-telemetry-tracer.ts'
import { createPostWebhook } from '../../src/webhooks/send/post-webhook.ts'
import { type ExportingService, startExporting, startOtlpReceiver } from './exported.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const UNSAMPLED = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'

/** The fields of opentelemetry/proto/collector/trace/v1/trace_service.proto that are read here. */
const { root } = protobuf.parse(`syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  repeated KeyValue attributes = 9; Status status = 15;
}
message Status { int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { string string_value = 1; int64 int_value = 3; }
message MetricsRequest { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
message ScopeMetrics { repeated Metric metrics = 2; }
message Metric { string name = 1; string description = 2; Points gauge = 5; Points sum = 7; Points histogram = 9; }
message Points { repeated bytes data_points = 1; int32 aggregation_temporality = 2; bool is_monotonic = 3; }
message Value { fixed64 start = 2; fixed64 time = 3; double value = 4; repeated KeyValue attributes = 7; }
message Buckets {
  fixed64 start = 2; fixed64 time = 3; fixed64 count = 4; double sum = 5; repeated fixed64 counts = 6;
  repeated double bounds = 7; repeated KeyValue attributes = 9;
}`)

interface Exported {
  readonly trace: string
  readonly id: string
  readonly parent: string
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
}

interface WireSpan {
  readonly traceId: Buffer
  readonly spanId: Buffer
  readonly parentSpanId?: Buffer
  readonly name: string
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: unknown } }[]
}

function spansIn(bodies: readonly Buffer[]): Exported[] {
  const requests = bodies.map((body) => root.lookupType('Request').decode(body)) as unknown as {
    resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[]
  }[]
  const spans = requests.flatMap((each) => each.resourceSpans).flatMap((each) => each.scopeSpans)
  const hex = (bytes: Buffer | undefined) => Buffer.from(bytes ?? []).toString('hex')
  return spans
    .flatMap((each) => each.spans)
    .map(({ traceId, spanId, parentSpanId, name, attributes }) => ({
      trace: hex(traceId),
      id: hex(spanId),
      parent: hex(parentSpanId),
      name,
      attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue || value.intValue])),
    }))
}

interface WirePoint {
  readonly value?: number
  readonly count?: number
  readonly sum?: number
  readonly counts?: readonly number[]
  readonly bounds?: readonly number[]
  readonly start: number
  readonly time: number
  readonly attributes: readonly { key: string; value: { stringValue?: string } }[]
}

type Kind = 'gauge' | 'sum' | 'histogram'

/** The points of a metric in a body, its kind in front. */
function pointsIn(body: Buffer | undefined, name: string) {
  const { resourceMetrics } = root.lookupType('MetricsRequest').decode(body ?? Buffer.alloc(0)) as unknown as {
    resourceMetrics: { scopeMetrics: { metrics: ({ name: string } & Partial<Record<Kind, WirePoints>>)[] }[] }[]
  }
  const metric = resourceMetrics
    .flatMap((each) => each.scopeMetrics)
    .flatMap((each) => each.metrics)
    .find((each) => each.name === name)
  const kind = (['gauge', 'sum', 'histogram'] as const).find((each) => metric?.[each]) ?? 'gauge'
  const { dataPoints = [], aggregationTemporality, isMonotonic } = metric?.[kind] ?? {}
  const type = root.lookupType(kind === 'histogram' ? 'Buckets' : 'Value')
  const points = dataPoints.map((each) => {
    const point = type.toObject(type.decode(each), { longs: Number, defaults: true }) as WirePoint
    const attributes = Object.fromEntries(point.attributes.map(({ key, value }) => [key, value.stringValue]))
    return { ...point, attributes }
  })
  return { kind, aggregationTemporality, isMonotonic, points }
}

interface WirePoints {
  readonly dataPoints: readonly Buffer[]
  readonly aggregationTemporality?: number
  readonly isMonotonic?: boolean
}

let receiver: Awaited<ReturnType<typeof startOtlpReceiver>>
let running: ExportingService
let spans: Exported[]

/** Calls with the caller's traceparent. */
async function call(path: string, traceparent: string, init: RequestInit = {}): Promise<Record<string, string>> {
  const headers = { 'x-api-key': running.key, 'content-type': 'application/json', traceparent }
  const response = await fetch(`${running.url}${path}`, { ...init, headers })
  return JSON.parse(await response.text())
}

/** A search without filters, by gRPC. */
async function searchByGrpc(traceparent: string): Promise<void> {
  const client = new Client(new URL(running.url).host, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('x-api-key', running.key)
  metadata.set('traceparent', traceparent)
  const bytes = (each: Buffer) => each
  await new Promise<void>((resolve, reject) => {
    client.makeUnaryRequest(`/${SEARCH}`, bytes, bytes, Buffer.alloc(0), metadata, (error) =>
      error === null ? resolve() : reject(error),
    )
  })
  client.close()
}

const SEARCH = 'payments.v1.PaymentSearchService/SearchPayments'

beforeAll(async () => {
  receiver = await startOtlpReceiver()
  running = await startExporting({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
    OTEL_METRIC_EXPORT_INTERVAL: '1000',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  })
  const [wallet, payee] = running.chain.wallets
  const terms = { payee, amount: '10', invoiceCurrency: 'USDC-BASE', paymentCurrency: 'USDC-BASE', network: 'base' }
  const init = { method: 'POST', body: JSON.stringify(terms) }
  const { paymentReference } = await call('/v1/request', `00-${UNSAMPLED}-${CALLER}-00`, init)
  await call(`/v1/request/${paymentReference}/routes?wallet=${wallet}`, `00-${TRACE}-${CALLER}-01`)
  await call('/payments', `00-${TRACE}-${CALLER}-01`)
  await call('/v1/payments/nothing', `00-${TRACE}-${CALLER}-01`)
  await call(`/${SEARCH}`, `00-${TRACE}-${CALLER}-01`, { method: 'POST', body: '{}' })
  await searchByGrpc(`00-${TRACE}-${CALLER}-01`)
  await vi.waitFor(() => expect(receiver.metrics.length).toBeGreaterThan(1), { timeout: 20_000 })
  // A stop sends what is left.
  await running.stop()
  spans = spansIn(receiver.bodies)
})
afterAll(() => receiver.stop())

const named = (name: string) => spans.filter((each) => each.name === name)

it("records calls below the caller's span, where the caller has the trace recorded", () => {
  const [routes] = named('payments.v1.RoutesService/GetPaymentRoutes')
  expect(routes).toMatchObject({
    trace: TRACE,
    parent: CALLER,
    attributes: { 'rpc.response.status_code': 'OK', 'waybill.protocol': 'rest' },
  })
  expect(named('payments.v1.PaymentSearchService/GetPayment')[0]?.attributes).toMatchObject({
    'rpc.response.status_code': 'INVALID_ARGUMENT',
  })
  expect(new Set(spans.map(({ trace }) => trace))).toEqual(new Set([TRACE]))
})

it('records calls of every protocol alike', () => {
  const searches = named(SEARCH)
  expect(searches.map(({ attributes }) => attributes['waybill.protocol'])).toEqual(['rest', 'connect', 'grpc'])
  for (const { parent } of searches) expect(parent).toBe(CALLER)
})

it('records statements, waiting for a slot and calls of nodes below the call', () => {
  const [routes] = named('payments.v1.RoutesService/GetPaymentRoutes')
  const [search] = named(SEARCH)
  const namesBelow = (id: string | undefined) =>
    new Set(spans.filter(({ parent }) => parent === id).map(({ name }) => name))
  expect([...namesBelow(routes?.id)]).toEqual(expect.arrayContaining(['SELECT', 'eth_call']))
  expect([...namesBelow(search?.id)]).toEqual(expect.arrayContaining(['SELECT', 'wait for a slot']))
  const statement = spans.find(({ name, parent }) => name === 'SELECT' && parent === search?.id)
  expect(statement?.attributes).toMatchObject({ 'db.system.name': 'postgresql' })
})

it('hands the trace on to a node where the chains file says so', () => {
  const sent = running.asked.flatMap(({ traceparent }) => (typeof traceparent === 'string' ? [traceparent] : []))
  const ids = new Set(spans.map(({ id }) => id))
  expect(sent.length).toBeGreaterThan(0)
  for (const header of sent) {
    expect(header).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
    expect(ids).toContain(header.split('-')[2])
  }
})

it('has the trace on the line of a call, recorded or not', () => {
  const lines = running.log().filter(({ msg }) => msg === 'call')
  expect(lines.map(({ traceId }) => traceId)).toEqual([UNSAMPLED, TRACE, TRACE, TRACE, TRACE, TRACE])
})

it('names the service as OpenTelemetry asks', () => {
  const bodies = Buffer.concat(receiver.bodies).toString('latin1')
  expect(bodies).toContain('deployment.environment.name')
  expect(bodies).toMatch(/service\.name[\s\S]{1,6}waybill/)
  const instance = /service\.instance\.id[\s\S]{1,6}([\da-f]{8}-[\da-f-]{27})/
  const [, ofTraces] = instance.exec(bodies) ?? []
  expect(ofTraces).toBeDefined()
  expect(instance.exec(Buffer.concat(receiver.metrics).toString('latin1'))?.[1]).toBe(ofTraces)
  expect(bodies).toMatch(/service\.version[\s\S]{1,6}\d+\.\d+\.\d+/)
})

it('sends metrics too, with the values that Prometheus would read', () => {
  const last = receiver.metrics.at(-1)
  const durations = pointsIn(last, 'rpc_server_call_duration_seconds')
  expect(durations).toMatchObject({ kind: 'histogram', aggregationTemporality: 2 })
  const searches = durations.points.filter(({ attributes }) => attributes['rpc_method'] === SEARCH)
  expect(searches.map(({ count, attributes }) => [attributes['protocol'], count])).toEqual([
    ['rest', 1],
    ['connect', 1],
    ['grpc', 1],
  ])
  for (const { bounds = [], counts = [], count, sum = 0, start, time } of durations.points) {
    expect(counts).toHaveLength(bounds.length + 1)
    expect(counts.reduce((total, each) => total + each)).toBe(count)
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(0)
    expect(sum).toBeGreaterThan(0)
    expect([Math.abs(Date.now() - time / 1e6) < 120_000, start < time]).toEqual([true, true])
  }
  const errors = pointsIn(last, 'waybill_errors_total')
  expect(errors).toMatchObject({ kind: 'sum', isMonotonic: true, points: [{ value: 1 }] })
  expect(pointsIn(last, 'waybill_build_info')).toMatchObject({ kind: 'gauge', points: [{ value: 1 }] })
  expect(pointsIn(last, 'waybill_certificate_days_left').points).toEqual([])
  expect(pointsIn(last, 'process_resident_memory_bytes').points[0]?.value).toBeGreaterThan(10_000_000)
  expect(last?.toString('latin1')).toMatch(/service\.name[\s\S]{1,6}waybill/)
})

it('begins a trace with a webhook, and hands it on', async () => {
  const sent: IncomingHttpHeaders[] = []
  const shop = await serveLocally((request, response) => {
    sent.push(request.headers)
    response.writeHead(sent.length === 1 ? 204 : 500).end()
  })
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', receiver.url)
  const { tracer, stop } = createOpenTelemetryTracer({ ratio: 1, isParentBased: true }, () => {})
  vi.unstubAllEnvs()
  const from = receiver.bodies.length
  const sending = createPostWebhook({ allowsPrivate: true, now: () => new Date(), tracer })
  const posting = { url: `${shop.url}/hook`, body: '{}', headers: { 'webhook-id': 'a' } }
  await sending.post(posting, AbortSignal.timeout(10_000))
  await sending.post(posting, AbortSignal.timeout(10_000))
  sending.close()
  await Promise.all([stop(), shop.stop()])
  const webhooks = spansIn(receiver.bodies.slice(from))
  expect(webhooks.map(({ name, parent, attributes }) => [name, parent, attributes])).toEqual([
    ['webhook', '', { 'server.address': '127.0.0.1' }],
    ['webhook', '', { 'server.address': '127.0.0.1', 'error.type': '500' }],
  ])
  expect(sent.map((headers) => headers['traceparent'])).toEqual(webhooks.map(({ trace, id }) => `00-${trace}-${id}-01`))
})
