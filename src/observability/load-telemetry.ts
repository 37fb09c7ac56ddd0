import type { Logger } from '../domain/logger.ts'
import type { Telemetry } from '../domain/telemetry/telemetry.ts'
import { within } from '../domain/within.ts'
import { importOptional } from '../errors/not-installed-error.ts'
import { startMetricsServer } from './metrics-server.ts'
import type { Sampling } from './open-telemetry-tracer.ts'
import { tellExports } from './tell-exports.ts'

export interface TelemetryOptions {
  readonly host: string
  /** Undefined: metrics are read nowhere. */
  readonly metricsPort: number | undefined
  /** How often metrics are sent over OTLP; absent for never. */
  readonly pushMetricsEveryMs?: number | undefined
  /** Undefined: nothing is traced. */
  readonly traces: Sampling | undefined
}

/** What the parts of the process report to. */
export interface LoadedTelemetry {
  readonly telemetry: Telemetry
  /** Where metrics are read; undefined for nowhere. */
  readonly metricsUrl?: string | undefined
  /** Sends the traces that are left and the metrics once more, within {@link STOPPED_WITHIN_MS}, and closes the port of metrics. Never rejects. */
  readonly stop: () => Promise<void>
}

/**
 * Loads what exports metrics and traces, if the configuration asks for them, and answers on the port of metrics.
 *
 * @throws NotInstalledError; Error of node:net if the port is not free
 */
export async function loadTelemetry(options: TelemetryOptions, logger: Logger): Promise<LoadedTelemetry> {
  const { host, metricsPort: port, pushMetricsEveryMs: everyMs, traces } = options
  const tracing = traces && (await importOptional(OTLP, () => import('./open-telemetry-tracer.ts')))
  const pushing = everyMs === undefined ? undefined : await importOptional(OTLP, () => import('./push-metrics.ts'))
  const isMeasured = port !== undefined || everyMs !== undefined
  const measuring = isMeasured ? await importOptional('METRICS_PORT', () => import('./prometheus-meter.ts')) : undefined
  const exported = measuring?.createPrometheusMeter()
  const server = exported && port !== undefined ? await startMetricsServer({ ...exported, host, port }) : undefined
  const pushed = exported && pushing?.pushMetrics(everyMs ?? 0, exported.read, tellExports(logger, 'metrics'))
  const traced = traces && tracing?.createOpenTelemetryTracer(traces, tellExports(logger, 'traces'))
  return {
    telemetry: { meter: exported?.meter, tracer: traced?.tracer },
    metricsUrl: server?.url,
    async stop(): Promise<void> {
      const stopped = Promise.allSettled([server?.stop(), traced?.stop(), pushed?.stop()])
      await within(STOPPED_WITHIN_MS, stopped, () => undefined)
    },
  }
}

const OTLP = 'OTEL_EXPORTER_OTLP_ENDPOINT'

/** A collector that does not answer takes no more of the time that a stop has, in milliseconds. */
const STOPPED_WITHIN_MS = 2_000
