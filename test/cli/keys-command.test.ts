import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

function waybill(...words: string[]) {
  return runCommand({ DATABASE_URL: urlOfDatabase(database) }, words)
}

const KEY = /^wb_[0-9A-Za-z]{40}\n$/
const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

it('a key is created, rotated, revoked and audited', async () => {
  const made = await waybill('keys', 'create', '--account', 'acme', '--scopes', 'payments:read', '--rate', '60')
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(KEY)])
  expect(made.stderr).toContain('of acme: payments:read; 60/min. Keep it now')
  const [[oldId = ''] = []] = rowsOf((await waybill('keys', 'list')).stdout)

  const rotated = await waybill('keys', 'rotate', oldId, '--overlap', '2h')
  expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringMatching(KEY)])
  expect(rotated.stderr).toContain(`the old key ${oldId} is valid until `)
  const rows = rowsOf((await waybill('keys', 'list', '--account', 'acme')).stdout)
  expect(rows.map(([, account, , scopes, , ...rest]) => [account, scopes, ...rest])).toEqual([
    ['acme', 'payments:read', 'in force', '60/min', expect.stringMatching(/^expires 20/), 'never used'],
    ['acme', 'payments:read', 'in force', '60/min', 'no expiry', 'never used'],
  ])

  const newId = rows[1]?.[0] ?? ''
  expect(await waybill('keys', 'revoke', newId.toUpperCase())).toMatchObject({ code: 0 })
  expect(await waybill('keys', 'revoke', newId)).toMatchObject({
    code: 1,
    stderr: `there is no key ${newId} in force\n`,
  })
  expect(await waybill('keys', 'rotate', newId)).toMatchObject({ code: 1, stdout: '' })

  const audit = await waybill('audit', '--account', 'acme')
  expect(rowsOf(audit.stdout).map(([at, ...rest]) => [TIME.test(at ?? ''), ...rest.slice(0, -1)])).toEqual([
    [true, 'ann@host', 'CREATE_KEY', oldId, 'acme'],
    [true, 'ann@host', 'ROTATE_KEY', oldId, 'acme'],
    [true, 'ann@host', 'CREATE_KEY', newId, 'acme'],
    [true, 'ann@host', 'REVOKE_KEY', newId, 'acme'],
  ])
  expect(audit.stderr).toBe('4 changes\n')
})

it('keys live by the clock of the database, not by that of the machine', async () => {
  const hour = 3_600_000
  const realMs = Date.now()
  // The machine's clock is two hours late.
  vi.useFakeTimers({ now: realMs - 2 * hour, toFake: ['Date'] })
  try {
    const words = ['--account', 'late', '--scopes', 'payments:read', '--expires', '1h']
    expect(await waybill('keys', 'create', ...words)).toMatchObject({ code: 0 })
    const [made = []] = rowsOf((await waybill('keys', 'list', '--account', 'late')).stdout)
    const [id = '', , , , created = '', state, , expires = ''] = made
    expect(state).toBe('in force')
    expect(Date.parse(created)).toBeGreaterThanOrEqual(realMs - 1_000)
    expect(Date.parse(expires.slice('expires '.length)) - Date.parse(created)).toBe(hour)
    const rotated = await waybill('keys', 'rotate', id, '--overlap', '30m')
    const [, end = ''] = /valid until (\S+) at/.exec(rotated.stderr) ?? []
    expect(Date.parse(end)).toBeGreaterThanOrEqual(realMs + hour / 2 - 1_000)
    const past = ['--expires', new Date(realMs - hour).toISOString()]
    expect(await waybill('keys', 'create', ...words.slice(0, 4), ...past)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is not in the future'),
    })
  } finally {
    vi.useRealTimers()
  }
})

it('a publishable key is made for its origins', async () => {
  const words = [
    'keys',
    'create',
    '--account',
    'pages',
    '--publishable',
    '--origins',
    'https://a.example,https://b.example',
  ]
  const { code, stdout } = await waybill(...words)
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^wbp_[0-9A-Za-z]{40}\n$/)])
  const rows = rowsOf((await waybill('keys', 'list', '--account', 'pages')).stdout)
  expect(rows.map(([, , , scopes, , , rate]) => [scopes, rate])).toEqual([
    ['publishable for https://a.example,https://b.example', '60/min an address'],
  ])
})

it('a publishable key has the shop that pages show, and its successor has it too', async () => {
  const logo = join(await mkdtemp(join(tmpdir(), 'waybill-logo-')), 'logo.svg')
  await writeFile(logo, '<svg xmlns="http://www.w3.org/2000/svg"/>')
  const words = ['keys', 'create', '--account', 'shops', '--publishable', '--origins', 'https://a.example']
  const shop = ['--name', 'Bay Books', '--logo', logo, '--color', '#0A7D4F', '--radius', '8']
  expect((await waybill(...words, ...shop)).code).toBe(0)
  const [[id = ''] = []] = rowsOf((await waybill('keys', 'list', '--account', 'shops')).stdout)
  await waybill('keys', 'rotate', id)
  const accountId = database.knex('accounts').select('id').where({ name: 'shops' })
  const stored = await database.knex('api_keys').where('account_id', accountId).pluck('shop')
  const data = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('base64')}`
  const shown = { name: 'Bay Books', logo: data, color: '#0a7d4f', cornerRadius: 8 }
  expect(stored).toEqual([shown, shown])
})

it('a key has no limit, its own limit or the default, and may expire', async () => {
  const create = (...words: string[]) =>
    waybill('keys', 'create', '--account', 'terms', '--scopes', 'routes:read', ...words)
  expect((await create('--rate', '0')).stderr).toContain('no limit')
  expect((await create()).stderr).toContain('300/min')
  expect((await create('--expires', '2099-12-31')).stderr).toContain('until 2099-12-31T23:59:59.999Z')
  const { stdout } = await waybill('keys', 'list', '--account', 'terms')
  expect(rowsOf(stdout).map((row) => row.slice(6, 8))).toEqual([
    ['no limit', 'no expiry'],
    ['300/min', 'no expiry'],
    ['300/min', 'expires 2099-12-31T23:59:59.999Z'],
  ])
})

it('the list shows the last use and expired keys', async () => {
  await waybill('keys', 'create', '--account', 'used', '--scopes', 'routes:read', '--expires', '1d')
  const past = new Date('2026-01-01T00:00:00.000Z')
  await database
    .knex('api_keys')
    .whereIn('account_id', database.knex('accounts').select('id').where({ name: 'used' }))
    .update({ expires_at: past, last_used_at: past })
  const [[, , , , , ...rest] = []] = rowsOf((await waybill('keys', 'list', '--account', 'used')).stdout)
  expect(rest).toEqual(['expired', '300/min', `expires ${past.toISOString()}`, `used ${past.toISOString()}`])
})

it('a key has a share of its own, which the one that replaces it keeps', async () => {
  const create = (...words: string[]) =>
    waybill('keys', 'create', '--account', 'shares', '--scopes', 'routes:read', ...words)
  expect((await create('--share', '0.25')).stderr).toContain('300/min, share 0.25')
  await create('--share', '1')
  const list = async () => rowsOf((await waybill('keys', 'list', '--account', 'shares')).stdout)
  const [[id = ''] = []] = await list()
  await waybill('keys', 'rotate', id)
  expect((await list()).map((row) => row[6])).toEqual([
    '300/min, share 0.25',
    '300/min, share 1',
    '300/min, share 0.25',
  ])
})

it.each([
  ['operations:read', '--operator'],
  ['chains:read,operations:read', '--operator'],
  ['operations:read,accounts:any,payments:read'],
  ['chains:read,payments:read'],
])('a key may have the scopes %s %s', async (scopes, ...words) => {
  const made = await waybill('keys', 'create', '--account', 'operators', '--scopes', scopes, ...words)
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(KEY)])
})

it.each([
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:read', '--rate', 'many'],
  ...['0', '0.0', '1.1', '-0.1', '10', '10%', 'half', '1e-1', '0.00001', ''].map((share) => [
    'keys',
    'create',
    '--account',
    'acme',
    '--scopes',
    'routes:read',
    '--share',
    share,
  ]),
  ['keys', 'create', '--account', 'acme', '--publishable', '--origins', 'https://a.example', '--share', '0.1'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:read', '--origins', 'https://a.example'],
  ...[
    ['--name', ''],
    ['--name', 'x'.repeat(81)],
    ['--color', 'green'],
    ['--color', '#0a7d4'],
    ['--radius', '33'],
    ['--radius', '-1'],
    ['--logo', 'no-such-file.png'],
    ['--logo', 'package.json'],
    ['--logo', 'package-lock.json'],
    ['--logo', '/dev/zero'],
  ].map((words) => [
    'keys',
    'create',
    '--account',
    'acme',
    '--publishable',
    '--origins',
    'https://a.example',
    ...words,
  ]),
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:read', '--name', 'Bay Books'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:reed'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:read', '--expires', '2020-01-01'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'operations:read'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'chains:read,operations:read'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'operations:read,payments:read', '--operator'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'payments:read', '--operator'],
  ['keys', 'create', '--account', 'acme', '--scopes', 'operations:read,accounts:any', '--operator'],
  ['keys', 'rotate', 'mine'],
  ['keys', 'rotate', '00000000-0000-4000-8000-000000000000', '--overlap', '1 day'],
  ['keys', 'rotate', '00000000-0000-4000-8000-000000000000', '--overlap', '31d'],
  ['keys', 'create', '--account', 'acme', '--publishable', '--origins', 'https://a.example', '--scopes', 'routes:read'],
  ['keys', 'create', '--account', 'acme', '--publishable', '--origins', ' , '],
  ['keys', 'create', '--account', 'acme', '--scopes', 'routes:read', '--note', ''],
])('%s %s with wrong words changes nothing', async (...words) => {
  const before = await waybill('audit')
  expect(await waybill(...words)).toMatchObject({ code: 2, stdout: '' })
  expect(await waybill('audit')).toEqual(before)
})

it('every key in force but those named is revoked at once, and audited', async () => {
  const create = async (account: string, ...words: string[]) => {
    await waybill('keys', 'create', '--account', account, '--scopes', 'payments:read', ...words)
    const { stdout } = await waybill('keys', 'list', '--account', account)
    return rowsOf(stdout).at(-1)?.[0] ?? ''
  }
  const states = async (account: string) =>
    rowsOf((await waybill('keys', 'list', '--account', account)).stdout).map(([id, , , , , state = '']) => [
      id,
      state.split(' ')[0],
    ])
  const [kept, old, ended, expired] = [
    await create('restored'),
    await create('restored'),
    await create('restored'),
    await create('restored', '--expires', '1d'),
  ]
  const past = new Date('2026-01-01T00:00:00.000Z')
  await database.knex('api_keys').where({ id: expired }).update({ expires_at: past })
  await waybill('keys', 'revoke', ended)
  const elsewhere = await create('elsewhere')

  const missing = '00000000-0000-4000-8000-000000000000'
  for (const named of [missing, ended, expired, elsewhere]) {
    const refused = await waybill('keys', 'revoke', '--account', 'restored', '--all-except', `${kept},${named}`)
    expect(refused).toEqual({ code: 1, stdout: '', stderr: `there is no key ${named} in force; no key was revoked\n` })
  }
  const before = await waybill('audit', '--account', 'restored')

  const { code, stdout, stderr } = await waybill('keys', 'revoke', '--account', 'restored', '--all-except', ` ${kept} `)
  expect([code, stderr]).toEqual([0, 'revoked 1 key; kept 1\n'])
  expect(rowsOf(stdout).map(([id, account]) => [id, account])).toEqual([[old, 'restored']])
  expect(await states('restored')).toEqual([
    [kept, 'in'],
    [old, 'revoked'],
    [ended, 'revoked'],
    [expired, 'expired'],
  ])
  expect(await states('elsewhere')).toEqual([[elsewhere, 'in']])
  const after = await waybill('audit', '--account', 'restored')
  expect(after.stdout.replace(before.stdout, '')).toMatch(
    new RegExp(`^\\S+\\tann@host\\tREVOKE_KEY\\t${old}\\trestored\\t.*\\n$`),
  )

  // of all accounts, and twice
  const all = await waybill('keys', 'revoke', '--all-except', `${kept},${elsewhere}`)
  expect([all.code, all.stderr]).toEqual([0, expect.stringMatching(/^revoked \d+ keys; kept 2\n$/)])
  const again = await waybill('keys', 'revoke', '--all-except', `${elsewhere},${kept}`)
  expect(again).toEqual({ code: 0, stdout: '', stderr: 'revoked 0 keys; kept 2\n' })
  expect((await waybill('keys', 'revoke', '--all-except', 'none')).stderr).toBe('revoked 2 keys; kept 0\n')
  expect(await states('elsewhere')).toEqual([[elsewhere, 'revoked']])
})

it.each([
  ['keys', 'revoke'],
  ['keys', 'revoke', '--all-except', ''],
  ['keys', 'revoke', '--all-except', 'mine'],
  ['keys', 'revoke', '--all-except', 'none,00000000-0000-4000-8000-000000000000'],
  ['keys', 'revoke', '--all-except', '00000000-0000-4000-8000-000000000000,'],
  ['keys', 'revoke', '00000000-0000-4000-8000-000000000000', '--all-except', 'none'],
  ['keys', 'revoke', '00000000-0000-4000-8000-000000000000', '--account', 'untouched'],
  ['keys', 'revoke', '--all-except', 'none', '--account', 'No such name'],
])('%s %s %s with wrong words revokes nothing', async (...words) => {
  await waybill('keys', 'create', '--account', 'untouched', '--scopes', 'payments:read')
  const before = await waybill('keys', 'list')
  expect(await waybill(...words)).toMatchObject({ code: 2, stdout: '' })
  expect(await waybill('keys', 'list')).toEqual(before)
})
