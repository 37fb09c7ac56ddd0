/** `waybill batch` on a running service: what the guide says, and what is refused. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { cp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { composeService } from '../../src/app.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { canonical } from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { freshAddress } from '../support/routing.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const NOW = new Date('2026-03-01T12:00:00.000Z')

let chain: TestChain
let database: TestDatabase
let service: Awaited<ReturnType<typeof composeService>>
let listener: Awaited<ReturnType<typeof service.listen>>
let keys: Readonly<Record<'shop' | 'reader' | 'platform', string>>
let references: readonly Hex[]
let buyer: Hex

beforeAll(async () => {
  ;[database, chain] = await Promise.all([
    createTestDatabase(),
    startTestChain({ genesisTimeSec: NOW.getTime() / 1_000, baseFeePerGas: 8_000_000_000n }),
  ])
  const { knex } = database
  const usual = chain.config({ name: 'ETHEREUM', finalityDepth: 3 })
  const address = canonical(chain.contracts.batchPayments)
  const batch = { kind: 'BATCH_PAYMENTS', version: '0.1.0', address, fromBlock: 0 } as const
  const chains = [{ ...usual, contracts: [...usual.contracts, batch] }]
  service = await composeService({ knex, chains, logger: silentLogger, now: () => NOW })
  listener = await service.listen({ host: '127.0.0.1', port: 0 })
  const repository = createApiKeyRepository(knex)
  const issue = async (account: string, ...scopes: Parameters<typeof issueApiKey>[1]['scopes']) =>
    (await issueApiKey(repository, { account, scopes, now: NOW })).key
  keys = {
    shop: await issue('shop', 'routes:read'),
    reader: await issue('shop', 'payments:read'),
    platform: await issue('platform', 'routes:read', 'accounts:any'),
  }
  const account = await repository.ensureAccount('shop')
  references = await Promise.all(
    ['2', '3.5', '1'].map(async (amount, nth) => {
      const terms = { amount, invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
      const payee = freshAddress(`payee of the command ${nth}`)
      return (await service.requests.create(account, { payee, ...terms })).request.paymentReference
    }),
  )
  buyer = chain.wallets[0]
  await service.requests.cancel(account, references[2] as Hex)
  await chain.fund(chain.tokens.USDC, buyer, 1_000_000000n)
})
afterAll(async () => {
  await listener?.stop({ graceMs: 0 })
  await Promise.all([chain?.stop(), database?.drop()])
})

interface Batch {
  readonly transactions: readonly { readonly to: Hex; readonly data: Hex; readonly value: Hex }[]
  readonly amount: string
  readonly safeFile: string
}

/** The answer of the service itself. */
async function ask(): Promise<Batch> {
  const query = `paymentReferences=${references.slice(0, 2).join()}&wallet=${buyer}`
  const answer = await fetch(`${listener.url}/v1/request:batchPay?${query}`, { headers: { 'x-api-key': keys.shop } })
  return (await answer.json()) as Batch
}

describe('refuses', () => {
  it.each<[string, Record<string, string>, string, number]>([
    ['no references', { references: '' }, 'INVALID_PAYMENT_REFERENCE', 1],
    ['a reference that is none', { references: '0x12' }, 'INVALID_PAYMENT_REFERENCE', 1],
    ['one of nobody', { references: '0x0000000000000000' }, 'REQUESTS_NOT_PAYABLE', 1],
    ['one twice', { references: 'FIRST,FIRST' }, 'REQUESTS_NOT_PAYABLE', 1],
    ['one that is cancelled', { references: 'CANCELLED' }, 'REQUESTS_NOT_PAYABLE', 1],
    ['101 references', { references: Array(101).fill('0x0000000000000000').join() }, 'TOO_MANY_VALUES', 1],
    ['a wallet that is none', { wallet: 'me' }, 'INVALID_ADDRESS', 1],
    ['an empty wallet', { wallet: '' }, 'MISSING_FIELD', 1],
    ['another token', { token: 'DAI' }, 'REQUESTS_NOT_PAYABLE', 1],
    ['a fee without its address', { 'fee-percentage': '1' }, 'INCOMPLETE_FEE', 1],
    ['a fee of 101 percent', { 'fee-percentage': '101', 'fee-address': freshAddress('f') }, 'INVALID_PERCENTAGE', 1],
    ['a key without the scope', { key: 'reader' }, 'MISSING_SCOPE', 1],
    ["a platform's key without an account", { key: 'platform' }, 'MISSING_ACCOUNT', 1],
    ['an unknown account', { key: 'platform', account: 'nobody' }, 'UNKNOWN_ACCOUNT', 1],
    ['an account that is none', { account: 'A B' }, '"A B" is not an account', 2],
    ['no key', { key: 'none' }, 'give --key-file or WAYBILL_API_KEY', 2],
    ['no service', { url: 'pay' }, '--url is not where a service answers', 2],
  ])('%s', async (_, { references: named = 'FIRST', key = 'shop', ...more }, says, expected) => {
    const [first = '', , cancelled = ''] = references
    const list = named.replaceAll('FIRST', first).replace('CANCELLED', cancelled)
    const options = Object.entries({ url: listener.url, wallet: buyer, ...more })
    const words = ['batch', list, ...options.flatMap(([name, value]) => [`--${name}`, value])]
    const environment = key === 'none' ? {} : { WAYBILL_API_KEY: keys[key as keyof typeof keys] }
    const { code, stdout, stderr } = await runCommand(environment, words)
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toContain(`waybill batch: ${says}`)
    // The message has what to do, with its values filled in.
    expect(stderr).not.toMatch(/[{}]/)
    for (const secret of Object.values(keys)) expect(stderr).not.toContain(secret)
  })

  it('a call without a wallet', async () => {
    const { code, stderr } = await runCommand({ WAYBILL_API_KEY: 'k' }, ['batch', '0x12', '--url', listener.url])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--wallet is missing')])
  })
})

it('writes the transactions and the file for a Safe, as the guide has it, and they pay all', async () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/accept-payments.md'), 'utf8')
  const [, section = ''] = guide.split('## Many orders in one transaction')
  const [, block = ''] = /^```sh\n(.*?)^```$/ms.exec(section) ?? []
  expect(block.match(/waybill -- batch/g)).toHaveLength(2)
  const folder = await makeTempFolder('batch')
  await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
  for (const name of ['src', 'tools', 'gen', 'node_modules']) await symlink(join(ROOT, name), join(folder, name))
  const script = block.replaceAll('http://127.0.0.1:8080', listener.url).replace('=demo', `=${keys.shop}`)
  const env = { PATH: process.env['PATH'] ?? '', first: references[0], second: references[1], buyer }
  const shell = spawn('sh', ['-e', '-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
  expect([code, stdout]).toEqual([0, ''])
  expect(stderr.trim().split('\n')).toEqual(
    Array.from({ length: 2 }, () => expect.stringMatching(/^2 requests, 5\.5 USDC-ETHEREUM; send before 2026-03-01T/)),
  )
  const written = JSON.parse(await readFile(join(folder, 'transactions.json'), 'utf8')) as Batch
  const expected = await ask()
  expect(written).toEqual({ ...expected, expiresAt: expect.any(String), route: expect.any(Object) })
  expect(await readFile(join(folder, 'for-the-safe.json'), 'utf8')).toBe(`${expected.safeFile}\n`)
  for (const { to, data, value } of written.transactions) await chain.send(buyer, { to, data, value: BigInt(value) })
  await service.detection.scanOnce()
  const account = await createApiKeyRepository(database.knex).ensureAccount('shop')
  const found = await Promise.all(references.map((each) => service.requests.get(account, each)))
  expect(found.map(({ balance }) => balance.status)).toEqual(['PENDING', 'PENDING', 'CANCELLED'])
})
