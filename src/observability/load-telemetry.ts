import type { Telemetry } from '../domain/telemetry/telemetry.ts'
import { startMetricsServer } from './metrics-server.ts'
import type { Sampling } from './open-telemetry-tracer.ts'

export interface TelemetryOptions {
  readonly host: string
  /** Undefined: nothing is measured. */
  readonly metricsPort: number | undefined
  /** Undefined: nothing is traced. */
  readonly traces: Sampling | undefined
}

/** A package that the configuration needs is not installed. */
export class PackageMissingError extends Error {
  override readonly name = 'PackageMissingError'
}

/** What the parts of the process report to. */
export interface LoadedTelemetry {
  readonly telemetry: Telemetry
  /** Where metrics are read; undefined for nowhere. */
  readonly metricsUrl?: string | undefined
  /** Sends the traces that are left, and closes the port of metrics. Never rejects. */
  readonly stop: () => Promise<void>
}

/**
 * Loads what exports metrics and traces, if the configuration asks for them, and answers on the port of metrics.
 *
 * @throws PackageMissingError; Error of node:net if the port is not free
 */
export async function loadTelemetry({ host, metricsPort, traces }: TelemetryOptions): Promise<LoadedTelemetry> {
  const exported = metricsPort === undefined ? undefined : await loadMeter()
  const traced = traces && (await loadTracer(traces))
  const server = exported && (await startMetricsServer({ ...exported, host, port: metricsPort ?? 0 }))
  return {
    telemetry: { meter: exported?.meter, tracer: traced?.tracer },
    metricsUrl: server?.url,
    async stop(): Promise<void> {
      await Promise.allSettled([server?.stop(), traced?.stop()])
    },
  }
}

async function loadMeter() {
  const needed = { variable: 'METRICS_PORT', name: 'prom-client' }
  const library = await loadPackage(needed, () => import('prom-client'))
  const { createPrometheusMeter } = await import('./prometheus-meter.ts')
  return createPrometheusMeter(library)
}

async function loadTracer(sampling: Sampling) {
  const load = <T>(name: string, loaded: () => Promise<T>) =>
    loadPackage({ variable: 'OTEL_EXPORTER_OTLP_ENDPOINT', name }, loaded)
  const [api, sdk, resources, exporter] = await Promise.all([
    load('@opentelemetry/api', () => import('@opentelemetry/api')),
    load('@opentelemetry/sdk-trace', () => import('@opentelemetry/sdk-trace')),
    load('@opentelemetry/resources', () => import('@opentelemetry/resources')),
    load('@opentelemetry/exporter-trace-otlp-proto', () => import('@opentelemetry/exporter-trace-otlp-proto')),
  ])
  const { createOpenTelemetryTracer } = await import('./open-telemetry-tracer.ts')
  return createOpenTelemetryTracer({ api, sdk, resources, exporter }, sampling)
}

async function loadPackage<T>(
  { variable, name }: { readonly variable: string; readonly name: string },
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new PackageMissingError(
      `${variable} is set and the package ${name} is not installed: run npm ci with optional packages, or unset it`,
      { cause },
    )
  }
}
