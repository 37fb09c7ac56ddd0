import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { sampleChainDirectory } from '../support/sample-chains.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const WALLET = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

let database: TestDatabase
let folder: string
let environment: Record<string, string>

beforeAll(async () => {
  ;[database, folder] = await Promise.all([createTestDatabase(), makeTempFolder('wallets')])
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: sampleChainDirectory.configured }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  await waybill('keys', 'create', '--account', 'shop', '--scopes', 'payments:read')
})
afterAll(() => Promise.all([database?.drop(), rm(folder, { recursive: true, force: true })]))

const waybill = (...words: string[]) => runCommand(environment, words)

it('a wallet is registered once, listed, removed and registered again, with a line of the audit log each', async () => {
  const added = await waybill('wallets', 'add', WALLET.toLowerCase(), '--account', 'shop', '--note', 'support')
  expect(added.code).toBe(0)
  expect(rowsOf(added.stdout)).toEqual([[WALLET, expect.stringMatching(TIME), 'registered', 'support']])
  expect(await waybill('wallets', 'add', WALLET, '--account', 'shop')).toMatchObject({ stdout: added.stdout })
  expect((await waybill('wallets', 'list', '--account', 'shop')).stdout).toBe(added.stdout)

  const removed = await waybill('wallets', 'remove', WALLET, '--account', 'shop')
  expect(rowsOf(removed.stdout)[0]?.[2]).toMatch(/^removed 20/)
  expect(await waybill('wallets', 'list', '--account', 'shop')).toMatchObject({ stdout: '', stderr: '0 wallets\n' })
  expect(await waybill('wallets', 'remove', WALLET, '--account', 'shop')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the account has no refund wallet ${WALLET}`),
  })
  await waybill('wallets', 'add', WALLET, '--account', 'shop')
  const all = rowsOf((await waybill('wallets', 'list', '--account', 'shop', '--removed')).stdout)
  expect(all.map(([, , state]) => state?.slice(0, 8))).toEqual(['removed ', 'register'])

  const lines = rowsOf((await waybill('audit', '--account', 'shop')).stdout)
  expect(lines.slice(1).map(([, ...rest]) => rest)).toEqual([
    ['ann@host', 'ADD_WALLET', '-', 'shop', JSON.stringify({ note: 'support', address: WALLET.toLowerCase() })],
    ['ann@host', 'REMOVE_WALLET', '-', 'shop', JSON.stringify({ address: WALLET.toLowerCase() })],
    ['ann@host', 'ADD_WALLET', '-', 'shop', JSON.stringify({ address: WALLET.toLowerCase() })],
  ])
})

const token = sampleChainDirectory.configured[0]?.tokens[0]?.address ?? ''

it.each([
  ['no address', ['wallets', 'add', 'shop.eth', '--account', 'shop'], 'is not a valid address'],
  ['a wrong checksum', ['wallets', 'add', `${WALLET.slice(0, -1)}9`, '--account', 'shop'], 'checksum'],
  ['the zero address', ['wallets', 'add', `0x${'0'.repeat(40)}`, '--account', 'shop'], 'nobody owns'],
  ['a wallet of Tron', ['wallets', 'add', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', '--account', 'shop'], 'EVM'],
  ['a configured token', ['wallets', 'add', token, '--account', 'shop'], 'it is the token'],
  ['a note too long', ['wallets', 'add', WALLET, '--account', 'shop', '--note', 'x'.repeat(257)], 'more than 256'],
  ['an empty note', ['wallets', 'add', WALLET, '--account', 'shop', '--note', ''], 'it is empty'],
  ['no account', ['wallets', 'add', WALLET], '--account is missing'],
  ['an invalid account name', ['wallets', 'list', '--account', 'The Shop'], 'is not an account'],
  ['no wallet', ['wallets', 'remove', '--account', 'shop'], 'ADDRESS is missing'],
  ['no address to remove', ['wallets', 'remove', '0x12', '--account', 'shop'], 'is not a valid address'],
])('%s is wrong usage and changes nothing', async (_, words, says) => {
  const before = await waybill('audit')
  expect(await waybill(...words)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) })
  expect(await waybill('audit')).toEqual(before)
})

it('an unknown account is reported and not created', async () => {
  const refused = { code: 1, stdout: '', stderr: 'there is no account "nobody"\n' }
  expect(await waybill('wallets', 'add', WALLET, '--account', 'nobody')).toEqual(refused)
  expect(await waybill('wallets', 'list', '--account', 'nobody')).toEqual(refused)
})

it('an account has at most 100 wallets', async () => {
  await waybill('keys', 'create', '--account', 'many', '--scopes', 'payments:read')
  const { id } = await database.knex('accounts').where({ name: 'many' }).first('id')
  const rows = Array.from({ length: 100 }, (_, n) => ({
    account_id: id,
    address: Buffer.from(`01${(n + 1).toString(16).padStart(40, '0')}`, 'hex'),
    registration: 1,
    registered_at: new Date(),
  }))
  await database.knex('refund_wallets').insert(rows)
  expect(await waybill('wallets', 'add', WALLET, '--account', 'many')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the account has 100; remove wallets'),
  })
})
