import { AsyncLocalStorage } from 'node:async_hooks'
import type * as Api from '@opentelemetry/api'
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type * as Resources from '@opentelemetry/resources'
import type * as Sdk from '@opentelemetry/sdk-trace'
import type { Span, SpanAttributes, Tracer } from '../domain/telemetry/telemetry.ts'

/** The packages that traces need. */
export interface TracePackages {
  readonly api: typeof Api
  readonly sdk: typeof Sdk
  readonly resources: typeof Resources
  readonly exporter: { readonly OTLPTraceExporter: typeof OTLPTraceExporter }
}

/** Which calls are recorded: OTEL_TRACES_SAMPLER. */
export interface Sampling {
  /** The part of the calls whose caller has not decided, 0 to 1. */
  readonly ratio: number
  /** Whether the caller's decision holds. */
  readonly isParentBased: boolean
}

interface OwnSpan extends Span {
  readonly context: Api.Context
}

/**
 * Makes a tracer that sends spans over OTLP in the background, to where the variables of OpenTelemetry say. What is not sampled costs a decision and
 * has no spans.
 */
export function createOpenTelemetryTracer({ api, sdk, resources, exporter }: TracePackages, sampling: Sampling) {
  const root = new sdk.TraceIdRatioBasedSampler(sampling.ratio)
  const provider = new sdk.TracerProvider({
    sampler: sampling.isParentBased ? new sdk.ParentBasedSampler({ root }) : root,
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ 'service.name': 'waybill' }))
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new exporter.OTLPTraceExporter() })],
  })
  const spans = provider.getTracer('waybill')
  const running = new AsyncLocalStorage<OwnSpan>()
  const { SpanKind, SpanStatusCode, TraceFlags, trace, ROOT_CONTEXT } = api

  function wrap(span: Api.Span, parent: Api.Context): OwnSpan {
    const { traceId, spanId } = span.spanContext()
    const own: OwnSpan = {
      traceId,
      traceparent: `00-${traceId}-${spanId}-01`,
      context: trace.setSpan(parent, span),
      run: (work) => running.run(own, work),
      end(failure, attributes) {
        if (attributes !== undefined) span.setAttributes(attributes)
        if (failure !== undefined) {
          span.setAttribute('error.type', failure)
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        span.end()
      },
    }
    return own
  }

  const tracer: Tracer = {
    beginCall(name, parent, attributesOf) {
      const { traceId = '', spanId = '', isSampled } = parent ?? {}
      const traceFlags = isSampled === true ? TraceFlags.SAMPLED : TraceFlags.NONE
      const remote = { traceId, spanId, traceFlags, isRemote: true }
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
      const span = spans.startSpan(name, { kind: SpanKind.SERVER }, context)
      return span.isRecording() ? wrap(span.setAttributes(attributesOf()), context) : undefined
    },
    begin(name, kind, attributes: SpanAttributes) {
      const context = running.getStore()?.context
      if (context === undefined) return undefined
      return wrap(spans.startSpan(name, { kind: SpanKind[kind], attributes: { ...attributes } }, context), context)
    },
  }
  return { tracer, /** Sends what is left. */ stop: () => provider.shutdown() }
}
