import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base'
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http'
import { MetricsExporterMetricsHelper, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { AggregationTemporality, DataPointType, type Histogram, type MetricData } from '@opentelemetry/sdk-metrics'
import type { MetricObjectWithValues, MetricValue } from 'prom-client'
import { resource } from './resource.ts'
import type { TellExport } from './tell-exports.ts'

type Stored = MetricObjectWithValues<MetricValue<string>>

const HEADERS = { 'Content-Type': 'application/x-protobuf' }
const START = timeOf(Date.now())

/** Sends what Prometheus would read over OTLP, again and again, to where the variables of OpenTelemetry say. */
export function pushMetrics(everyMs: number, read: () => Promise<readonly Stored[]>, tell: TellExport) {
  const options = convertLegacyHttpOptions({}, 'METRICS', 'v1/metrics', HEADERS)
  const terms = [ProtobufMetricsSerializer, 'otlp_http_metric_exporter', MetricsExporterMetricsHelper] as const
  const exporter = new OTLPExporterBase(createOtlpHttpExportDelegate(options, ...terms, undefined))
  const push = async () => {
    const scopeMetrics = [{ scope: { name: 'waybill' }, metrics: (await read()).map(toOtlp) }]
    tell(await new Promise((done) => exporter.export({ resource, scopeMetrics }, done)))
  }
  const timer = setInterval(() => void push(), everyMs).unref()
  /** Sends them once more. */
  const stop = async () => {
    clearInterval(timer)
    await push()
    await exporter.shutdown()
  }
  return { stop }
}

function toOtlp({ name, help, type, values }: Stored): MetricData {
  const descriptor = { name, description: help, unit: '', valueType: 1 }
  const common = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE }
  const times = { startTime: START, endTime: timeOf(Date.now()) }
  if (`${type}` === 'histogram') {
    const dataPoints = histograms(values).map((each) => ({ ...times, ...each }))
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: { ...labels }, value }))
  return `${type}` === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints }
}

function timeOf(ms: number): [seconds: number, nanos: number] {
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000]
}

/** Prometheus' values come bucket by bucket, each with what is in those below, then sum, then count. */
function histograms(values: readonly (MetricValue<string> & { readonly metricName?: string })[]) {
  const found: { readonly attributes: Record<string, string | number>; readonly value: Histogram }[] = []
  let [boundaries, counts, below, sum]: [number[], number[], number, number] = [[], [], 0, 0]
  for (const { metricName = '', labels, value } of values) {
    const { le, ...attributes } = labels as Record<string, string | number>
    if (le !== undefined) {
      if (le !== '+Inf') boundaries.push(Number(le))
      counts.push(value - below)
      below = value
    } else if (metricName.endsWith('_sum')) {
      sum = value
    } else {
      found.push({ attributes, value: { buckets: { boundaries, counts }, sum, count: value } })
      ;[boundaries, counts, below] = [[], [], 0]
    }
  }
  return found
}
