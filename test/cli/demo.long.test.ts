import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { DemoFile } from '../../demo/demo-file.ts'
import { PATIENCE } from '../support/patience.ts'
import {
  type Descendant,
  descendantsOf,
  type Ended,
  isAlive,
  runWaybill,
  startWaybill,
  type WaybillProcess,
} from '../support/process.ts'
import { type CommandOutcome, runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { payAsPage, sendRevertingBatch, type TriedPayment } from './try-demo-wallets.ts'

/** One data folder for all starts of this file: each describe starts the demo and ends it. */
let folder: string
let dataDir: string
let demo: WaybillProcess
let url: string

const environment = () => ({ DATA_DIR: dataDir, PORT: '0' })

/** Runs a command in this process, which saves the second that a process of its own takes to start. */
const runHere = (...words: string[]) => runCommand(environment(), words)

beforeAll(async () => {
  folder = await makeTempFolder('process')
  dataDir = join(folder, 'data')
})
afterAll(async () => {
  demo?.kill('SIGKILL')
  await demo?.ended
  await allGone(started)
  await rm(folder, { recursive: true, force: true })
})

let started: Descendant[] = []

async function startDemo(): Promise<void> {
  demo = startWaybill(['serve'], environment())
  url = (await demo.says(/Waybill demo on (http:\S+):/))[1] ?? ''
  await demo.says(/Ctrl-C/)
  started = descendantsOf(demo.pid)
}

function allGone(processes: readonly Descendant[]): Promise<void> {
  return vi.waitFor(() => expect(processes.filter(isAlive)).toEqual([]), { timeout: 10_000, interval: 20 })
}

async function get(path: string, headers: Record<string, string> = { 'x-api-key': 'demo' }) {
  const response = await fetch(url + path, { headers })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer }
}

/** Of nobody in the demo. */
const PAYEE = '0x00000000000000000000000000000000000b0be5'

async function post(path: string, body: object) {
  const headers = { 'x-api-key': 'demo', 'content-type': 'application/json' }
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return (await response.json()) as { paymentReference: string; txHashes: readonly string[] }
}

/** The fields of answers that these tests read. */
interface Answer {
  readonly routes: { id: string; readiness: { hasEnoughGas: boolean }; warnings: { reason: string }[] }[]
  readonly unavailable: { reason: string }[]
  readonly warnings: { reason: string }[]
  readonly payments: {
    id: string
    timestamp: string
    reference: string
    txHash: string
    eventIndex: number
    network: string
    status: string
    amount: string
  }[]
  readonly pagination: { nextCursor?: string; total?: number }
  readonly status: string
  readonly cancelledAt?: string
  readonly expiresAt?: string
  readonly paidAmount: string
  readonly details: { reason: string }[]
  readonly requests: unknown[]
  readonly chains: { nodes: { calls: { method: string; calls: number; errors: number }[] }[] }[]
}

async function demoFile(): Promise<DemoFile> {
  return JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')) as DemoFile
}

/**
 * The payments on the chains that no longer change, oldest first. Leaves out the partially paid request, the rest of which is paid below: its
 * first payment becomes CONFIRMED then.
 */
async function settledPayments(untilTime: string) {
  const found: Answer['payments'] = []
  let cursor: string | undefined
  do {
    const query = `status=CONFIRMED&toDate=${untilTime}&sortOrder=asc&limit=100`
    const { body } = await get(`/payments?${cursor === undefined ? query : `cursor=${cursor}`}`)
    const settled = body.payments.filter(({ reference }) => !/^(demo-partially-paid$|INV-)/.test(reference))
    found.push(...settled.map((payment) => ({ ...payment, confirmations: undefined })))
    cursor = body.pagination.nextCursor
  } while (cursor !== undefined)
  return found
}

/** The first of the requests that wait to be paid. */
async function toPay(): Promise<DemoFile['requests'][number]> {
  const found = (await demoFile()).requests.find(({ kind }) => kind === 'token')
  if (found === undefined) throw new Error('demo.json has no request to pay')
  return found
}

/** The reference of a request to pay that was cancelled, and that of the one in its place. */
let cancelled: string
let replacement: string
/** The hash of a deposit into the bridge that was made just before the demo was killed. */
let deposited: string
let history: Answer['payments']
let historyEnds: string

describe('a first start', () => {
  /** A second demo and a service on the same folder. Started early, because they wait for a predecessor that may be ending. */
  let rivals: Promise<Ended>[]

  beforeAll(async () => {
    await startDemo()
    rivals = [runWaybill(['serve'], environment()), runWaybill(['serve'], { ...environment(), CHAINS_FILE: 'none' })]
  })

  it('prints a console and a checkout page, whose request is open and whose wallets are there', async () => {
    const { payUrl, requests, wallets, publishableKey } = await demoFile()
    expect(demo.stdout()).toContain(`Console   ${url}/console`)
    expect(demo.stdout()).toContain(`Pay       ${payUrl}`)
    const [toPay] = requests.filter(({ kind }) => kind !== undefined)
    expect(payUrl).toBe(`${url}/pay/${toPay?.paymentReference}?key=${publishableKey}`)
    expect((await get(`/v1/request/${toPay?.paymentReference}`)).body.status).toBe('OPEN')
    const pages = await Promise.all([payUrl, `${url}/console`].map((page) => fetch(page)))
    expect(pages.map(({ status }) => status)).toEqual([200, 200])
    expect(await pages[1]?.text()).toContain('<meta name="waybill-key" content="demo">')
    const offered = (await get('/demo/wallets')).body as unknown as { name: string; address: string }[]
    expect(offered.map(({ name }) => name)).toEqual(Object.keys(wallets))
  })

  const stateOf = ({ status, cancelledAt, expiresAt }: Answer) => {
    if (cancelledAt !== undefined) return 'CANCELLED'
    return expiresAt !== undefined && Date.parse(expiresAt) < Date.now() ? 'EXPIRED' : status
  }

  const askWallet = async (body: unknown, headers: Record<string, string> = { origin: url }, name = 'direct') => {
    const init = { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) }
    const answer = await fetch(`${url}/demo/wallets/${name}`, init)
    return {
      status: answer.status,
      ...((await answer.json()) as { result?: unknown; error?: { code: number } } & Partial<Answer>),
    }
  }

  it('lets pages of its own alone use its wallets', async () => {
    const call = { method: 'eth_chainId' }
    expect(await askWallet(call)).toEqual({ status: 200, result: '0x1de2a29' })
    expect(await askWallet(call, { origin: url, 'sec-fetch-site': 'same-origin' })).toMatchObject({ status: 200 })
    for (const headers of [
      {},
      { origin: 'null' },
      { origin: 'http://evil.example' },
      { origin: `${url}0` },
      { origin: url, 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      const refused = await askWallet(call, headers)
      expect([headers, refused.status, refused.details?.[0]?.reason]).toEqual([headers, 403, 'NOT_OWN_PAGE'])
    }
    const preflight = await fetch(`${url}/demo/wallets/direct`, {
      method: 'OPTIONS',
      headers: { origin: 'http://evil.example', 'access-control-request-method': 'POST' },
    })
    expect(preflight.status).toBe(403)
    expect((await askWallet(call, { origin: url }, 'nobody')).status).toBe(404)
  })

  it.each([
    ['large', 'x'.repeat(70_000), 413, 'BODY_TOO_LARGE'],
    ['deep', `{"method":"eth_call","params":${'['.repeat(101)}`, 400, 'BODY_TOO_COMPLEX'],
    ['complex', JSON.stringify({ method: 'eth_call', params: Array(10_001).fill(0) }), 400, 'BODY_TOO_COMPLEX'],
    ['broken', '{', 400, 'MALFORMED_BODY'],
  ])('refuses the %s body of a call as the API does', async (_, body, status, reason) => {
    expect(await askWallet(body)).toMatchObject({ status, details: [{ reason }] })
  })

  it.each([
    ['no body', '', -32_600],
    ['no method', { params: [] }, -32_600],
    ['params that are no list', { method: 'eth_call', params: {} }, -32_600],
    ['a chain that is no number', { method: 'eth_chainId', chainId: '1' }, -32_600],
    ['an unknown chain', { method: 'eth_chainId', chainId: '0x1' }, 4902],
    ['a change to an unknown chain', { method: 'wallet_switchEthereumChain', params: [{ chainId: '0x1' }] }, 4902],
    ['a change to nothing', { method: 'wallet_switchEthereumChain' }, -32_602],
    ['a signature of a message', { method: 'personal_sign', params: ['0x00', '0x00'] }, 4200],
    ['a method of the node', { method: 'anvil_setBalance', params: ['0x00', '0x1'] }, 4200],
    [
      'a transaction of another',
      {
        method: 'eth_sendTransaction',
        params: [{ from: `0x${'1'.repeat(40)}`, to: `0x${'1'.repeat(40)}`, data: '0x' }],
      },
      4100,
    ],
    ['a transaction without data', { method: 'eth_sendTransaction', params: [{ from: '0x1', to: '0x1' }] }, -32_602],
    [
      'a transaction with a nonce',
      { method: 'eth_sendTransaction', params: [{ from: '0x1', to: '0x1', data: '0x', nonce: '0x0' }] },
      -32_602,
    ],
    [
      'the status of a batch that it never sent',
      { method: 'wallet_getCallsStatus', params: [`0x1de2a29:0x${'1'.repeat(64)}`] },
      5730,
      'batching',
    ],
  ])('answers %s with the code of EIP-1193', async (_, body, code, name = 'direct') => {
    expect(await askWallet(body, { origin: url }, name)).toMatchObject({ status: 200, error: { code } })
  })

  /** Jumps to itself, as creation code. */
  const ENDLESS = '0x5b600056'

  it.each([
    ['a read', 'eth_call', [{ data: ENDLESS }], 'direct'],
    ['a read with more gas than a block', 'eth_call', [{ data: ENDLESS, gas: '0x7fffffffffffffff' }], 'direct'],
    ['an estimate', 'eth_estimateGas', [{ data: ENDLESS }, 'latest'], 'direct'],
  ])(
    'ends code without end that a page has a node run by %s, and its chain goes on',
    async (_, method, params, name) => {
      const startMs = performance.now()
      for (let n = 0; n < 20; n++)
        expect((await askWallet({ method, params }, { origin: url }, name)).error).toMatchObject({
          code: expect.any(Number),
        })
      const head = async () => (await askWallet({ method: 'eth_blockNumber' }, { origin: url })).result
      const before = await head()
      // A block comes after ten seconds at the latest.
      await vi.waitFor(async () => expect(await head()).not.toBe(before), { timeout: 15_000, interval: 200 })
      expect(performance.now() - startMs).toBeLessThan(25_000)
    },
  )

  it('prints three curl lines that work', async () => {
    const lines = demo
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('  curl '))
    expect(lines).toHaveLength(3)
    const answers = []
    for (const line of lines) {
      const [, name = '', value = '', target = ''] = /^ {2}curl -s -H '([^:]+): ([^']+)' '([^']+)'$/.exec(line) ?? []
      const response = await fetch(target, { headers: { [name]: value } })
      expect([line, response.status]).toEqual([line, 200])
      answers.push((await response.json()) as Answer)
    }
    expect(answers[0]?.routes[0]?.id).toBe('REQUEST_NETWORK_PAYMENT')
    expect(answers[1]?.payments).toHaveLength(5)
    expect(answers[2]?.payments).toHaveLength(5)
    expect(answers[2]?.pagination.total).toBeGreaterThan(5)
  })

  it('writes demo.json', async () => {
    const file = await demoFile()
    expect(file).toMatchObject({ baseUrl: url, apiKey: 'demo' })
    expect(file.chains).toHaveLength(4)
    for (const { name, rpcUrl, chainId } of file.chains) {
      const kept = await readFile(join(dataDir, 'chains', name, 'port'), 'utf8')
      expect(rpcUrl).toBe(`http://127.0.0.1:${kept}`)
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] })
      const response = await fetch(rpcUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
      expect(Number(((await response.json()) as { result: string }).result)).toBe(chainId)
    }
    expect(Object.keys(file.wallets).length).toBeGreaterThanOrEqual(5)
  })

  it('describes itself to people and programs without a key', async () => {
    const description = await get('/openapi.json', {})
    expect(description.body).toMatchObject({ openapi: '3.1.1', info: { title: 'Waybill' } })
    expect(description.headers.get('access-control-allow-origin')).toBe('*')
    const page = await fetch(`${url}/docs/api/routes`)
    expect(await page.text()).toContain('id="getPaymentRoutes"')
  })

  it('has nodes and a bridge that refuse web pages', async () => {
    const file = await demoFile()
    const ask = async (target: string, headers: OutgoingHttpHeaders) => {
      const call = request(target, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
      call.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }))
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      answer.resume()
      const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))
      return [answer.statusCode, cors]
    }
    const targets = [...file.chains.map(({ rpcUrl }) => rpcUrl), `${file.bridgeUrl}/v1/quote/contractCalls`]
    expect(targets).toHaveLength(5)
    for (const target of targets) {
      expect(await ask(target, { host: 'evil.example' })).toEqual([403, []])
      expect(await ask(target, { origin: 'https://evil.example' })).toEqual([403, []])
      expect(await ask(target, { 'content-type': 'text/plain' })).toEqual([415, []])
      // The bridge accepts the caller, but the body is not a quote request.
      expect(await ask(target, {})).toEqual([target.startsWith(file.bridgeUrl) ? 404 : 200, []])
    }
  })

  it('has requests in the states that demo.json describes', async () => {
    const { requests } = await demoFile()
    const states: Record<string, string> = {
      Open: 'OPEN',
      Partially: 'PARTIALLY_PAID',
      Paid: 'PAID',
      Overpaid: 'PAID',
      Expired: 'EXPIRED',
      Cancelled: 'CANCELLED',
      To: 'OPEN',
    }
    const kinds = new Set<string>()
    for (const { paymentReference, says } of requests) {
      const kind = /^[\w-]+/.exec(says)?.[0] ?? ''
      kinds.add(kind)
      const { body } = await get(`/v1/request/${paymentReference}`)
      expect([says, stateOf(body)]).toEqual([says, states[kind]])
    }
    expect([...kinds].toSorted()).toEqual(Object.keys(states).toSorted())
  })

  it('lets the first request to pay be cancelled', async () => {
    cancelled = (await toPay()).paymentReference
    const init = { method: 'POST', headers: { 'x-api-key': 'demo' } }
    expect((await fetch(`${url}/v1/request/${cancelled}:cancel`, init)).status).toBe(200)
  })

  it('has wallets with the routes that demo.json describes', async () => {
    const { wallets, requests } = await demoFile()
    const open = requests.find(({ says }) => says === 'Open: 150 USDC on ETHEREUM.')
    const outcomes: Record<string, unknown> = {}
    for (const [name, { address }] of Object.entries(wallets)) {
      const { body } = await get(`/v1/request/${open?.paymentReference}/routes?wallet=${address}`)
      outcomes[name] = body.routes.map(({ id, readiness }) => [id, readiness.hasEnoughGas])
      expect(body.unavailable.every(({ reason }) => reason !== '')).toBe(true)
    }
    expect(outcomes).toMatchObject({
      direct: expect.arrayContaining([
        ['REQUEST_NETWORK_PAYMENT', true],
        ['ETHEREUM_ETHEREUM_DAI_USDC', true],
        ['ETHEREUM_ETHEREUM_USDT_USDC', true],
        ['BSC_ETHEREUM_DAI_USDC', true],
      ]),
      otherToken: [['ETHEREUM_ETHEREUM_DAI_USDC', true]],
      shallowPool: [['ETHEREUM_ETHEREUM_USDT_USDC', true]],
      otherChain: expect.arrayContaining([['ARBITRUM_ETHEREUM_USDC_USDC', true]]),
      coinsOnly: expect.arrayContaining([['BSC_ETHEREUM_BNB_USDC', true]]),
      noGas: expect.arrayContaining([
        ['REQUEST_NETWORK_PAYMENT', false],
        ['ARBITRUM_ETHEREUM_USDC_USDC', false],
      ]),
      empty: [],
    })
  })

  it('has a request in US dollars that a wallet can pay in tokens', async () => {
    const { wallets, requests } = await demoFile()
    const fiat = requests.find(({ says }) => says.startsWith('Open: 500 US dollars'))
    const { body } = await get(`/v1/request/${fiat?.paymentReference}/routes?wallet=${wallets.direct?.address}`)
    expect(body.routes.map(({ id, readiness }) => [id, readiness.hasEnoughGas])).toContainEqual([
      'REQUEST_NETWORK_PAYMENT',
      true,
    ])
  })

  it('marks every answer with the header of the demo', async () => {
    for (const path of ['/payments?limit=1', '/payments?colour=red', '/nowhere', '/healthz']) {
      const response = await fetch(url + path, { headers: { 'x-api-key': 'demo' } })
      expect([path, response.headers.get('x-waybill-demo')]).toEqual([path, 'true'])
      await response.body?.cancel()
    }
  })

  it.each([['evil.example'], ['evil.example:8080'], ['127.0.0.1.evil.example']])(
    'refuses the host %s',
    async (host) => {
      const answer = await withHost(host)
      expect(answer.statusCode).toBe(403)
      expect(await text(answer)).toContain('HOST_NOT_ALLOWED')
    },
  )

  it('never stores its own key', async () => {
    const { code, stdout } = await runHere('keys', 'list')
    expect([code, stdout]).toEqual([0, ''])
  })

  it('shares its database with keys commands; a revoked key is refused within five seconds', async () => {
    const create = ['keys', 'create', '--account', 'shop', '--scopes', 'payments:read,requests:read']
    const created = await runWaybill(create, environment())
    expect(created.code).toBe(0)
    expect(created.stdout).toMatch(/^wb_[0-9A-Za-z]{40}\n$/)
    const key = { 'x-api-key': created.stdout.trim() }
    expect((await get('/payments', key)).body.payments).toEqual([])

    const listed = await runHere('keys', 'list')
    const [id = '', account, hint] = listed.stdout.split('\t')
    expect([account, listed.stdout.trim().split('\n').length]).toEqual(['shop', 1])
    expect(created.stdout).toMatch(new RegExp(`^${hint?.slice(0, -1)}`))
    expect(listed.stdout).not.toContain(created.stdout.trim())

    expect(await runWaybill(['keys', 'revoke', id], environment())).toMatchObject({ code: 0, stdout: '' })
    const revokedAtMs = performance.now()
    let lastServedAtMs = revokedAtMs
    await vi.waitFor(async () => {
      const beganAtMs = performance.now()
      const { status } = await get('/payments', key)
      if (status === 200) lastServedAtMs = beganAtMs
      expect(status).toBe(401)
    }, PATIENCE)
    expect(lastServedAtMs - revokedAtMs).toBeLessThan(5_000)
    expect((await runHere('keys', 'revoke', id)).code).toBe(1)
    expect((await runHere('keys', 'list', '--account', 'shop')).stdout).toMatch(/\trevoked 20/)
  })

  it('refuses a second demo and a service on its folder', async () => {
    const [second, other] = await Promise.all(rivals)
    expect(second).toMatchObject({ code: 1, stdout: '' })
    const says = `The process with pid ${demo.pid} runs the database in ${dataDir}/pg, and a folder has one server only.`
    expect(second?.stderr).toContain(says)
    expect(other).toMatchObject({ code: 2, stdout: '' })
    expect(other?.stderr).toContain(`DATA_DIR is ${dataDir}, which holds the data of a demo.`)
  })

  it('has nodes that refuse no call, although the service reads prices at old blocks', async () => {
    await vi.waitFor(async () => {
      const { chains } = (await get('/v1/chains')).body
      const calls = chains.map(({ nodes }) => nodes.flatMap((node) => node.calls))
      expect(calls.map((ofChain) => ofChain.some(({ method }) => method === 'eth_call'))).toEqual(Array(4).fill(true))
      expect(calls.flat().filter(({ errors }) => errors > 0)).toEqual([])
    }, PATIENCE)
  })

  describe('with its commands', () => {
    let swapped: Ended
    let converted: CommandOutcome
    let carried: CommandOutcome
    let refunded: CommandOutcome
    let paid: TriedPayment[]
    let reverted: Awaited<ReturnType<typeof sendRevertingBatch>>
    let fiat: string
    beforeAll(async () => {
      const { requests } = await demoFile()
      const [fiatRequest, partPaidRequest] = ['Open: 500 US', 'Partially paid: 120 of 300'].map((words) =>
        requests.find(({ says }) => says.startsWith(words)),
      )
      fiat = fiatRequest?.paymentReference ?? ''
      const partPaid = partPaidRequest?.paymentReference ?? ''
      const pay = ['demo', 'pay']
      const file = await demoFile()
      ;[swapped, converted, carried, refunded, paid, reverted] = await Promise.all([
        runWaybill([...pay, '--wallet', 'otherToken', '--route', 'ETHEREUM_ETHEREUM_DAI_USDC'], environment()),
        runHere(...pay, '--wallet', 'direct', '--route', 'REQUEST_NETWORK_PAYMENT', '--request', fiat),
        runHere(...pay, '--wallet', 'direct', '--route', 'POLYGON_ARBITRUM_DAI_USDC', '--request', partPaid),
        runHere('demo', 'refund'),
        Promise.all(['direct', 'batching'].map((name) => payAsPage(file, name))),
        sendRevertingBatch(file),
      ])
    })

    it('refund a payment from the payee, and search returns it as REFUNDED', async () => {
      expect([refunded.code, refunded.stderr]).toEqual([0, ''])
      const id = lineOf(refunded, 'found')[1]?.replace('payment ', '')
      const hash = columnsOf(refunded).findLast(([first]) => first === 'sent')?.[1]
      const { body } = await get(`/v1/payments/${id}`)
      expect(body).toMatchObject({ status: 'REFUNDED', refundedAmount: '5', refunds: [{ amount: '5', txHash: hash }] })
      expect(lineOf(refunded, 'refunded')).toEqual(['refunded', `GET /v1/payments/${id}`, 'REFUNDED'])
    })

    it('pay with `pay` of the client in a page: step by step, and as one where the wallet makes batches', () => {
      expect(paid).toEqual([
        {
          outcome: 'MINED',
          progress: ['QUOTED', 'ASKING', 'SENT', 'STEP_MINED', 'ASKING', 'SENT', 'STEP_MINED'],
          transactions: 2,
        },
        { outcome: 'MINED', progress: ['QUOTED', 'ASKING_BATCH', 'BATCH_SENT'], transactions: 1 },
      ])
    })

    it('carry out a batch whose second call reverts not at all', () => {
      expect(reverted).toEqual({ status: 500, receipts: ['0x0'], moved: 0n })
    })

    const columnsOf = ({ stdout }: Pick<CommandOutcome, 'stdout'>) => stdout.split('\n').map((line) => line.split('\t'))
    const lineOf = (ended: Pick<CommandOutcome, 'stdout'>, subject: string) =>
      columnsOf(ended).find(([first]) => first === subject) ?? []

    const paymentOf = async (ended: Pick<CommandOutcome, 'stdout'>) =>
      (await get(`/v1/payments/${lineOf(ended, 'found')[1]?.replace('payment ', '')}`)).body

    it('pay by a swap, and search returns the payment with the wallet as payer', async () => {
      expect([swapped.code, swapped.stderr]).toEqual([0, ''])
      expect(columnsOf(swapped).map(([first]) => first)).toEqual(['request', 'sent', 'sent', 'found', ''])
      const payer = (await demoFile()).wallets.otherToken?.address
      expect(await paymentOf(swapped)).toMatchObject({ amount: '150', payer })
    })

    it('pay over the bridge, and search returns the delivered payment', async () => {
      expect([carried.code, carried.stderr]).toEqual([0, ''])
      const payer = (await demoFile()).wallets.direct?.address
      const sourceTxHash = columnsOf(carried).findLast(([first]) => first === 'sent')?.[1]
      const source = { type: 'CROSSCHAIN', sourceNetwork: 'POLYGON', sourceTxHash, payer }
      expect(await paymentOf(carried)).toMatchObject({ amount: '180', network: 'ARBITRUM', ...source })
    })

    it('pay a request in US dollars', async () => {
      expect([converted.code, converted.stderr]).toEqual([0, ''])
      expect(lineOf(converted, 'found')).toContain('CONVERSION')
      expect((await get(`/v1/request/${fiat}`)).body).toMatchObject({ outstandingAmount: '0' })
    })

    it('print the error of the node', async () => {
      const ended = await runHere('demo', 'pay', '--wallet', 'noGas', '--route', 'REQUEST_NETWORK_PAYMENT')
      expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('Insufficient funds')])
    })

    it('fund an address on every chain, with gas or without', async () => {
      const own = `0x${'f00d'.repeat(10)}`
      const { requests, chains } = await demoFile()
      const direct = async () => {
        const { body } = await get(`/v1/request/${requests[0]?.paymentReference}/routes?wallet=${own}`)
        return body.routes.find(({ id }) => id === 'REQUEST_NETWORK_PAYMENT')
      }
      const funded = await runHere('demo', 'fund', own)
      expect([funded.code, funded.stderr]).toEqual([0, ''])
      expect(columnsOf({ stdout: funded.stdout.trim() }).map(([name, , rpcUrl]) => [name, rpcUrl])).toEqual(
        chains.map(({ name, rpcUrl }) => [name, rpcUrl]),
      )
      expect(lineOf(funded, 'ETHEREUM').slice(3)).toEqual(['10 ETH', '10000 USDC', '10000 USDT', '10000 DAI'])
      expect((await direct())?.readiness.hasEnoughGas).toBe(true)
      const without = await runHere('demo', 'fund', own, '--coins', '0')
      expect(lineOf(without, 'ETHEREUM').slice(3)).toEqual(['0 ETH', '20000 USDC', '20000 USDT', '20000 DAI'])
      expect((await direct())?.readiness.hasEnoughGas).toBe(false)
    })

    it.each([
      ['pay --wallet nobody --route X', 1, /"nobody".*the demo has direct, batching/],
      ['pay --wallet direct --route X', 1, /has no route X; use one of: REQUEST_NETWORK_PAYMENT, ETHEREUM_/],
      ['pay --wallet direct', 2, /--route is missing/],
      ['refund --payment 12', 1, /"12" is not a payment id/],
      ['refund --payment 7e000000-0000-4000-8000-00000000cccc', 1, /there is no payment 7e000000/],
      ['refund --request 12', 2, /Unknown option '--request'/],
      ['fund 0x12', 2, /"0x12" is not an address/],
      [`fund 0x${'Ab'.repeat(20)}`, 2, /"0xAb.*" is not an address of the demo's chains: its EIP-55 checksum is wrong/],
      [`fund 0x${'1'.repeat(40)} --coins 0.5`, 2, /--coins is "0\.5"/],
    ])('refuse `demo %s`', async (words, code, says) => {
      const ended = await runHere('demo', ...words.split(' '))
      expect([ended.code, ended.stdout]).toEqual([code, ''])
      expect(ended.stderr).toMatch(says)
    })
  })

  it('has another request to pay in place of the cancelled one', async () => {
    await vi.waitFor(async () => expect((await toPay()).paymentReference).not.toBe(cancelled), PATIENCE)
    replacement = (await toPay()).paymentReference
    expect((await demoFile()).payUrl).toContain(`/pay/${replacement}?`)
    expect((await get(`/v1/request/${replacement}`)).body).toMatchObject({ status: 'OPEN' })
  })

  it('provides the chains of commands when there is no chains file', async () => {
    const [listed, verified] = await Promise.all([
      runWaybill(['unmatched', 'list', '--reason', 'WRONG_PAYEE'], environment()),
      runWaybill(['verify', '--chain', 'mainnet', '--account', 'demo'], environment()),
    ])
    expect([verified.code, verified.stdout]).toEqual([0, ''])
    expect(verified.stderr).toMatch(/^ETHEREUM blocks .* of account demo, receipts of/m)
    const [, chain = '', tx = '', event = ''] = listed.stdout.split('\t')
    const which = ['--chain', chain, '--tx', tx, '--event', event, '--account', 'demo', '--reason', 'a try']
    const accepted = await runWaybill(['unmatched', 'accept', ...which, '--as', 'refund'], environment())
    // Only the transaction shows that payer and payee are the same.
    expect([accepted.code, accepted.stderr]).toEqual([
      1,
      expect.stringContaining('even if it were accepted: SELF_PAYMENT'),
    ])
  })

  it('finishes a call in flight on SIGTERM, and ends all its processes', async () => {
    historyEnds = new Date(Date.now() - 3_600_000).toISOString()
    history = await settledPayments(historyEnds)
    expect(history.length).toBeGreaterThan(200)
    expect(started.map(({ name }) => name)).toEqual(expect.arrayContaining(['anvil', 'postgres']))

    const slow = await beginCall()
    demo.kill('SIGTERM')
    await demo.says(/stopping: no new calls/, 'stderr')
    await vi.waitFor(() => expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed'), PATIENCE)
    const answer = await slow.finish('{"payee":"x"}')
    expect([answer.statusCode, await text(answer)]).toEqual([400, expect.stringContaining('invalid_argument')])
    expect(await demo.ended).toMatchObject({ code: 0, signal: null })
    await allGone(started)
  })

  it('is reported as not running by its commands after the stop', async () => {
    const [over, never] = await Promise.all([
      runHere('demo', 'refund'),
      runCommand({ DATA_DIR: join(folder, 'nothing') }, ['demo', 'refund']),
    ])
    expect([over?.code, over?.stdout, never?.code, never?.stdout]).toEqual([1, '', 1, ''])
    expect(over?.stderr).toContain(`waybill demo refund: there is no demo in ${dataDir}; start one`)
    expect(never?.stderr).toContain(`waybill demo refund: there is no demo in ${join(folder, 'nothing')}; start one`)
  })
})

describe('a second start on the same folder', () => {
  beforeAll(startDemo)

  it('continues with the same payments, none lost or doubled', async () => {
    expect(await settledPayments(historyEnds)).toEqual(history)
  })

  it('names the same request to pay, not the cancelled one', async () => {
    expect((await toPay()).paymentReference).toBe(replacement)
  })

  it('ends all its processes when it is killed', async () => {
    expect(started.length).toBeGreaterThan(4)
    const terms = { payee: PAYEE, amount: '150', invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }
    const { paymentReference } = await post('/v1/request', terms)
    const paying = { paymentReference, wallet: 'otherChain', route: 'ARBITRUM_ETHEREUM_USDC_USDC', waitSeconds: 0 }
    deposited = (await post('/v1/demo/pay', paying)).txHashes.at(-1) ?? ''
    demo.kill('SIGKILL')
    expect(await demo.ended).toMatchObject({ signal: 'SIGKILL' })
    await allGone(started)
  })
})

describe('a start after a kill, with the state of one chain gone', () => {
  beforeAll(async () => {
    await rm(join(dataDir, 'chains', 'POLYGON'), { recursive: true })
    await startDemo()
  })

  it('creates that chain again and logs it; the others keep their payments', async () => {
    expect(demo.stderr()).toMatch(/"chain":"POLYGON","rows":\d+,"msg":"the demo chain was created again/)
    const payments = await settledPayments(historyEnds)
    const elsewhere = (each: { network: string }) => each.network !== 'POLYGON'
    expect(payments.filter(elsewhere)).toEqual(history.filter(elsewhere))
    const [anew, before] = [payments, history].map((all) => all.filter((each) => !elsewhere(each)))
    expect(anew?.length).toBe(before?.length)
    // A payment in the native coin may get the same hash and thus the same id, but not the same time.
    const keyOf = ({ id, timestamp }: Answer['payments'][number]) => `${id} ${timestamp}`
    const gone = new Set(before?.map(keyOf))
    expect(anew?.map(keyOf).filter((key) => gone.has(key))).toEqual([])
  })

  it('delivers the deposit that was made before the kill', async () => {
    const payer = (await demoFile()).wallets.otherChain?.address
    await vi.waitFor(
      async () => {
        const { payments } = (await get(`/payments?txHash=${deposited}`)).body
        expect(payments).toMatchObject([{ amount: '150', network: 'ETHEREUM', sourceTxHash: deposited, payer }])
      },
      { timeout: 20_000, interval: 100 },
    )
  })

  it('ends with exit code 1 and names the database when it is lost', async () => {
    const postmaster = started.find(({ name }) => name === 'postgres')
    process.kill(postmaster?.pid ?? 0, 'SIGKILL')
    const { code, stderr } = await demo.ended
    expect(code).toBe(1)
    expect(stderr).toContain('"reason":"the embedded PostgreSQL has ended (SIGKILL)"')
    await allGone(started)
  })
})

describe('a start after the database was lost', () => {
  beforeAll(startDemo)

  it('ends with exit code 1 and names the chain when a node is lost', async () => {
    const node = started.find(({ name }) => name === 'anvil')
    process.kill(node?.pid ?? 0, 'SIGKILL')
    const { code, stderr } = await demo.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/"reason":"the node of the demo chain [A-Z]+ has ended \(SIGKILL\)"/)
    await allGone(started)
  })
})

async function withHost(host: string) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(`${url}/payments`, { headers: { host, 'x-api-key': 'demo' } }, resolve)
    .once('error', reject)
    .end()
  return promise
}

/** Starts a call whose headers the service has received and whose body it waits for. */
async function beginCall() {
  const headers = { 'x-api-key': 'demo', 'content-type': 'application/json', expect: '100-continue' }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const call = request(`${url}/v1/request`, { method: 'POST', headers }, resolve).once('error', reject)
  call.flushHeaders()
  await new Promise((proceed) => call.once('continue', proceed))
  return {
    finish(body: string) {
      call.end(body)
      return promise
    },
  }
}
