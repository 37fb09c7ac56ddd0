import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadCommands } from '../../src/cli/commands.ts'
import { runCommandLine } from '../../src/cli/run-command-line.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { runWaybill, startWaybill } from '../support/process.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
let database: TestDatabase
let environment: Record<string, string>
beforeAll(async () => {
  folder = await makeTempFolder('import')
  database = await createTestDatabase()
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: 'none' }
})
afterAll(async () => {
  await database?.drop()
  await rm(folder, { recursive: true, force: true })
})

const lineOf = (n: number) =>
  JSON.stringify({
    id: `0b7d2a31-6f0e-8c55-9d3b-${String(n).padStart(12, '0')}`,
    status: 'CONFIRMED',
    timestamp: '2026-03-01T12:00:00Z',
    updatedAt: '2026-03-01T12:00:01.5Z',
    amount: String(n),
    currency: 'USDC-BASE',
    network: 'BASE',
    txHash: `0x${n.toString(16).padStart(64, '0')}`,
    eventIndex: 0,
    fees: [],
    exchangeRates: [],
    refunds: [],
    refundedAmount: '0',
    statusHistory: [],
    marks: [],
    metadata: {},
  }).replace('.5Z', '.500Z')

const linesOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `${lineOf(from + n)}\n`).join('')

const exportOf = async (account: string) => {
  const { code, stdout } = await runWaybill(['export', 'payments', '--account', account], environment)
  return { code, stdout }
}

/** Begins an import of 10,000 lines: two batches are stored, and the third is incomplete. */
async function beginImport(account: string) {
  const input = new PassThrough()
  const importing = startWaybill(['import', 'payments', '-', '--account', account], environment, input)
  input.write(linesOf(0, 10_000))
  const [, counted = ''] = await importing.says(/(?:^|\n)([48],000) lines read: /, 'stderr')
  return { importing, counted: Number(counted.replace(',', '')) }
}

it('gives the same result when it runs again after a kill, and then changes nothing', async () => {
  const { importing, counted } = await beginImport('killed')
  importing.kill('SIGKILL')
  expect((await importing.ended).signal).toBe('SIGKILL')
  const path = join(folder, 'killed.ndjson')
  await writeFile(path, linesOf(0, 10_000))
  const args = ['import', 'payments', path, '--account', 'killed']
  const again = await runWaybill(args, environment)
  expect([again.code, again.stdout]).toEqual([0, ''])
  const [, written = '', unchanged = ''] = SUMS.exec(again.stderr) ?? []
  expect([written, unchanged].map((figure) => Number(figure.replace(',', '')))).toSatisfy(
    ([more = 0, before = 0]: number[]) => before >= counted && before % 4_000 === 0 && more + before === 10_000,
  )
  // All have the same second, so they are ordered by id, which ends in the number of the line.
  expect((await exportOf('killed')).stdout).toBe(await readFile(path, 'utf8'))
  expect((await runCommand(environment, args)).stderr).toMatch(/: 0 written, 10,000 unchanged, 0 bad; /)
})

const SUMS = /done: 10,000 lines read: (\d+,?\d*) written, (\d+,?\d*) unchanged, 0 bad; [\d,]+ lines\/s\n$/

it('stops at a batch boundary on SIGTERM, and reports how far it came', async () => {
  const { importing } = await beginImport('stopped')
  importing.kill('SIGTERM')
  const { code, stderr } = await importing.ended
  expect(code).toBe(1)
  const [, written = ''] = /stopped: .*: [48],000 lines read: ([48],000) written, 0 unchanged/.exec(stderr) ?? []
  const { stdout } = await exportOf('stopped')
  expect(stdout).toBe(linesOf(0, Number(written.replace(',', ''))))
})

it('reads standard input, reports bad lines on standard error and exits with 1', async () => {
  const input = `\ufeff${lineOf(1)}\r\n{"id":1}\r\n${lineOf(2)}`
  const importing = startWaybill(['import', 'payments', '-', '--account', 'stdin'], environment, Readable.from([input]))
  const { code, stdout, stderr } = await importing.ended
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain('line 2: INVALID_FIELD: id is not valid: 1 is not a string; correct the value\n')
  expect(stderr).toMatch(/done: 3 lines read: 2 written, 0 unchanged, 1 bad; /)
})

it('exports to a file that gets its name when it is complete', async () => {
  const path = join(folder, 'out.ndjson')
  const words = ['export', 'payments', '--account', 'stdin', '--output', path]
  const { code, stdout, stderr } = await runCommand(environment, words)
  expect([code, stdout, stderr]).toEqual([0, '', '2 payments\n'])
  expect(await readFile(path, 'utf8')).toBe(`${lineOf(1)}\n${lineOf(2)}\n`)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  const none = await runCommand(environment, ['export', 'payments', '--account', 'nobody'])
  expect([none.code, none.stdout, none.stderr]).toEqual([1, '', 'there is no account "nobody"\n'])
})

it('makes a file that others could read private when it exports to it, and refuses links and folders', async () => {
  const [readable, link] = [join(folder, 'readable.ndjson'), join(folder, 'link.ndjson')]
  await writeFile(readable, 'before', { mode: 0o644 })
  await symlink(readable, link)
  const exportTo = (path: string) =>
    runCommand(environment, ['export', 'payments', '--account', 'stdin', '--output', path])
  const refused = await Promise.all([exportTo(link), exportTo(folder)])
  expect(refused.map(({ code, stderr }) => [code, stderr])).toEqual([
    [2, expect.stringContaining('is a symbolic link')],
    [2, expect.stringContaining('is not a regular file')],
  ])
  expect(await readFile(readable, 'utf8')).toBe('before')
  expect((await exportTo(readable)).code).toBe(0)
  expect([(await stat(readable)).mode & 0o777, (await readFile(readable, 'utf8')).length > 6]).toEqual([0o600, true])
  expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([])
})

it('imports requests into the demo account, and exports them again', async () => {
  const path = join(folder, 'requests.ndjson')
  const terms = {
    payee: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    amount: '1',
    invoiceCurrency: 'USD',
    paymentCurrency: 'USDC',
    network: 'bsc',
  }
  await writeFile(path, `${JSON.stringify(terms)}\n${JSON.stringify({ ...terms, network: 'BASE' })}\n`)
  const demo = { DATA_DIR: join(folder, 'data') }
  const { code, stderr } = await runWaybill(['import', 'requests', path, '--account', 'demo'], demo)
  expect(stderr).toContain('line 2: NETWORK_NOT_CONFIGURED')
  expect(stderr).toContain('2 lines read: 1 written, 0 unchanged, 1 bad')
  expect(code).toBe(1)
  const exported = await runWaybill(['export', 'requests', '--account', 'demo'], demo)
  expect([exported.code, exported.stderr]).toEqual([0, '1 payment request\n'])
  expect(JSON.parse(exported.stdout)).toMatchObject({ ...terms, network: 'BSC', paymentCurrency: 'USDC-BSC' })
})

it.each([
  [['import', 'payments', 'x.ndjson'], '--account is missing'],
  [['import', 'payments', '--account', 'a'], 'FILE is missing'],
  [['import', 'payments', '/nowhere/x.ndjson', '--account', 'a'], 'cannot be read'],
  [['import', 'payments', '/', '--account', 'a'], 'is a folder'],
  [['import', 'requests', '-', '--account', 'A B'], 'is not an account'],
  [['export', 'payments'], '--account is missing'],
  [['import', 'things'], 'there is no command'],
])('refuses %j with exit code 2', async (args, message) => {
  const said = { stdout: '', stderr: '' }
  const collect = (name: keyof typeof said) =>
    new Writable({ write: (chunk, _, done) => done(void (said[name] += String(chunk))) })
  const code = await runCommandLine(await loadCommands(args), args, {
    environment,
    workingFolder: folder,
    stdin: Readable.from([]),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
    actor: 'somebody',
    signal: new AbortController().signal,
    delayStop: async () => {},
  })
  expect([code, said.stdout, said.stderr]).toEqual([2, '', expect.stringContaining(message)])
})
