/** What modules report of their work. A process that exports nothing gives them none, and they measure nothing. */
export interface Telemetry {
  readonly meter?: Meter | undefined
  readonly tracer?: Tracer | undefined
}

export type Labels = Readonly<Record<string, string>>

/** Names as Prometheus has them: units last, in base units. Labels have few values each, and never an account. */
export interface Metric {
  readonly name: string
  readonly help: string
  /** Names of labels; default none. */
  readonly labels?: readonly string[]
}

/** A value that is read when the metrics are exported. */
export type Sample<Name extends string = string> = readonly [name: Name, value: number, labels?: Labels]

export interface Meter {
  readonly counter: (metric: Metric) => (labels: Labels) => void
  /** @param metric.buckets - upper bounds, ascending */
  readonly histogram: (
    metric: Metric & { readonly buckets: readonly number[] },
  ) => (labels: Labels, value: number) => void
  /**
   * Declares metrics that are read at each export; those whose names end in `_total` are counters. Samples with the same labels are added up. What
   * cannot be read is left out.
   */
  readonly observe: <Name extends string>(
    metrics: readonly (Metric & { readonly name: Name })[],
    read: () => Promise<readonly Sample<Name>[]> | readonly Sample<Name>[],
  ) => void
}

/** Buckets of durations in seconds, by OpenTelemetry's conventions. */
export const CALL_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

export type SpanAttributes = Readonly<Record<string, string | number>>

/** A part of a trace that is recorded. */
export interface Span {
  readonly traceId: string
  /** The header `traceparent` of what is asked of others within the span. */
  readonly traceparent: string
  /** Does work whose spans stand below this one. */
  readonly run: <T>(work: () => T) => T
  /** @param failure - what went wrong, in a word; absent where nothing did */
  readonly end: (failure?: string, attributes?: SpanAttributes) => void
}

export interface Tracer {
  /**
   * Begins the span of a call. Undefined where the call is not sampled, as most are not.
   *
   * @param parent - the caller's, which may decide that
   * @param attributesOf - called only for a sampled one
   */
  readonly beginCall: (
    name: string,
    parent: TraceParent | undefined,
    attributesOf: () => SpanAttributes,
  ) => Span | undefined
  /**
   * Begins a span below the one that runs now. Undefined where none runs.
   *
   * @param kind - CLIENT: another program does the work; PRODUCER: so too, and where no span runs a trace begins
   */
  readonly begin: (
    name: string,
    kind: 'CLIENT' | 'INTERNAL' | 'PRODUCER',
    attributes: SpanAttributes,
  ) => Span | undefined
}

/** The caller's place in a trace: W3C Trace Context. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/

/** Reads the header `traceparent`; undefined where it is absent or malformed, which W3C has ignored. */
export function parseTraceparent(header: string | readonly string[] | undefined): TraceParent | undefined {
  const [, traceId, spanId, flags] = (typeof header === 'string' && TRACEPARENT.exec(header)) || []
  if (traceId === undefined || spanId === undefined) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags ?? '', 16) & 1) === 1 }
}
