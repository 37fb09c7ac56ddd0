import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { UnmatchedReason } from '../../src/detection/match/match-event.ts'
import { NO_REORGS, writeChainReport } from '../../src/detection/sql/chain-reports-repository.ts'
import { insertChain, updateChain } from '../../src/detection/sql/chain-state-repository.ts'
import { storeUnmatched } from '../../src/detection/sql/unmatched-repository.ts'
import { acquireLease, releaseLease } from '../../src/store/leases-repository.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { runCommand } from '../support/run-command.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const CHAIN_ID = 'eip155:8453'
const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const SOMEBODY = '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc'
const PROXY = '0x1892196e80c4c17ea5100da765ab48c1fe2fb814'

const LEASE = { name: `follow:${CHAIN_ID}`, owner: 'a process' }
const AGO = '2026-11-01T12:00:00Z'

let database: TestDatabase
let folder: string
let environment: Readonly<Record<string, string>>

beforeAll(async () => {
  database = await createTestDatabase()
  folder = await mkdtemp(join(tmpdir(), 'waybill-operators-'))
  const chain = {
    name: 'BASE',
    chainId: 8453,
    rpcUrls: ['http://127.0.0.1:1/secret-key'],
    native: { symbol: 'ETH' },
    tokens: [{ symbol: 'USDC', address: USDC, decimals: 6 }],
    contracts: [{ kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: PROXY, fromBlock: 1 }],
    finality: { depth: 3 },
  }
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: [chain] }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  await follow()
  await storeEvents()
})
afterAll(async () => {
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

/** What a process that follows the chain has stored. */
async function follow(): Promise<void> {
  const { knex } = database
  await acquireLease(knex, LEASE, 600_000)
  const hash = `0x${'1'.repeat(64)}` as const
  const checkpoint = { number: 97, hash, parentHash: hash, timestampSec: Math.floor(Date.now() / 1_000) - 36 }
  await knex.transaction((trx) =>
    insertChain(trx, {
      chainId: CHAIN_ID,
      network: 'BASE',
      genesisHash: hash,
      checkpoint,
      headBlock: 100,
      now: new Date(),
    }),
  )
  await report()
}

async function report(more: object = {}): Promise<void> {
  const usual = { process: 'web-1/4711', followingSince: new Date().toISOString(), reorgs: NO_REORGS, nodes: [] }
  await writeChainReport(database.knex, LEASE, { chainId: CHAIN_ID, report: { ...usual, ...more }, at: new Date() })
}

async function storeEvents(): Promise<void> {
  const { knex } = database
  const shop = await createApiKeyRepository(knex).ensureAccount('shop')
  const seen = (day: number, accountId: number, reason: UnmatchedReason, fields: object = {}) => ({
    accountId,
    reason,
    topic: `0x${`c${day}`.repeat(32)}` as const,
    txHash: hashOf(day),
    eventIndex: 0,
    blockNumber: day,
    timestamp: new Date(`2026-03-0${day}T12:00:00Z`),
    event: { emitter: PROXY, token: USDC, to: SOMEBODY, amount: '1500000', ...fields },
  })
  await storeUnmatched(knex, CHAIN_ID, [
    seen(1, shop.id, 'NOT_FROM_PAYEE'),
    seen(2, shop.id, 'RATE_OFF', { rateProblem: 'NO_PATH' }),
    seen(3, 0, 'UNKNOWN_TOPIC'),
  ])
}

const hashOf = (day: number) => `0x${`d${day}`.repeat(32)}` as const

function waybill(...words: string[]) {
  return runCommand(environment, words)
}

describe('chains status', () => {
  it('writes one JSON document where the output is no terminal, as the API gives it', async () => {
    const { code, stdout } = await waybill('chains', 'status')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      chains: [
        {
          network: 'BASE',
          state: 'FOLLOWING',
          headBlock: '100',
          scannedBlock: '97',
          lagBlocks: 3,
          lagSeconds: expect.toSatisfy((seconds: number) => seconds >= 36 && seconds < 96),
          follower: { process: 'web-1/4711' },
          backlog: { unmatched: [{ reason: 'NOT_FROM_PAYEE', events: 1 }, {}, {}] },
        },
      ],
    })
    expect(stdout).not.toContain('secret')
  })

  it('draws the table once without colour where it is asked to', async () => {
    const { code, stdout } = await waybill('chains', 'status', '--table', '--chain', '8453')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^CHAIN {2}STATE .*\nBASE {3}following {2}3 blocks, \d/)
    expect(stdout).not.toContain('\u001b')
  })

  it('ends with 1 when a chain is stopped', async () => {
    await updateChain(database.knex, CHAIN_ID, { alarm: 'block 90 was replaced', now: new Date() })
    const outcomes = [await waybill('chains', 'status'), await waybill('chains', 'status', '--table')]
    await updateChain(database.knex, CHAIN_ID, { alarm: null, now: new Date() })
    expect(outcomes.map(({ code }) => code)).toEqual([1, 1])
    expect(outcomes[1]?.stdout).toContain('stopped: block 90 was replaced')
  })

  it.each([
    ['4 when no process follows a chain', () => releaseLease(database.knex, LEASE), 4, 'not followed'],
    ['5 when a chain is failing', () => report({ trouble: { reason: 'no node answers', since: AGO } }), 5, 'failing'],
  ])('ends with %s', async (_, happen, expected, says) => {
    await happen()
    const { code, stdout } = await waybill('chains', 'status', '--table')
    await acquireLease(database.knex, LEASE, 600_000)
    await report()
    expect([code, stdout]).toEqual([expected, expect.stringContaining(says)])
  })

  it('ends with 3 when the database is away, and says so', async () => {
    const away = { ...environment, DATABASE_URL: 'postgres://u:p@127.0.0.1:1/nothing' }
    const { code, stdout, stderr } = await runCommand(away, ['chains', 'status'])
    expect([code, stdout, stderr]).toEqual([3, '', expect.stringContaining('127.0.0.1:1')])
  })

  it('draws a table in a terminal, coloured and within its width', async () => {
    const { code, screen } = await runInTerminal(['chains', 'status'], { NO_COLOR: '' })
    expect(code).toBe(0)
    expect(screen).toContain('\x1b[32mBASE')
    for (const line of stripVTControlCharacters(screen).split('\r\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  it.each([
    [['--chain', 'nowhere'], 'the chains file has no chain "nowhere"; it has BASE'],
    [['--chain'], 'argument missing'],
    [['--watch'], "Unknown option '--watch'"],
    [['BASE'], '"BASE" is not expected here'],
  ])('%j is wrong usage', async (words, says) => {
    const outcome = await waybill('chains', 'status', ...words)
    expect(outcome).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) })
  })
})

/** Runs a command in a terminal of 80 × 24. */
async function runInTerminal(words: readonly string[], more: Readonly<Record<string, string>>) {
  const command = `stty cols 80 rows 24; exec ${ROOT}/tools/with-node node ${ROOT}/src/main.ts ${words.join(' ')}`
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm', ...environment, ...more },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
  })
  const [code] = await once(child, 'close')
  return { code: code as number, screen }
}

describe('unmatched list', () => {
  const list = async (...words: string[]) => {
    const { code, stdout } = await waybill('unmatched', 'list', ...words)
    expect(code).toBe(0)
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t')[5])
  }

  it.each([
    [[], ['UNKNOWN_TOPIC', 'RATE_OFF', 'NOT_FROM_PAYEE']],
    [
      ['--account', 'shop'],
      ['RATE_OFF', 'NOT_FROM_PAYEE'],
    ],
    [['--chain', 'base', '--reason', 'rate_off'], ['RATE_OFF']],
    [
      ['--since', '2026-03-02'],
      ['UNKNOWN_TOPIC', 'RATE_OFF'],
    ],
    [
      ['--until', '2026-03-02'],
      ['RATE_OFF', 'NOT_FROM_PAYEE'],
    ],
    [['--since', '2026-03-02T13:00:00+01:00', '--until', '2026-03-02T12:00:00Z'], ['RATE_OFF']],
    [['--since', '2026-03-04'], []],
    [['--limit', '1'], ['UNKNOWN_TOPIC']],
  ])('with %j has %j', async (words, reasons) => {
    expect(await list(...words)).toEqual(reasons)
  })

  it('with --json writes what the API gives, an event a line', async () => {
    const { stdout } = await waybill('unmatched', 'list', '--account', 'shop', '--json')
    const [first, second] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(first).toMatchObject({ reason: 'RATE_OFF', amount: '1.5', currency: 'USDC-BASE', acceptableAs: 'PAYMENT' })
    expect(second).toMatchObject({ reason: 'NOT_FROM_PAYEE', remedy: expect.stringContaining('accept this event') })
  })

  it.each([
    [['--since', 'yesterday'], '--since: "yesterday" is not a valid date: it is not in the form of RFC 3339'],
    [['--since', '2026-02-30'], 'there is no such day'],
    [['--until', '2026-03-01T12:00:00'], 'it has no offset'],
    [['--since', '2026-03-02', '--until', '2026-03-01'], '--since "2026-03-02" lies beyond --until "2026-03-01"'],
    [['--since', ''], '--since: "" is not'],
    [['--reason', 'RATE'], '--reason is "RATE", which is not a reason'],
    [['--json=yes'], 'does not take an argument'],
  ])('%j is wrong usage', async (words, says) => {
    const outcome = await waybill('unmatched', 'list', ...words)
    expect(outcome).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) })
  })
})

describe('unmatched list --explain', () => {
  it('says what happened, what to do, and the command that accepts it', async () => {
    const { code, stdout } = await waybill(
      'unmatched',
      'list',
      '--explain',
      '--chain',
      'BASE',
      '--tx',
      hashOf(1),
      '--event',
      '0',
    )
    expect([code, stdout.split('\n')]).toEqual([
      0,
      [
        `NOT_FROM_PAYEE: event 0 of ${hashOf(1)}`,
        '  where    block 1 of BASE, 2026-03-01T12:00:00.000Z',
        '  account  shop',
        expect.stringContaining('  what     It went to the refund address'),
        expect.stringContaining('  to do    If the merchant sent it, register the wallet'),
        `  command  waybill unmatched accept --chain BASE --tx ${hashOf(1)} --event 0 --account shop --as refund --reason 'WHY'`,
        '',
      ],
    ])
  })

  it('gives no command for what cannot be accepted', async () => {
    const explain = (day: number, ...words: string[]) =>
      waybill('unmatched', 'list', '--explain', '--chain', 'BASE', '--tx', hashOf(day), '--event', '0', ...words)
    expect((await explain(3)).stdout).toMatch(/UNKNOWN_TOPIC.*account {2}none(?!.*command)/s)
    expect(await explain(4)).toMatchObject({ code: 0, stdout: '', stderr: '0 events\n' })
    expect(await explain(3, '--account', 'shop')).toMatchObject({ code: 0, stdout: '' })
    expect(await explain(1, '--account', 'nobody')).toMatchObject({ code: 1, stdout: '' })
  })

  it.each([
    [['--json'], '--json has the explanations'],
    [['--chain', 'nowhere', '--tx', hashOf(1), '--event', '0'], 'the chains file has no chain "nowhere"'],
    [['--chain', 'BASE', '--tx', '0x12', '--event', '0'], '--tx is "0x12", which is not a transaction hash'],
    [['--chain', 'BASE', '--tx', hashOf(1), '--event', 'first'], '--event is "first"'],
    [['--chain', 'BASE', '--tx', hashOf(1), '--event', '0', '--account', 'The Shop'], 'is not an account'],
  ])('%j is wrong usage', async (words, says) => {
    const outcome = await waybill('unmatched', 'list', '--explain', ...words)
    expect(outcome).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) })
  })
})
