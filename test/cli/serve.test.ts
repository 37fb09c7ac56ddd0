import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { joinEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { startTestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { type Ended, runWaybill, startWaybill, type WaybillProcess } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
beforeAll(async () => {
  folder = await makeTempFolder('process')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** The environment for a new data folder. */
const fresh = (name: string) => ({ DATA_DIR: join(folder, name), PORT: '0' })

async function startService(environment: Record<string, string>) {
  const service = startWaybill(['serve'], environment)
  const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
  return { service, url }
}

async function createKey(environment: Record<string, string>): Promise<string> {
  const scopes = 'routes:read,payments:read,requests:read,requests:write'
  const { code, stdout, stderr } = await runWaybill(
    ['keys', 'create', '--account', 'a', '--scopes', scopes],
    environment,
  )
  expect([code, stderr]).toEqual([0, expect.stringContaining('not shown again')])
  return stdout.trim()
}

async function call(url: string, key: string, body?: object) {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const response = await fetch(
    url,
    body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
  )
  return { status: response.status, body: (await response.json()) as Answer }
}

/** The fields of answers that these tests read. */
interface Answer {
  readonly payments: unknown[]
  readonly paymentReference: string
  readonly unavailable: { chain: string }[]
  readonly details: { reason: string }[]
}

function stop(service: WaybillProcess): Promise<Ended> {
  service.kill('SIGTERM')
  return service.ended
}

const requestTerms = {
  payee: '0x5170b840BEf92c8A000B10436Ab2b7d26Cc95D27',
  amount: '10',
  invoiceCurrency: 'USDC-BASE',
  paymentCurrency: 'USDC-BASE',
  network: 'base',
}

/** The faults of a start, which the last line of the log has as JSON. */
function faultsOf(stderr: string): string {
  const { level, faults, msg } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as Record<string, string[]>
  expect([level, msg]).toEqual(['fatal', 'the configuration is wrong'])
  return (faults ?? []).map((fault) => `- ${fault}`).join('\n')
}

/** A chain whose node cannot be reached. */
const deadChain = {
  name: 'BASE',
  chainId: 8453,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what a chains file holds
  rpcUrls: ['${DEAD_NODE}'],
  native: { symbol: 'ETH', pegUsd: '3000' },
  tokens: [{ symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6, pegUsd: '1' }],
  contracts: [
    { kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: '0x1892196e80c4c17ea5100da765ab48c1fe2fb814', fromBlock: 1 },
  ],
}

describe('a wrong configuration ends with exit code 2 and all faults on standard error', () => {
  const cases: [string, Record<string, string>, string[]][] = [
    ['a demo for others to reach', { HOST: '0.0.0.0' }, ['HOST is 0.0.0.0, but the demo listens on loopback only']],
    [
      'a database without chains',
      { DATABASE_URL: 'postgres://u:hush@127.0.0.1:1/db' },
      ['Set CHAINS_FILE to a chains file, or to none', 'unset DATABASE_URL to run the demo'],
    ],
    ['several at once', { PORT: '99999', LOG_LEVEL: 'loud' }, ['- PORT is "99999"', '- LOG_LEVEL is "loud"']],
    [
      'missing files beside other faults',
      {
        PORT: '99999',
        CHAINS_FILE: '/nowhere/chains.json',
        TLS_CERT: '/nowhere/cert.pem',
        TLS_KEY: '/nowhere/key.pem',
      },
      [
        '- PORT is "99999"',
        '- CHAINS_FILE cannot be read: ENOENT',
        '- TLS_CERT cannot be read: ENOENT',
        '- TLS_KEY cannot be read',
      ],
    ],
  ]

  it.each(cases)('%s', async (_, environment, says) => {
    const settings = fresh('never')
    const { code, stdout, stderr } = await runCommand({ ...settings, ...environment }, ['serve'])
    expect([code, stdout]).toEqual([2, ''])
    for (const text of says) expect(faultsOf(stderr)).toContain(text)
    expect(stderr).not.toContain('hush')
    expect(existsSync(settings.DATA_DIR)).toBe(false)
  })

  it.each([
    ['an address of another machine', { HOST: '192.0.2.1' }, 'HOST is 192.0.2.1 and PORT is 0, where this process'],
    [
      'a name that nobody knows',
      { HOST: 'nobody.invalid' },
      'HOST is nobody.invalid and PORT is 0, where this process',
    ],
  ])('%s as HOST', async (_, environment, says) => {
    const database = await createTestDatabase()
    const settings = {
      ...fresh('elsewhere'),
      DATABASE_URL: urlOfDatabase(database),
      CHAINS_FILE: 'none',
      LOG_LEVEL: 'silent',
    }
    const { code, stdout, stderr } = await runCommand({ ...settings, ...environment }, ['serve'])
    await database.drop()
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(says)])
  })

  it('a file as DATA_DIR', async () => {
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    for (const DATA_DIR of [file, join(file, 'below')]) {
      const { code, stderr } = await runCommand({ DATA_DIR, CHAINS_FILE: 'none', LOG_LEVEL: 'silent' }, ['serve'])
      expect([code, stderr]).toEqual([2, expect.stringContaining(`DATA_DIR is ${DATA_DIR}, which cannot be used: `)])
    }
  })

  it('a chains file with several faults', async () => {
    const file = join(folder, 'faulty.json')
    const twice = [
      { ...deadChain, native: {} },
      { ...deadChain, chainId: 'x' },
    ]
    await writeFile(file, JSON.stringify({ chains: twice }))
    const { code, stderr } = await runCommand({ ...fresh('never'), CHAINS_FILE: file }, ['serve'])
    expect(code).toBe(2)
    const faults = faultsOf(stderr)
      .split('\n')
      .filter((line) => line.startsWith(`- CHAINS_FILE ${file}: `))
    expect(faults.length).toBeGreaterThanOrEqual(2)
    expect(faults.join('\n')).toMatch(/native[\s\S]*chainId/)
  })

  it.each([
    [
      'a host that is no address',
      { HOST: '999.1.1.1' },
      '- HOST is "999.1.1.1", which is neither an address nor a name',
    ],
    [
      'a host that this machine lacks',
      { HOST: '192.0.2.1' },
      '- HOST is 192.0.2.1 and METRICS_PORT is 0, where this process cannot listen: ',
    ],
  ])('%s', async (_, environment, says) => {
    const settings = { ...fresh('never-listens'), CHAINS_FILE: 'none', METRICS_PORT: '0', ...environment }
    const { code, stderr } = await runWaybill(['serve'], settings)
    expect([code, faultsOf(stderr)]).toEqual([2, expect.stringContaining(says)])
  })

  it('the folder of a service, for a demo', async () => {
    const settings = fresh('real')
    await mkdir(settings.DATA_DIR)
    await writeFile(join(settings.DATA_DIR, 'use'), 'service\n')
    const { code, stderr } = await runWaybill(['serve'], settings)
    expect([code, faultsOf(stderr)]).toEqual([2, expect.stringContaining('holds the data of a service, not of a demo')])
  })
})

describe('search only', () => {
  const settings = () => ({ ...fresh('alone'), CHAINS_FILE: 'none' })
  let key: string
  let url: string
  let service: WaybillProcess

  // The command comes first and starts the database for itself; the service finds the key.
  beforeAll(async () => {
    key = await createKey(settings())
    ;({ service, url } = await startService(settings()))
  })
  afterAll(() => service?.kill('SIGKILL'))

  it('answers searches, and has no chain', async () => {
    expect(service.stdout()).toContain('no chains, search only')
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    const { status, body } = await call(`${url}/payments`, key)
    expect([status, body.payments]).toEqual([200, []])
    const made = await call(`${url}/v1/request`, key, requestTerms)
    expect([made.status, made.body.details[0]?.reason]).toEqual([400, 'NETWORK_NOT_CONFIGURED'])
  })

  it('has no demo key and no header of the demo, and accepts any host', async () => {
    const { status } = await call(`${url}/payments`, 'demo')
    expect(status).toBe(401)
    const { headers } = await fetch(`${url}/healthz`)
    expect(headers.get('x-waybill-demo')).toBeNull()
  })

  it('ends a second process on the same port with exit code 1 and leaves nothing behind', async () => {
    const taken = { ...fresh('second'), CHAINS_FILE: 'none', PORT: new URL(url).port }
    const { code, stdout, stderr } = await runWaybill(['serve'], taken)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(
      `"reason":"port ${taken.PORT} of 127.0.0.1 is in use; stop the process that listens there, or set PORT: `,
    )
    await expect(joinEmbeddedServer(taken.DATA_DIR)).rejects.toMatchObject({ reason: 'NOT_RUNNING' })
  })

  it('ends with exit code 0 on SIGTERM', async () => {
    expect(await stop(service)).toMatchObject({ code: 0, signal: null })
  })
})

describe('an external database', () => {
  let database: TestDatabase
  let databaseUrl: string

  beforeAll(async () => {
    database = await createTestDatabase()
    databaseUrl = urlOfDatabase(database)
  })
  afterAll(() => database.drop())

  it('is used by the service and by commands, which leave DATA_DIR alone', async () => {
    const settings = { ...fresh('unused'), CHAINS_FILE: 'none', DATABASE_URL: databaseUrl }
    expect(await runWaybill(['migrate'], settings)).toMatchObject({ code: 0, stdout: '' })
    const key = await createKey(settings)
    const { service, url } = await startService(settings)
    expect((await call(`${url}/payments`, key)).status).toBe(200)
    expect(await stop(service)).toMatchObject({ code: 0 })
    expect(existsSync(settings.DATA_DIR)).toBe(false)
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('a second %s ends what is left at once, with a word and exit code %i', async (signal, code) => {
    const { service, url } = await startService({ ...fresh('unused'), CHAINS_FILE: 'none', DATABASE_URL: databaseUrl })
    const { hostname, port } = new URL(url)
    // A request that never ends, after one that is answered, is waited for.
    const call = connect(Number(port), hostname).on('error', () => {})
    const asked = `GET /healthz HTTP/1.1\r\nhost: ${hostname}\r\n`
    call.write(`${asked}\r\n${asked}`)
    await once(call, 'data')
    service.kill(signal)
    await service.says(/stopping: no new calls/, 'stderr')
    service.kill(signal)
    const { stderr, ...ended } = await service.ended
    expect([ended.code, stderr.trim().split('\n').at(-1)]).toEqual([
      code,
      `waybill: ${signal} during the stop: ending what is left by force`,
    ])
    call.destroy()
  })

  it('ends with exit code 0 on SIGTERM while an index is built that waits for a transaction of another', async () => {
    const older = await createTestDatabase({}, { isSharded: false })
    const reader = await older.knex.transaction({ isolationLevel: 'repeatable read' })
    try {
      await older.knex('schema_steps').where({ name: '0002-metadata-by-amount' }).delete()
      await older.knex.raw('drop index payment_metadata_amount')
      await reader('payment_metadata').first()
      const settings = { ...fresh('unused'), CHAINS_FILE: 'none', DATABASE_URL: urlOfDatabase(older) }
      const service = startWaybill(['serve'], settings)
      const waiting = older
        .knex('pg_stat_activity')
        .whereRaw(
          `query like 'create index concurrently %' and wait_event_type = 'Lock' and datname = current_database()`,
        )
      await expect.poll(() => waiting.clone(), { timeout: 20_000 }).toHaveLength(1)
      const ended = await stop(service)
      expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('"msg":"stopped"')])
    } finally {
      await reader.rollback()
      await older.drop()
    }
  })

  it('a process without descriptors says so once a minute, and serves on when it has some again', async () => {
    const { service, url } = await startService({ ...fresh('unused'), CHAINS_FILE: 'none', DATABASE_URL: databaseUrl })
    const { hostname, port } = new URL(url)
    const inUse = readdirSync(`/proc/${service.pid}/fd`).length
    spawnSync('prlimit', ['--pid', `${service.pid}`, `--nofile=${inUse + 20}`])
    const open = (): Socket => connect(Number(port), hostname).on('error', () => {})
    const sockets = Array.from({ length: 40 }, open)
    await service.says(
      /"code":"EMFILE","msg":"no more files may be open: new connections are closed at once"/,
      'stderr',
    )
    await Promise.race(sockets.map((socket) => once(socket.resume(), 'close')))
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => fetch(`${url}/healthz`).then(({ status }) => status, String)).toBe(200)
    const { code, stderr } = await stop(service)
    expect([code, stderr.match(/no more files/g)?.length]).toEqual([0, 1])
  })

  it('that is missing ends the start with exit code 1, without its password in the message', async () => {
    const gone = { ...fresh('unused'), CHAINS_FILE: 'none', DATABASE_URL: 'postgres://u:hush@127.0.0.1:1/db' }
    for (const words of [['serve'], ['keys', 'list']]) {
      const { code, stdout, stderr } = await runCommand(gone, words)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(
        /(?:"reason":"|^waybill keys list: )the database at 127\.0\.0\.1:1\/db cannot be used; see DATABASE_URL: .+\n$/,
      )
      expect(stderr).not.toContain('hush')
    }
  })
})

it('serves chains whose nodes cannot be reached, and answers why routes are missing', async () => {
  const file = join(folder, 'chains.json')
  const bridged = deadChain.tokens.map((token) => ({ ...token, symbol: 'USDC.e', bridged: true }))
  const other = { ...deadChain, name: 'ARBITRUM', chainId: 42161, tokens: bridged }
  await writeFile(file, JSON.stringify({ chains: [deadChain, other] }))
  const closed = await unusedUrl()
  const lifi = { LIFI_URL: closed, LIFI_API_KEY: 'hush-hush' }
  const settings = { ...fresh('dead'), CHAINS_FILE: file, DEAD_NODE: closed, ...lifi }
  const { service, url } = await startService(settings)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  const key = await createKey(settings)
  const made = await call(`${url}/v1/request`, key, requestTerms)
  expect(made.status).toBe(200)
  const routes = await call(
    `${url}/v1/request/${made.body.paymentReference}/routes?wallet=0x7777777777777777777777777777777777777777`,
    key,
  )
  expect(routes.body).toMatchObject({ routes: [], degraded: true })
  expect(routes.body.unavailable[0]).toMatchObject({ chain: 'BASE' })
  expect(routes.body.unavailable).toContainEqual(
    expect.objectContaining({ token: 'USDC.e', provider: 'lifi', reason: 'CROSSCHAIN_BRIDGED_TOKEN' }),
  )
  await service.says(/"chain":"BASE".*the chain does not answer/, 'stderr')
  const ended = await stop(service)
  expect(ended).toMatchObject({ code: 0 })
  expect(ended.stdout + ended.stderr).not.toContain('hush')
})

describe('the command line', () => {
  it('writes its help and that of a command to standard output, and ends with exit code 0', async () => {
    const all = await runWaybill(['--help'], {})
    expect(all).toMatchObject({ code: 0, stderr: '' })
    for (const name of ['serve', 'migrate', 'keys create', 'keys list', 'keys revoke'])
      expect(all.stdout).toContain(name)
    const one = await runCommand({}, ['keys', 'create', '--help'])
    expect(one).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('waybill keys create --account A'),
    })
  })

  it('ends with exit code 2 for words that are not a command', async () => {
    const wrong = [['sevre'], ['keys', 'create', '--account', 'a'], ['keys', 'revoke', '7'], ['serve', 'now']]
    const ends = await Promise.all(wrong.map((words) => runCommand(fresh('never'), words)))
    expect(ends.map(({ code, stdout }) => [code, stdout])).toEqual(wrong.map(() => [2, '']))
  })
})

/** The URL of a port on which nothing listens any more. */
async function unusedUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

it('sends nobody to an address without code, or to a token of other decimals', async () => {
  const chain = await startTestChain({ chainId: 31_599 })
  const nowhere = `0x${'5'.repeat(40)}`
  const config = chain.config({ name: 'BASE' })
  const mistyped = {
    ...config,
    contracts: config.contracts.map((each) =>
      each.kind === 'ETHEREUM_FEE_PROXY' ? { ...each, address: nowhere } : each,
    ),
    tokens: config.tokens.map((each) => (each.symbol === 'DAI' ? { ...each, decimals: 6 } : each)),
  }
  const file = join(folder, 'mistyped.json')
  await writeFile(file, JSON.stringify({ chains: [mistyped] }))
  const settings = { ...fresh('mistyped'), CHAINS_FILE: file }
  const { service, url } = await startService(settings)
  await service.says(/"alarm":"ETHEREUM_FEE_PROXY [\d.]+ is not what the chains file says/, 'stderr')
  const key = await createKey(settings)
  for (const [paymentCurrency, contract] of [
    ['ETH-BASE', 'ETHEREUM_FEE_PROXY'],
    ['DAI-BASE', 'DAI'],
  ]) {
    const terms = { ...requestTerms, invoiceCurrency: paymentCurrency, paymentCurrency, amount: '1' }
    const { body } = await call(`${url}/v1/request`, key, terms)
    const wallet = chain.wallets[0]
    const routes = await call(`${url}/v1/request/${body.paymentReference}/routes?wallet=${wallet}`, key)
    expect(routes.body).toMatchObject({ routes: [], degraded: false })
    expect(routes.body.unavailable[0]).toMatchObject({
      reason: 'CONTRACT_NOT_AS_CONFIGURED',
      message: expect.stringContaining(contract ?? ''),
    })
    const paid = await call(`${url}/v1/request/${body.paymentReference}/pay?wallet=${wallet}`, key)
    expect([paid.status, paid.body.details[0]?.reason]).toEqual([400, 'ROUTE_UNAVAILABLE'])
  }
  expect(await stop(service)).toMatchObject({ code: 0 })
  await chain.stop()
})
