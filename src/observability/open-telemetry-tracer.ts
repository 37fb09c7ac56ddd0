import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  type Span as Recorded,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Span, SpanAttributes, TraceParent, Tracer } from '../domain/telemetry/telemetry.ts'
import { resource } from './resource.ts'
import type { TellExport } from './tell-exports.ts'

/** Which calls are recorded: OTEL_TRACES_SAMPLER. */
export interface Sampling {
  /** The part of the calls whose caller has not decided, 0 to 1. */
  readonly ratio: number
  /** Whether the caller's decision holds. */
  readonly isParentBased: boolean
}

interface OwnSpan extends Span {
  readonly context: Context
}

/**
 * Makes a tracer that sends spans over OTLP in the background, to where the variables of OpenTelemetry say. What is not sampled costs a decision and
 * has no spans.
 */
export function createOpenTelemetryTracer({ ratio, isParentBased }: Sampling, tell: TellExport) {
  const sender = new OTLPTraceExporter()
  const exporter: SpanExporter = {
    export(batch, done) {
      sender.export(batch, (result) => {
        tell(result)
        done(result)
      })
    },
    shutdown: () => sender.shutdown(),
  }
  const provider = new TracerProvider({
    sampler: isParentBased ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(ratio),
    resource,
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const spans = provider.getTracer('waybill')
  const running = new AsyncLocalStorage<OwnSpan>()

  function wrap(span: Recorded, parent: Context): OwnSpan {
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

  /** Decided before the library makes a span, which costs much even where nothing records it. */
  const isLeftOut = (parent?: TraceParent) => isParentBased && !(parent?.isSampled ?? Math.random() < ratio)

  const tracer: Tracer = {
    beginCall(name, parent, attributesOf) {
      if (isLeftOut(parent)) return undefined
      const { traceId = '', spanId = '', isSampled } = parent ?? {}
      const traceFlags = isSampled === true ? TraceFlags.SAMPLED : TraceFlags.NONE
      const remote = { traceId, spanId, traceFlags, isRemote: true }
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
      const span = spans.startSpan(name, { kind: SpanKind.SERVER }, context)
      return span.isRecording() ? wrap(span.setAttributes(attributesOf()), context) : undefined
    },
    begin(name, kind, attributes: SpanAttributes) {
      const context = running.getStore()?.context ?? (kind === 'PRODUCER' && !isLeftOut() ? ROOT_CONTEXT : undefined)
      if (context === undefined) return undefined
      const span = spans.startSpan(name, { kind: SpanKind[kind], attributes: { ...attributes } }, context)
      return span.isRecording() ? wrap(span, context) : undefined
    },
  }
  return { tracer, /** Sends what is left. */ stop: () => provider.shutdown() }
}
