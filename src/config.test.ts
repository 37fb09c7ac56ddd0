import { describe, expect, it } from 'vitest'
import { configHelp, readConfig } from './config.ts'

const configOf = (environment: Record<string, string>) => readConfig(environment, '/srv').config
const faultsOf = (environment: Record<string, string>) => readConfig(environment, '/srv').faults

const OTLP = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

/** What is refused, and what the fault says. */
const BAD: readonly (readonly [environment: Record<string, string>, says: string])[] = [
  [{ HOST: '0.0.0.0' }, 'HOST'],
  [{ HOST: '10.0.0.1' }, 'HOST'],
  [{ PORT: '65536' }, 'PORT'],
  [{ PORT: '-1' }, 'PORT'],
  [{ PORT: '80 ' }, 'PORT'],
  [{ PORT: '8e3' }, 'PORT'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL'],
  [{ LOG_CALLS: 'some' }, 'LOG_CALLS'],
  [{ LOG_CALLS: '1.5' }, 'LOG_CALLS'],
  [{ METRICS_PORT: '70000' }, 'METRICS_PORT'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  [{ ...OTLP, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL'],
  [{ ...OTLP, OTEL_METRIC_EXPORT_INTERVAL: '999' }, 'OTEL_METRIC_EXPORT_INTERVAL'],
  [{ ...OTLP, OTEL_METRIC_EXPORT_INTERVAL: '1e4' }, 'OTEL_METRIC_EXPORT_INTERVAL'],
  [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'collector' }, 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'],
  [{ ...OTLP, OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_METRICS_PROTOCOL'],
  [{ ...OTLP, OTEL_TRACES_SAMPLER: 'sometimes' }, 'OTEL_TRACES_SAMPLER'],
  [{ ...OTLP, OTEL_TRACES_SAMPLER_ARG: '1%' }, 'OTEL_TRACES_SAMPLER_ARG'],
  [{ WEBHOOK_ALLOW_PRIVATE: 'yes' }, 'WEBHOOK_ALLOW_PRIVATE'],
  [{ SHUTDOWN_DELAY_SECONDS: '601' }, 'SHUTDOWN_DELAY_SECONDS'],
  [{ SHUTDOWN_DELAY_SECONDS: '1.5' }, 'SHUTDOWN_DELAY_SECONDS'],
  [{ DEMO_DAYS: '401' }, 'DEMO_DAYS'],
  [{ DEMO_DAYS: '1.5' }, 'DEMO_DAYS'],
  [{ DEMO_DAYS: 'all' }, 'DEMO_DAYS'],
  [{ TLS_CERT: 'cert.pem' }, 'TLS_KEY'],
  [{ TLS_KEY: 'key.pem' }, 'TLS_CERT'],
  [{ CORS_ORIGINS: 'https://a.example/path' }, 'CORS_ORIGINS'],
  [{ TRUSTED_PROXIES: '10.0.0.0/33' }, 'TRUSTED_PROXIES'],
  [{ TRUSTED_PROXIES: '::1/129' }, 'TRUSTED_PROXIES'],
  [{ TRUSTED_PROXIES: '10.0.0.0/8/8' }, 'TRUSTED_PROXIES'],
  [{ TRUSTED_PROXIES: 'proxy.example' }, 'TRUSTED_PROXIES'],
  [{ MAX_CONNECTIONS: '0' }, 'MAX_CONNECTIONS'],
  [{ MAX_CONNECTIONS_PER_ADDRESS: '1e3' }, 'MAX_CONNECTIONS_PER_ADDRESS'],
  [{ MAX_CALLS: '-1' }, 'MAX_CALLS'],
  [{ MAX_STREAMS: '10000000' }, 'MAX_STREAMS'],
  [{ MAX_SEARCHES_PER_KEY: '0' }, 'MAX_SEARCHES_PER_KEY'],
  [{ MAX_SEARCHES_PER_KEY: 'none' }, 'MAX_SEARCHES_PER_KEY'],
  [{ MAX_SUMMARIES_PER_KEY: '1.5' }, 'MAX_SUMMARIES_PER_KEY'],
  [{ DATABASE_URL: 'mysql://x', CHAINS_FILE: 'none' }, 'DATABASE_URL'],
  [{ DATABASE_URL: 'postgres://db/x' }, 'CHAINS_FILE'],
  [{ DATABASE_REPLICA_URLS: 'postgres://db/x' }, 'DATABASE_URL'],
  [{ DATABASE_URL: 'postgres://db/x', CHAINS_FILE: 'none', DATABASE_REPLICA_URLS: 'postgres://a/x,b' }, 'number 2'],
  [{ DATABASE_CONNECTIONS: '3' }, 'DATABASE_CONNECTIONS'],
  [{ DATABASE_CONNECTIONS: '101' }, 'DATABASE_CONNECTIONS'],
  [{ DATABASE_CONNECTIONS: 'many' }, 'DATABASE_CONNECTIONS'],
  [{ DATABASE_PREPARED_STATEMENTS: 'maybe' }, 'DATABASE_PREPARED_STATEMENTS'],
  [{ LIFI_API_KEY: 'k' }, 'LIFI_URL'],
  [{ LIFI_URL: 'li.quest' }, 'LIFI_URL'],
  [{ LIFI_URL: 'http://li.quest' }, 'https://'],
  [{ LIFI_URL: 'https://key@li.quest' }, 'LIFI_API_KEY'],
  [{ LIFI_URL: 'https://li.quest?key=1' }, 'LIFI_API_KEY'],
  [{ LIFI_URL: 'https://li.quest', LIFI_API_KEY: 'two words' }, 'LIFI_API_KEY'],
  [{ LIFI_URL: 'https://li.quest', LIFI_MAX_LOSS_PERCENT: '51' }, 'LIFI_MAX_LOSS_PERCENT'],
  [{ LIFI_URL: 'https://li.quest', LIFI_MAX_LOSS_PERCENT: '1e1' }, 'LIFI_MAX_LOSS_PERCENT'],
  [{ LIFI_URL: 'https://li.quest', LIFI_MAX_LOSS_USD: '-1' }, 'LIFI_MAX_LOSS_USD'],
  [{ LIFI_URL: 'https://li.quest', LIFI_MAX_LOSS_USD: '$8' }, 'LIFI_MAX_LOSS_USD'],
  [{ HOST: '999.1.1.1' }, 'HOST is "999.1.1.1"'],
  [{ HOST: '127.0.0.999' }, 'HOST is "127.0.0.999"'],
  [{ HOST: '127.1' }, 'HOST is "127.1"'],
  [{ HOST: '1.2.3.4.5', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: '[::1', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: '::12345', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: 'http://db', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: 'a b', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: 'under_score', CHAINS_FILE: 'none' }, 'HOST'],
  [{ HOST: '0.0.0.0:80', CHAINS_FILE: 'none' }, 'HOST'],
  [{ CORS_ORIGINS: 'a.example' }, 'CORS_ORIGINS'],
  [{ MAX_STREAMS_PER_KEY: '-5' }, 'MAX_STREAMS_PER_KEY'],
  [{ MAX_STREAMS_PER_ACCOUNT: '0x10' }, 'MAX_STREAMS_PER_ACCOUNT'],
  [{ MIN_EXPORT_ROWS_PER_SECOND: '0' }, 'MIN_EXPORT_ROWS_PER_SECOND'],
  [{ MAX_CALLS: '٣' }, 'MAX_CALLS'],
  [{ DATABASE_URL: 'postgres://db:99999/x', CHAINS_FILE: 'none' }, 'DATABASE_URL'],
  [{ DATABASE_URL: 'db/x', CHAINS_FILE: 'none' }, 'DATABASE_URL'],
]

describe('readConfig', () => {
  it('runs the demo on loopback by default', () => {
    expect(configOf({})).toEqual({
      host: '127.0.0.1',
      port: 8080,
      dataDir: '/srv/data',
      logLevel: 'info',
      corsOrigins: [],
      trustedProxies: [],
      limits: {},
      shutdownDelayMs: 0,
      webhooksAllowPrivate: true,
      database: { kind: 'EMBEDDED' },
      chains: { kind: 'DEMO', days: 180 },
    })
  })

  it('takes an empty value for an absent one', () => {
    expect(configOf({ HOST: '', PORT: '', DATABASE_URL: '', CHAINS_FILE: '' })).toEqual(configOf({}))
  })

  it('reads every variable', () => {
    const environment = {
      HOST: '0.0.0.0',
      PORT: '0',
      DATA_DIR: 'here',
      LOG_LEVEL: 'WARN',
      LOG_CALLS: '0.05',
      METRICS_PORT: '9464',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
      TLS_CERT: 'tls/cert.pem',
      TLS_KEY: '/etc/key.pem',
      CORS_ORIGINS: 'https://a.example, http://localhost:3000',
      TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      SHUTDOWN_DELAY_SECONDS: '7',
      MAX_CONNECTIONS: '20000',
      MAX_CONNECTIONS_PER_ADDRESS: '500',
      MAX_CALLS: '2000',
      MAX_STREAMS: '5000',
      MAX_STREAMS_PER_KEY: '50',
      MAX_STREAMS_PER_ACCOUNT: '60',
      MIN_EXPORT_ROWS_PER_SECOND: '5',
      MAX_SEARCHES_PER_KEY: '3',
      MAX_SUMMARIES_PER_KEY: '2',
      DATABASE_URL: 'postgres://u:p@db/waybill',
      DATABASE_REPLICA_URLS: 'postgres://u:p@one/waybill, postgresql://u:p@two/waybill',
      DATABASE_CONNECTIONS: '20',
      DATABASE_PREPARED_STATEMENTS: 'OFF',
      CHAINS_FILE: 'chains.json',
      DEMO_DAYS: '30',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      LIFI_URL: 'https://li.quest/v1/',
      LIFI_API_KEY: 'key-1',
      LIFI_MAX_LOSS_PERCENT: '2.55',
      LIFI_MAX_LOSS_USD: '4.50',
    }
    expect(configOf(environment)).toEqual({
      host: '0.0.0.0',
      port: 0,
      dataDir: '/srv/here',
      logLevel: 'warn',
      loggedCalls: 0.05,
      metricsPort: 9464,
      pushMetricsEveryMs: 60_000,
      traces: { ratio: 0.01, isParentBased: true },
      databaseConnections: 20,
      tls: { certPath: '/srv/tls/cert.pem', keyPath: '/etc/key.pem' },
      corsOrigins: ['https://a.example', 'http://localhost:3000'],
      trustedProxies: ['10.0.0.0/8', '::1'],
      limits: {
        maxConnections: 20_000,
        maxConnectionsPerAddress: 500,
        maxCalls: 2_000,
        maxOpenStreams: 5_000,
        maxStreamsPerKey: 50,
        maxStreamsPerAccount: 60,
        minRowsPerSecond: 5,
        maxSearchesPerKey: 3,
        maxSummariesPerKey: 2,
      },
      shutdownDelayMs: 7_000,
      database: {
        kind: 'URL',
        url: 'postgres://u:p@db/waybill',
        replicaUrls: ['postgres://u:p@one/waybill', 'postgresql://u:p@two/waybill'],
        maxPrepared: 0,
      },
      chains: { kind: 'FILE', path: '/srv/chains.json' },
      webhooksAllowPrivate: true,
      lifi: {
        url: 'https://li.quest',
        apiKey: 'key-1',
        lossCap: { bps: 255, usd: { units: 45n, places: 1 } },
      },
    })
    expect(configHelp.map(([name]) => name).toSorted()).toEqual(Object.keys(environment).toSorted())
  })

  it('lets calls go on for five seconds after SIGTERM, except in the demo', () => {
    expect([configOf({}), configOf({ CHAINS_FILE: 'none' })].map(({ shutdownDelayMs }) => shutdownDelayMs)).toEqual([
      0, 5_000,
    ])
  })

  it.each(BAD)('refuses %o', (environment, name) => {
    const faults = faultsOf(environment)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(name)
  })

  it.each([
    [{}, undefined],
    [OTLP, { ratio: 1, isParentBased: true }],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }, { ratio: 1, isParentBased: true }],
    [
      { ...OTLP, OTEL_TRACES_SAMPLER: 'always_off' },
      { ratio: 0, isParentBased: false },
    ],
    [{ ...OTLP, OTEL_SDK_DISABLED: 'true' }, undefined],
    [{ ...OTLP, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  ])('traces with %o: %o', (environment, traces) => {
    expect(configOf(environment).traces).toEqual(traces)
  })

  it.each([
    [{}, undefined],
    [{ METRICS_PORT: '0' }, undefined],
    [OTLP, 60_000],
    [{ ...OTLP, OTEL_METRIC_EXPORT_INTERVAL: '5000', OTEL_METRICS_EXPORTER: 'console,otlp' }, 5_000],
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://collector/v1/metrics' }, 60_000],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }, undefined],
    [{ ...OTLP, OTEL_SDK_DISABLED: 'true' }, undefined],
    [{ ...OTLP, OTEL_METRICS_EXPORTER: 'prometheus' }, undefined],
  ])('sends metrics with %o every %s milliseconds', (environment, everyMs) => {
    expect(configOf(environment).pushMetricsEveryMs).toBe(everyMs)
  })

  it.each([
    ['all', 1],
    ['FAILED', 'FAILED'],
    ['none', 'NONE'],
    ['0', 0],
  ])('logs calls with LOG_CALLS=%s: %s', (text, loggedCalls) => {
    expect(configOf({ LOG_CALLS: text }).loggedCalls).toBe(loggedCalls)
  })

  it('refuses something of every variable that is no file', () => {
    const files = ['DATA_DIR', 'CHAINS_FILE']
    const refused = BAD.flatMap(([environment]) => Object.keys(environment))
    expect(configHelp.map(([name]) => name).filter((name) => !refused.includes(name) && !files.includes(name))).toEqual(
      [],
    )
  })

  it.each(['localhost', 'waybill-1.internal', '0.0.0.0', '::', '[::]', 'fe80::1%eth0'])('takes the host %s', (HOST) => {
    expect(faultsOf({ HOST, CHAINS_FILE: 'none' })).toEqual([])
  })

  it('reports all faults at once, and no password', () => {
    const DATABASE_REPLICA_URLS = 'http://u:secret@a,http://u:secret@b'
    const bad = {
      PORT: 'x',
      LOG_LEVEL: 'y',
      MAX_CALLS: 'z',
      DATABASE_URL: 'http://u:secret@db',
      DATABASE_REPLICA_URLS,
      LIFI_URL: 'https://u:secret@li.quest',
      LIFI_API_KEY: 'se cret',
    }
    const faults = faultsOf(bad)
    expect(faults).toHaveLength(9)
    expect(faults.join()).not.toMatch(/se ?cret/)
  })
})
