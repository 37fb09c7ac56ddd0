import { readFileSync } from 'node:fs'
import packageFile from '../../../package.json' with { type: 'json' }
import { DEFAULT_CONNECTION_LIMITS } from '../../api/listener/connection-limits.ts'
import type { Config } from '../../config.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Telemetry } from '../../domain/telemetry/telemetry.ts'
import { type LoadedTelemetry, loadTelemetry } from '../../observability/load-telemetry.ts'
import { placeOf } from '../../postgres/check-database.ts'
import { naming } from './listen.ts'

/** What a process that serves reports to. */
export interface ServeTools {
  readonly logger: Logger
  readonly telemetry: Telemetry
}

/** Logs what starts, and warns of what will be short. */
export function announceStart(config: Config, logger: Logger): void {
  const { pid, version: node } = process
  logger.info({ release: packageFile.version, node, pid, configuration: withoutSecrets(config) }, 'starting')
  const limit = readDescriptorLimit()
  const needed = descriptorsNeeded(config)
  if (limit !== undefined && limit < needed) {
    const message = 'fewer files may be open than the configuration needs: connections beyond that are closed at once'
    logger.warn({ limit, needed }, message)
  }
}

/** Loads what exports metrics and traces. @throws NotInstalledError; Error that names the port */
export async function openTelemetry(config: Config, logger: Logger): Promise<LoadedTelemetry> {
  const { host, metricsPort = 0 } = config
  const loaded = await naming('METRICS_PORT', host, metricsPort, () => loadTelemetry(config, logger))
  const { metricsUrl, telemetry } = loaded
  if (metricsUrl !== undefined) logger.info({ url: metricsUrl }, 'metrics are read here')
  const labels = { release: packageFile.version, node: process.version }
  telemetry.meter?.observe([BUILD_INFO], () => [[BUILD_INFO.name, 1, labels]])
  return loaded
}

const BUILD_INFO = { name: 'waybill_build_info', help: 'What runs; always 1.', labels: ['release', 'node'] }

/** The configuration as a log may hold it: of URLs the host alone. */
function withoutSecrets({ database, lifi, tls, ...config }: Config): object {
  const ofUrl = database.kind === 'URL' && { url: placeOf(database.url), replicas: database.replicaUrls.map(placeOf) }
  return {
    ...config,
    database: { kind: database.kind, ...ofUrl },
    lifi: lifi && new URL(lifi.url).host,
    tls: tls?.certPath,
  }
}

/** Nodes, files, the log, and what Node itself holds. */
const OTHER_DESCRIPTORS = 256

function descriptorsNeeded({ limits, database, databaseConnections = 8 }: Config): number {
  const servers = database.kind === 'URL' ? 1 + database.replicaUrls.length : 1
  const { maxConnections = DEFAULT_CONNECTION_LIMITS.maxConnections } = limits
  return maxConnections + servers * databaseConnections + OTHER_DESCRIPTORS
}

/** Undefined where the system does not say. */
function readDescriptorLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}
