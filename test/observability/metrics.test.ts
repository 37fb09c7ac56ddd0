import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runWaybill, startWaybill, withoutPackages } from '../support/process.ts'
import { type ExportingService, startExporting } from './exported.ts'

/** Of Debian's package `prometheus`. */
const hasPromtool = spawnSync('promtool', ['--version']).error === undefined

let running: ExportingService

beforeAll(async () => {
  running = await startExporting({ LOG_CALLS: 'failed' })
})
afterAll(() => running?.stop())

async function scrape(): Promise<string> {
  const response = await fetch(running.metricsUrl)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/plain;/)])
  return response.text()
}

/** The value of a sample; undefined where there is none with these labels, in this order. */
async function valueOf(sample: string): Promise<number | undefined> {
  const line = (await scrape()).split('\n').find((each) => each.startsWith(`${sample} `))
  return line === undefined ? undefined : Number(line.slice(sample.length))
}

const get = (path: string, headers: Record<string, string> = { 'x-api-key': running.key }) =>
  fetch(`${running.url}${path}`, { headers })

it('counts calls by method, protocol and code, and errors by reason', async () => {
  const search = 'rpc_method="payments.v1.PaymentSearchService/SearchPayments"'
  const count = (status: string) =>
    valueOf(
      `rpc_server_call_duration_seconds_count{rpc_system_name="http",${search},rpc_response_status_code="${status}",protocol="rest"}`,
    )
  await (await get('/payments')).text()
  await (await get('/payments', { 'x-api-key': 'wb_abcdSecret' })).text()
  await (await get('/payments?status=PAYED')).text()
  expect([await count('OK'), await count('UNAUTHENTICATED'), await count('INVALID_ARGUMENT')]).toEqual([1, 1, 1])
  expect(await valueOf('waybill_errors_total{reason="INVALID_API_KEY",protocol="rest"}')).toBe(1)
  expect(await valueOf('waybill_calls_in_flight{kind="unary"}')).toBe(0)
})

it('counts an open stream until its reader leaves', async () => {
  const leaving = new AbortController()
  const response = await fetch(`${running.url}/v1/payments:watch`, {
    headers: { 'x-api-key': running.key },
    signal: leaving.signal,
  })
  expect(response.status).toBe(200)
  expect(await valueOf('waybill_calls_in_flight{kind="stream"}')).toBe(1)
  leaving.abort()
  await expect.poll(() => valueOf('waybill_calls_in_flight{kind="stream"}')).toBe(0)
  expect(await valueOf('waybill_errors_total{reason="CALL_CANCELLED",protocol="rest"}')).toBe(1)
})

it('measures requests that are no calls apart', async () => {
  await (await get('/readyz')).text()
  await (await get('/nowhere')).text()
  const count = (route: string, status: number) =>
    valueOf(
      `http_server_request_duration_seconds_count{http_request_method="GET",http_route="${route}",http_response_status_code="${status}"}`,
    )
  expect([await count('/readyz', 200), await count('refused', 404)]).toEqual([1, 1])
})

it('counts every method that HTTP does not name as one, and logs the beginning of its name', async () => {
  const session = connect(running.url)
  for (const method of ['M1', 'M2', 'get', 'M'.repeat(20_000)]) {
    const stream = session.request({ ':method': method, ':path': '/nowhere' }).resume()
    await once(stream, 'close')
  }
  session.close()
  const methods = (await scrape()).match(
    /(?<=^http_server_request_duration_seconds_count\{http_request_method=")\w{1,20}/gm,
  )
  expect([...new Set(methods)].toSorted()).toEqual(['GET', '_OTHER'])
  const logged = () => running.log().find(({ httpMethod }) => String(httpMethod).startsWith('MMM'))
  await expect.poll(logged).toMatchObject({ httpMethod: `${'M'.repeat(200)}…` })
})

it('logs of a key in a path its first letters', async () => {
  await (await get(`/nope/${running.key}?key=${running.key}`)).text()
  const logged = () => running.log().find(({ path }) => String(path).startsWith('/nope/'))
  await expect.poll(logged).toMatchObject({ path: `/nope/${running.key.slice(0, 7)}…` })
  expect(JSON.stringify(running.log())).not.toContain(running.key)
})

it('measures how long after its block a payment is stored', async () => {
  const { chain, key, url } = running
  const [payer, payee] = chain.wallets
  const terms = { payee, amount: '10', invoiceCurrency: 'USDC-BASE', paymentCurrency: 'USDC-BASE', network: 'base' }
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const made = await fetch(`${url}/v1/request`, { method: 'POST', headers, body: JSON.stringify(terms) })
  const { paymentReference } = (await made.json()) as { paymentReference: `0x${string}` }
  await chain.fund(chain.tokens.USDC, payer, 10_000_000n)
  const payment = { kind: 'ERC20', token: chain.tokens.USDC.address, to: payee, amount: 10_000_000n } as const
  await chain.pay(payer, { ...payment, paymentReference, feeAmount: 0n, feeAddress: payee })
  await expect.poll(() => valueOf('waybill_payment_found_seconds_count{chain="BASE"}')).toBe(1)
})

it('shows chains, pools, nodes and the process', async () => {
  await expect.poll(() => valueOf('waybill_chain_state{chain="BASE",state="FOLLOWING"}')).toBe(1)
  expect(await valueOf('waybill_chain_state{chain="BASE",state="STOPPED"}')).toBe(0)
  expect(await valueOf('waybill_chain_lag_blocks{chain="BASE"}')).toBe(0)
  expect(await valueOf('db_client_connection_max{db_client_connection_pool_name="primary"}')).toBe(8)
  expect(await valueOf('waybill_slots_waiting{kind="page"}')).toBe(0)
  expect(Math.abs((await valueOf('waybill_clock_offset_seconds')) ?? Number.NaN)).toBeLessThan(1)
  const host = '127.0.0.1'
  const { host: node } = new URL(`http://${running.asked[0]?.host}`)
  expect(await valueOf(`waybill_node_left_alone{chain="BASE",host="${node}"}`)).toBe(0)
  const metrics = await scrape()
  expect(metrics).toMatch(/^waybill_build_info\{release="\d+\.\d+\.\d+",node="v\d+/m)
  expect(metrics).toMatch(/^waybill_node_calls_total\{chain="BASE",host="[^"]+",rpc_method="eth_getLogs"\} [1-9]/m)
  expect(metrics).toMatch(
    new RegExp(
      `^db_client_operation_duration_seconds_count\\{[^}]*="SELECT",server_address="(?:${host}|socket)"\\} [1-9]`,
      'm',
    ),
  )
  for (const name of ['process_open_fds', 'process_max_fds', 'process_resident_memory_bytes']) {
    expect(await valueOf(name)).toBeGreaterThan(0)
  }
  expect(metrics).toContain('nodejs_eventloop_lag_p99_seconds ')
  // The port has no certificate.
  expect(await valueOf('waybill_certificate_days_left')).toBeUndefined()
})

it.skipIf(!hasPromtool)('writes what promtool takes', async () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: await scrape(),
    encoding: 'utf8',
  })
  // Names of the library's own metrics, and of OpenTelemetry's, are not what its lint advises: those are notes, with status 3.
  expect([0, 3], `${stdout}${stderr}`).toContain(status)
})

const example = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')

/** The metrics in expressions of Prometheus: words that are no function, keyword or label. */
function metricsIn(expressions: readonly string[]): Set<string> {
  const bare = expressions.join(' ; ').replace(/\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|group_left) \([^)]*\)/g, ' ')
  return new Set(bare.match(/\b(?:waybill|rpc|http|db|process|nodejs)_\w+/g))
}

it.each(['prometheus/alerts.yml', 'grafana/waybill.json'])('exports each metric of %s', async (path) => {
  const text = example(path)
  const expressions = path.endsWith('.json')
    ? [...text.matchAll(/"expr": (".*")/g)].map(([, quoted = '']) => JSON.parse(quoted) as string)
    : [...text.matchAll(/expr: (.*(?:\n {10,}.*)*)/g)].map(([, expression = '']) => expression)
  const types = [...(await scrape()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  const exported = types.flatMap(([, name, type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_count`] : [name],
  )
  const named = metricsIn(expressions)
  expect(named.size).toBeGreaterThan(10)
  expect([...named].filter((name) => !exported.includes(name))).toEqual([])
})

it('names each alert in the guide', () => {
  const guide = readFileSync(new URL('../../docs/guides/run-in-production.md', import.meta.url), 'utf8')
  const [, table = ''] = guide.split('### Alerts')
  const alerts = [...example('prometheus/alerts.yml').matchAll(/alert: (\w+)/g)].map(([, name = '']) => name)
  expect(alerts.length).toBeGreaterThan(10)
  expect(alerts.filter((name) => !table.includes(`\`${name}\``))).toEqual([])
  expect(example('prometheus/alerts.yml').match(/runbook_url: \S+run-in-production\.md#alerts$/gm)).toHaveLength(
    alerts.length,
  )
})

it.skipIf(!hasPromtool)('has rules that promtool takes', () => {
  const path = new URL('../../deploy/prometheus/prometheus.yml', import.meta.url).pathname
  const { status, stderr } = spawnSync('promtool', ['check', 'config', path], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
})

it('has no other path and method on its port, and no metrics on the public one', async () => {
  expect((await fetch(new URL('/', running.metricsUrl))).status).toBe(404)
  expect((await fetch(running.metricsUrl, { method: 'POST' })).status).toBe(405)
  expect((await get('/metrics')).status).toBe(404)
})

it('logs with LOG_CALLS=failed failed calls alone, with who made them', async () => {
  await (await get('/payments')).text()
  await (await get('/payments', { 'x-api-key': 'wb_abcdSecret' })).text()
  await (await get('/payments?status=PAYED')).text()
  const calls = () => running.log().filter(({ msg, method }) => msg === 'call' && String(method).includes('Search'))
  await expect.poll(() => calls().length).toBeGreaterThan(1)
  expect(calls().map(({ code }) => code)).not.toContain('ok')
  const wrongKey = calls().find(({ reason }) => reason === 'INVALID_API_KEY')
  expect(wrongKey).toMatchObject({ status: 401, key: 'wb_abcd', client: '127.0.0.1' })
  const wrongWord = calls().find(({ code }) => code === 'invalid_argument')
  expect(wrongWord).toMatchObject({ status: 400, account: 'a', key: expect.stringMatching(/^[\da-f-]{36}$/) })
  expect(JSON.stringify(running.log())).not.toMatch(/Secret|wb_\w{10}/)
})

it('logs its start, with release and configuration', () => {
  expect(running.log()[0]).toMatchObject({
    level: 'info',
    msg: 'starting',
    release: expect.any(String),
    configuration: { database: { kind: 'URL' }, loggedCalls: 'FAILED' },
  })
  expect(running.log()).toContainEqual(
    expect.objectContaining({ chain: 'BASE', msg: 'this process follows the chain now' }),
  )
})

describe('without the packages', () => {
  const NODE_OPTIONS = withoutPackages(/^(?:prom-client|@opentelemetry\/)/)
  const settings = { NODE_OPTIONS, CHAINS_FILE: 'none', DATABASE_URL: 'postgres://127.0.0.1:1/none', PORT: '0' }

  it.each([
    [{ METRICS_PORT: '0' }, 'METRICS_PORT needs the package prom-client, which is not installed'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
      /OTEL_EXPORTER_OTLP_ENDPOINT needs the package @opentelemetry\/[\w-]+, which is not installed/,
    ],
  ])('ends a start with %o with exit code 2', async (environment, says) => {
    const { code, stderr } = await runWaybill(['serve'], { ...settings, ...environment })
    expect([code, stderr]).toEqual([2, expect.stringMatching(says)])
  })

  it('serves where neither is asked for', async () => {
    const service = startWaybill(['serve'], { ...settings, DATABASE_URL: running.databaseUrl })
    await service.says(/Waybill on http/)
    service.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0, stderr: expect.stringContaining('"msg":"stopped"') })
  })
})
