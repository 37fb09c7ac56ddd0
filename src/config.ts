import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { given } from './domain/collections.ts'
import { type Decimal, parseDecimal } from './domain/decimal.ts'
import { parseIpNetwork } from './domain/hosts/ip-network.ts'
import { explainOrigin } from './domain/hosts/origin.ts'

/** Where a command finds its data. */
export interface StoreConfig {
  /** Absolute. */
  readonly dataDir: string
  readonly logLevel: LogLevel
  readonly database:
    | { readonly kind: 'EMBEDDED' }
    | {
        readonly kind: 'URL'
        readonly url: string
        /** Streaming replicas, for reads only. */
        readonly replicaUrls: readonly string[]
        /** Prepared statements to keep on each connection; undefined decides at each connection. */
        readonly maxPrepared: number | undefined
      }
}

/** The configuration of the service. */
export interface Config extends StoreConfig {
  /** Which calls have a line in the log: FAILED, or these and a part of the others; undefined takes the default. */
  readonly loggedCalls: number | 'FAILED' | 'NONE' | undefined
  /** The port on which metrics are read, 0 for any free one; undefined for none. */
  readonly metricsPort: number | undefined
  /** How often metrics are sent over OTLP; undefined for never. */
  readonly pushMetricsEveryMs: number | undefined
  /** Which calls are traced, where OTLP has an endpoint; undefined for none. */
  readonly traces: { readonly ratio: number; readonly isParentBased: boolean } | undefined
  /** Connections to each database server; undefined takes the default. */
  readonly databaseConnections: number | undefined
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Absolute paths of PEM files; undefined for plaintext. */
  readonly tls: { readonly certPath: string; readonly keyPath: string } | undefined
  /** Origins that browsers may call from; `*` is any. */
  readonly corsOrigins: readonly string[]
  /** Addresses and networks of proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[]
  /** The limits that depend on the machine and its clients. All others are constants. */
  readonly limits: CapacityLimits
  /** How long calls go on as before after SIGTERM, in milliseconds. */
  readonly shutdownDelayMs: number
  readonly chains:
    | { readonly kind: 'DEMO' /** Days of payments before those on the chains. */; readonly days: number }
    | { readonly kind: 'FILE'; readonly path: string }
    | { readonly kind: 'NONE' }
  /** Whether webhooks may be sent to http URLs and to addresses of private networks. */
  readonly webhooksAllowPrivate: boolean
  /** The cross-chain provider; undefined for none. */
  readonly lifi:
    | {
        readonly url: string
        readonly apiKey: string | undefined
        /** The most that a cross-chain payment may lose, whichever is more: hundredths of a percent, US dollars. */
        readonly lossCap: { readonly bps: number; readonly usd: Decimal }
      }
    | undefined
}

/** The limits that can be set, by their variables. */
const capacities = [
  ['MAX_CONNECTIONS', 'maxConnections'],
  ['MAX_CONNECTIONS_PER_ADDRESS', 'maxConnectionsPerAddress'],
  ['MAX_CALLS', 'maxCalls'],
  ['MAX_STREAMS', 'maxOpenStreams'],
  ['MAX_STREAMS_PER_KEY', 'maxStreamsPerKey'],
  ['MAX_STREAMS_PER_ACCOUNT', 'maxStreamsPerAccount'],
  ['MIN_EXPORT_ROWS_PER_SECOND', 'minRowsPerSecond'],
  ['MAX_SEARCHES_PER_KEY', 'maxSearchesPerKey'],
  ['MAX_SUMMARIES_PER_KEY', 'maxSummariesPerKey'],
] as const

/** Limits of this process; one that is absent has its default. */
type CapacityLimits = { readonly [K in (typeof capacities)[number][1]]?: number }

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
type LogLevel = (typeof logLevels)[number]

/** OpenTelemetry's names, and whether each records all calls, none, or a part of them. */
const samplers = {
  always_on: 1,
  always_off: 0,
  traceidratio: undefined,
  parentbased_always_on: 1,
  parentbased_always_off: 0,
  parentbased_traceidratio: undefined,
} as const

/** The environment or a file that it names is not valid; `faults` lists everything that is wrong. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/** The variables and their meaning, for help texts. */
export const configHelp: readonly (readonly [name: string, meaning: string])[] = Object.entries({
  HOST: 'address to listen on (default 127.0.0.1; the demo listens on loopback only)',
  PORT: 'port to listen on (default 8080)',
  DATA_DIR: 'folder of the embedded database and the demo (default ./data)',
  LOG_LEVEL: `${logLevels.join(', ')} (default info)`,
  LOG_CALLS:
    'calls that have a line: all, failed, none, or failed ones and a part of the others, such as 0.01 (default all; failed in a terminal of the demo)',
  METRICS_PORT: 'port of HOST that answers GET /metrics for Prometheus (default none)',
  OTEL_EXPORTER_OTLP_ENDPOINT:
    'http:// or https:// URL that gets traces and metrics, as protobuf over HTTP; docs/reference/configuration.md names the other OTEL_ variables that hold (default none)',
  OTEL_TRACES_SAMPLER: `${Object.keys(samplers).join(', ')} (default parentbased_always_on)`,
  OTEL_TRACES_SAMPLER_ARG: 'the part of the calls that a sampler with traceidratio records, 0 to 1 (default 1)',
  TLS_CERT: 'PEM file of the certificate chain; the port then speaks TLS only; needs TLS_KEY',
  TLS_KEY: 'PEM file of the private key of TLS_CERT, without passphrase',
  CORS_ORIGINS: 'origins that browsers may call from, separated by commas, or * (default none)',
  TRUSTED_PROXIES:
    'addresses and networks (10.0.0.0/8) of proxies whose X-Forwarded-For or Forwarded header is trusted (default none)',
  SHUTDOWN_DELAY_SECONDS:
    'how long calls go on after SIGTERM while /readyz answers 503, so that balancers send them elsewhere, 0 to 600 (default 5; the demo 0)',
  MAX_CONNECTIONS: 'connections at once (default 8000)',
  MAX_CONNECTIONS_PER_ADDRESS:
    'idle connections of one address without a secret key, TRUSTED_PROXIES excepted (default a tenth of MAX_CONNECTIONS)',
  MAX_CALLS: 'calls at once (default 1000)',
  MAX_STREAMS: 'streams at once, not counted as calls (default 1000)',
  MAX_STREAMS_PER_KEY: 'streams of one key at once (default a tenth of MAX_STREAMS)',
  MAX_STREAMS_PER_ACCOUNT: 'streams of all keys of one account at once (default a fifth of MAX_STREAMS)',
  MIN_EXPORT_ROWS_PER_SECOND: 'minimum speed at which an export must be read, in payments a second (default 10)',
  MAX_SEARCHES_PER_KEY: 'searches, lists and exports of one key at once; further ones wait (default 4)',
  MAX_SUMMARIES_PER_KEY: 'summaries of one key at once; further ones wait (default 1)',
  DATABASE_URL: 'postgres:// URL instead of the embedded database; needs CHAINS_FILE',
  DATABASE_REPLICA_URLS:
    'postgres:// URLs of streaming replicas for searches, summaries and exports, separated by commas (default none)',
  DATABASE_CONNECTIONS: 'connections to each database server, 4 to 100 (default 8)',
  DATABASE_PREPARED_STATEMENTS:
    'auto; on for a pooler that gives each client a server connection of its own; or off (default auto: none behind a pooler without support)',
  CHAINS_FILE:
    'JSON file of the chains to serve (see chains/mainnets.json), or none for search only; without CHAINS_FILE and DATABASE_URL the demo runs',
  DEMO_DAYS: 'days of earlier payments that the demo imports, 0 to 400 (default 180)',
  WEBHOOK_ALLOW_PRIVATE:
    'true sends webhooks to http:// URLs and addresses of private networks too (default false; true in the demo)',
  LIFI_URL: 'https:// URL of LI.FI (https://li.quest), for cross-chain routes (default none; not in the demo)',
  LIFI_API_KEY: 'API key of LI.FI, for a larger quota (default none)',
  LIFI_MAX_LOSS_PERCENT:
    'the most that a cross-chain payment may lose in percent, 0 to 50, at most two decimals (default 10)',
  LIFI_MAX_LOSS_USD: 'the same in US dollars; the larger of both counts (default 8)',
})

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the configuration of the service. Does not throw, so that a caller can add the faults of the files that it names.
 *
 * @param environment - an empty value counts as absent
 * @param workingFolder - the folder that DATA_DIR and CHAINS_FILE are relative to
 * @returns all faults. With faults, use the configuration only to find more of them
 */
export function readConfig(
  environment: Environment,
  workingFolder: string,
): { readonly config: Config; readonly faults: readonly string[] } {
  const sent = sentOf(environment, workingFolder)
  const { read, faults } = sent
  const store = readStore(sent)
  const tls = readTls(sent)
  const chains = readChains(sent, store.database.kind)
  const lifi = readLifi(sent)
  const config: Config = {
    ...store,
    databaseConnections: readWhole(sent, 'DATABASE_CONNECTIONS', { from: 4, to: 100 }, undefined),
    lifi,
    host: readHost(read('HOST') ?? '127.0.0.1', chains.kind, faults),
    port: readWhole(sent, 'PORT', PORTS, 8080),
    loggedCalls: readLoggedCalls(read('LOG_CALLS')?.toLowerCase(), faults),
    metricsPort: readWhole(sent, 'METRICS_PORT', PORTS, undefined),
    pushMetricsEveryMs: readPushInterval(sent),
    traces: readTraces(sent),
    tls,
    corsOrigins: readList(sent, 'CORS_ORIGINS', explainCorsOrigin),
    trustedProxies: readList(sent, 'TRUSTED_PROXIES', explainProxy),
    limits: readLimits(sent),
    shutdownDelayMs:
      readWhole(sent, 'SHUTDOWN_DELAY_SECONDS', { from: 0, to: 600 }, chains.kind === 'DEMO' ? 0 : 5) * 1_000,
    webhooksAllowPrivate: readSwitch(sent, 'WEBHOOK_ALLOW_PRIVATE', chains.kind === 'DEMO'),
    chains,
  }
  // Metrics and traces may share what is wrong.
  return { config, faults: [...new Set(faults)] }
}

/** Reads the configuration of a command that needs the database only. Parameters as {@link readConfig}. @throws ConfigError with all faults */
export function readStoreConfig(environment: Environment, workingFolder: string): StoreConfig {
  const sent = sentOf(environment, workingFolder)
  const config = readStore(sent)
  if (sent.faults.length > 0) throw new ConfigError(sent.faults)
  return config
}

type Sent = ReturnType<typeof sentOf>

function sentOf(environment: Environment, workingFolder: string) {
  return {
    read: (name: string) => (environment[name] === '' ? undefined : environment[name]),
    /** The absolute path of a file or folder. */
    pathOf: (path: string) => resolve(workingFolder, path),
    /** What is wrong, as far as it has been read. */
    faults: [] as string[],
  }
}

function readStore(sent: Sent): StoreConfig {
  const { read, pathOf, faults } = sent
  return {
    dataDir: pathOf(read('DATA_DIR') ?? 'data'),
    logLevel: readLogLevel(read('LOG_LEVEL') ?? 'info', faults),
    database: readDatabase(sent),
  }
}

/** A prepared statement with a generic plan takes some 100 KB of the server process's memory. */
const MAX_PREPARED = new Map([
  ['auto', undefined],
  ['on', 100],
  ['off', 0],
])

function readDatabase({ read, faults }: Sent): Config['database'] {
  const url = read('DATABASE_URL')
  const replicaUrls = listOf(read('DATABASE_REPLICA_URLS') ?? '')
  const prepared = (read('DATABASE_PREPARED_STATEMENTS') ?? 'auto').toLowerCase()
  if (!MAX_PREPARED.has(prepared)) {
    faults.push(`DATABASE_PREPARED_STATEMENTS is "${prepared}": use auto, on or off`)
  }
  // URLs may hold passwords, so the faults do not quote them.
  for (const [index, replicaUrl] of replicaUrls.entries()) {
    if (!isPostgresUrl(replicaUrl)) faults.push(`DATABASE_REPLICA_URLS: number ${index + 1} is not a postgres:// URL`)
  }
  if (url === undefined) {
    if (replicaUrls.length > 0)
      faults.push('DATABASE_REPLICA_URLS is set and DATABASE_URL is not: set the primary as well')
    return { kind: 'EMBEDDED' }
  }
  if (!isPostgresUrl(url)) faults.push('DATABASE_URL is not a postgres:// URL')
  return { kind: 'URL', url, replicaUrls, maxPrepared: MAX_PREPARED.get(prepared) }
}

function isPostgresUrl(url: string): boolean {
  const protocol = URL.parse(url)?.protocol
  return protocol === 'postgres:' || protocol === 'postgresql:'
}

function readChains(sent: Sent, database: Config['database']['kind']): Config['chains'] {
  const { read, pathOf, faults } = sent
  const file = read('CHAINS_FILE')
  if (file === 'none') return { kind: 'NONE' }
  if (file !== undefined) return { kind: 'FILE', path: pathOf(file) }
  if (database === 'URL') {
    faults.push(
      'DATABASE_URL is set and CHAINS_FILE is not. Set CHAINS_FILE to a chains file, or to none for search only; ' +
        'or unset DATABASE_URL to run the demo',
    )
  }
  return { kind: 'DEMO', days: readWhole(sent, 'DEMO_DAYS', { from: 0, to: 400 }, 180) }
}

const PORTS = { from: 0, to: 65_535 }

/** Reads a variable that is a whole number. */
function readWhole<T>(
  { read, faults }: Sent,
  name: string,
  { from, to }: { readonly from: number; readonly to: number },
  byDefault: T,
): number | T {
  const text = read(name)
  if (text === undefined) return byDefault
  const value = /^(?:0|[1-9]\d{0,6})$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= from && value <= to)) faults.push(`${name} is "${text}": use a whole number from ${from} to ${to}`)
  return value
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/

/** Labels of letters, digits and hyphens (RFC 1123), not all of digits: that would be an address. */
const HOST_NAME = /^(?=.{1,253}$)(?![\d.]+$)[a-z\d]([a-z\d-]{0,61}[a-z\d])?(\.[a-z\d]([a-z\d-]{0,61}[a-z\d])?)*$/i

function readHost(text: string, chains: Config['chains']['kind'], faults: string[]): string {
  const host = text.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) === 0 && !HOST_NAME.test(host)) {
    faults.push(`HOST is "${text}", which is neither an address nor a name: use an address such as 0.0.0.0 or ::`)
  } else if (chains === 'DEMO' && !LOOPBACK.test(text)) {
    faults.push(`HOST is ${text}, but the demo listens on loopback only. Unset HOST, or set CHAINS_FILE`)
  }
  return host
}

const RATIO = /^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/

function readLoggedCalls(text: string | undefined, faults: string[]): Config['loggedCalls'] {
  if (text === undefined) return undefined
  if (text === 'failed') return 'FAILED'
  if (text === 'none') return 'NONE'
  if (text !== 'all' && !RATIO.test(text)) {
    faults.push(`LOG_CALLS is "${text}": use all, failed, none, or a number from 0 to 1 such as 0.01`)
  }
  return text === 'all' ? 1 : Number(text)
}

/** Whether the standard variables say where a signal goes. The exporter reads where to send it, and how, itself. */
function isSentOverOtlp({ read, faults }: Sent, signal: 'METRICS' | 'TRACES'): boolean {
  const exporters = read(`OTEL_${signal}_EXPORTER`)?.split(',') ?? ['otlp']
  const isOff = read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || !exporters.includes('otlp')
  const prefixes = [`OTEL_EXPORTER_OTLP_${signal}`, 'OTEL_EXPORTER_OTLP']
  const endpoints = prefixes.map((prefix) => `${prefix}_ENDPOINT`).filter((name) => read(name) !== undefined)
  if (isOff || endpoints.length === 0) return false
  // A URL may hold a token, so the fault does not quote it.
  for (const name of endpoints) {
    if (!/^https?:$/.test(URL.parse(read(name) ?? '')?.protocol ?? '')) faults.push(`${name} is not an http:// URL`)
  }
  for (const name of prefixes.map((prefix) => `${prefix}_PROTOCOL`)) {
    const protocol = read(name) ?? 'http/protobuf'
    if (protocol !== 'http/protobuf') faults.push(`${name} is "${protocol}": use http/protobuf`)
  }
  return true
}

function readPushInterval(sent: Sent): number | undefined {
  if (!isSentOverOtlp(sent, 'METRICS')) return undefined
  return readWhole(sent, 'OTEL_METRIC_EXPORT_INTERVAL', { from: 1_000, to: 3_600_000 }, 60_000)
}

function readTraces(sent: Sent): Config['traces'] {
  if (!isSentOverOtlp(sent, 'TRACES')) return undefined
  const { read, faults } = sent
  const sampler = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on'
  const argument = read('OTEL_TRACES_SAMPLER_ARG') ?? '1'
  if (!(sampler in samplers)) {
    faults.push(`OTEL_TRACES_SAMPLER is "${sampler}": use one of ${Object.keys(samplers).join(', ')}`)
  }
  if (!RATIO.test(argument)) faults.push(`OTEL_TRACES_SAMPLER_ARG is "${argument}": use a number from 0 to 1`)
  const ratio = samplers[sampler as keyof typeof samplers] ?? Number(argument)
  return { ratio, isParentBased: sampler.startsWith('parentbased') }
}

/** Quotes neither value, since people put keys into the wrong variable. */
function readLifi({ read, faults }: Sent): Config['lifi'] {
  const [url, apiKey] = [read('LIFI_URL'), read('LIFI_API_KEY')]
  const lossCap = readLossCap(read('LIFI_MAX_LOSS_PERCENT') ?? '10', read('LIFI_MAX_LOSS_USD') ?? '8', faults)
  if (url === undefined) {
    if (apiKey !== undefined) faults.push('LIFI_API_KEY is set and LIFI_URL is not: set both or unset the key')
    return undefined
  }
  const parsed = URL.parse(url)
  const isPlain = parsed?.protocol === 'http:'
  if (parsed === null || !(isPlain || parsed.protocol === 'https:')) {
    faults.push('LIFI_URL is not an https:// URL, such as https://li.quest')
    return undefined
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.search !== '' || parsed.hash !== '') {
    faults.push('LIFI_URL has more than an origin and a path: put the key into LIFI_API_KEY')
  }
  if (isPlain && !LOOPBACK.test(parsed.hostname))
    faults.push('LIFI_URL is http://, which sends the key unencrypted: use https://')
  if (apiKey !== undefined && !/^[\x21-\x7e]{1,512}$/.test(apiKey)) {
    faults.push('LIFI_API_KEY is longer than 512 characters, or has characters that a header cannot have')
  }
  return { url: url.replace(/\/+$/, '').replace(/\/v1$/, ''), apiKey, lossCap }
}

function readLossCap(percent: string, usd: string, faults: string[]): NonNullable<Config['lifi']>['lossCap'] {
  if (!/^(?:\d|[1-4]\d)(?:\.\d{1,2})?$|^50(?:\.00?)?$/.test(percent)) {
    faults.push(`LIFI_MAX_LOSS_PERCENT is "${percent}": use 0 to 50 with at most two decimals`)
  }
  const dollars = parseDecimal(usd)
  const isAmount = dollars !== undefined && dollars.units >= 0n
  if (!isAmount) faults.push(`LIFI_MAX_LOSS_USD is "${usd}": use a decimal number of US dollars, such as 8`)
  return { bps: Math.round(Number(percent) * 100), usd: dollars ?? { units: 0n, places: 0 } }
}

function readTls({ read, pathOf, faults }: Sent): Config['tls'] {
  const [cert, key] = [read('TLS_CERT'), read('TLS_KEY')]
  if (cert !== undefined && key !== undefined) return { certPath: pathOf(cert), keyPath: pathOf(key) }
  if (cert !== undefined) faults.push('TLS_CERT is set and TLS_KEY is not: set both or neither')
  if (key !== undefined) faults.push('TLS_KEY is set and TLS_CERT is not: set both or neither')
  return undefined
}

function readSwitch({ read, faults }: Sent, name: string, byDefault: boolean): boolean {
  const text = read(name)
  if (text !== undefined && text !== 'true' && text !== 'false') faults.push(`${name} is "${text}": use true or false`)
  return text === undefined ? byDefault : text === 'true'
}

function readLimits(sent: Sent): CapacityLimits {
  const limits: { -readonly [K in keyof CapacityLimits]: number } = {}
  for (const [name, limit] of capacities) {
    const value = readWhole(sent, name, { from: 1, to: 9_999_999 }, undefined)
    if (value !== undefined) limits[limit] = value
  }
  return limits
}

function readLogLevel(text: string, faults: string[]): LogLevel {
  const level = logLevels.find((each) => each === text.toLowerCase())
  if (level === undefined) faults.push(`LOG_LEVEL is "${text}": use one of ${logLevels.join(', ')}`)
  return level ?? 'info'
}

/** @param explain - why an entry is wrong */
function readList(
  { read, faults }: Sent,
  name: string,
  explain: (entry: string) => string | undefined,
): readonly string[] {
  const entries = listOf(read(name) ?? '')
  for (const entry of entries) {
    const detail = explain(entry)
    if (detail !== undefined) faults.push(`${name} has "${entry}", which is ${detail}`)
  }
  return entries
}

function explainCorsOrigin(text: string): string | undefined {
  return text === '*' ? undefined : given(explainOrigin(text), (detail) => `not an origin: ${detail}`)
}

function explainProxy(text: string): string | undefined {
  return parseIpNetwork(text) ? undefined : 'neither an address nor a network such as 10.0.0.0/8'
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
}
