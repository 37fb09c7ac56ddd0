import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { urlOfDatabase } from '../support/data/database.ts'
import { findFreePort } from '../support/data/free-port.ts'
import { seedPayments } from '../support/data/seed-payments.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

// Every question of the guide is asked as it stands there, and answered as it says.

const ROOT = join(import.meta.dirname, '../..')
const page = readFileSync(join(ROOT, 'docs/guides/questions.md'), 'utf8')
const [first = '', ...sections] = page.split(/^## /m)
const codeOf = (section: string) => /^```sh\n(.*?)^```$/ms.exec(section)?.[1] ?? ''

let running: TestService
let environment: Record<string, string>
beforeAll(async () => {
  running = await startTestService()
  const values = await seedPayments(running)
  await importEarlier()
  const { url, keys, database } = running
  const repository = createApiKeyRepository(database.knex)
  const { stored } = await issueApiKey(repository, { account: 'shop', scopes: ['routes:read'], now: new Date() })
  environment = {
    PATH: process.env['PATH'] ?? '',
    WAYBILL: url,
    WAYBILL_KEY: keys.shop,
    DATABASE_URL: urlOfDatabase(database),
    CHAINS_FILE: 'none',
    LOG_LEVEL: 'error',
    id: values['pending.paymentId'] ?? '',
    hash: values['paid.txHash'] ?? '',
    payee: values['payee'] ?? '',
    payer: values['payer'] ?? '',
    reference: values['refunded.paymentReference'] ?? '',
    operator: keys.operator,
    key: stored.id,
  }
})
afterAll(() => running?.stop())

/** Payments of October 2025 on two chains, one of them refunded in part, and of the last day of February 2026. */
async function importEarlier(): Promise<void> {
  const { knex } = running.database
  const account = await createApiKeyRepository(knex).ensureAccount('shop')
  const base = { status: 'CONFIRMED', currency: 'USDC-BASE', network: 'BASE' }
  const worth = ({ amount, ...row }: { amount: string }) => ({ ...row, amount, amountInUSD: amount })
  const rows = [
    { ...base, timestamp: '2025-10-03T12:00:00Z', amount: '60', reference: 'A-1', metadata: { order: '1042' } },
    {
      ...base,
      timestamp: '2025-10-20T12:00:00Z',
      amount: '40',
      reference: 'A-2',
      gas: { amount: '0.0003', currency: 'ETH-BASE' },
      fees: [{ type: 'PLATFORM', stage: 'SENDING', amount: '0.2', currency: 'USDC-BASE' }],
      refunds: [
        {
          amount: '10',
          currency: 'USDC-BASE',
          network: 'BASE',
          txHash: `0x${'ab'.repeat(32)}`,
          timestamp: '2025-10-21T12:00:00Z',
        },
      ],
      refundedAmount: '10',
    },
    { ...base, timestamp: '2025-10-31T12:00:00Z', amount: '7', currency: 'USDC-ETHEREUM', network: 'ETHEREUM' },
    { ...base, timestamp: '2026-02-27T23:30:00Z', amount: '15', invoiceCurrency: 'EUR', invoiceAmount: '14' },
    { ...base, timestamp: '2026-02-28T22:59:59Z', amount: '5' },
    { ...base, timestamp: '2026-02-28T23:00:00Z', amount: '100' },
  ]
  const lines = rows.map((row, nth) =>
    JSON.stringify({ id: `00000000-0000-4000-8000-00000000000${nth}`, ...worth(row) }),
  )
  const outcome = await importLines(Readable.from([Buffer.from(lines.join('\n'))]), importPayments(knex, account))
  expect(outcome).toMatchObject({ bad: 0 })
}

/** What is printed, where `…` is anything. */
function patternOf(answer: string): RegExp {
  const escaped = answer.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${escaped.join('[^]*?')}$`)
}

it('has twenty questions', () => expect(sections).toHaveLength(20))

const questions = sections.map((section) => [section.split('\n')[0] ?? '', codeOf(section)] as const)
const ofDemo = ({ 1: code }: (typeof questions)[number]) => code.includes('npm start')

it.each(questions.filter((each) => !ofDemo(each)))('%s', async (_, code) => {
  await expectAnswer(code, environment)
})

it.each(questions.filter(ofDemo))('%s', { timeout: 120_000 }, async (_, code) => {
  const folder = await makeTempFolder('questions')
  const port = String(await findFreePort())
  await expectAnswer(`${code}\nwait`, { PATH: environment['PATH'] ?? '', DATA_DIR: join(folder, 'data'), PORT: port })
  await rm(folder, { recursive: true })
})

/** Runs a block of the page in a shell, and compares what it prints with its comments. */
async function expectAnswer(code: string, env: Readonly<Record<string, string>>): Promise<void> {
  const answer = code.split('\n').flatMap((line) => (line.startsWith('# ') ? [line.slice(2)] : []))
  expect(answer).not.toEqual([])
  const prelude = codeOf(first).replace(/^export .*$/m, '')
  const shell = spawn('sh', ['-c', `${prelude}\n${code}`], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  const printed = { stdout: stdout.replaceAll('\r', '').trimEnd(), stderr }
  expect(printed).toEqual({ stdout: expect.stringMatching(patternOf(answer.join('\n'))), stderr })
}
