import { Readable } from 'node:stream'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { canonical, makeRequest, storeRequest } from '../support/detection.ts'
import { runCommand } from '../support/run-command.ts'

let database: TestDatabase
let knex: Knex
beforeAll(async () => {
  database = await createTestDatabase()
  knex = database.knex
})
afterAll(() => database.drop())

async function check(...words: string[]) {
  const outcome = await runCommand({ DATABASE_URL: urlOfDatabase(database) }, ['verify', ...words])
  return { ...outcome, lines: outcome.stdout.split('\n').filter(Boolean) }
}

const PAYMENT_IDS = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`)

/** An account with a request of 100 that two payments cover, and a payment of no request; one of them was updated. */
async function seed(name: string): Promise<{ account: Account; requestId: string }> {
  const account = await createApiKeyRepository(knex).ensureAccount(name)
  const request = await storeRequest(
    knex,
    account,
    makeRequest({ network: 'BASE', payee: canonical(`0x${'a1'.repeat(20)}`) }),
  )
  const line = (id: string | undefined, more: object) => ({
    id,
    status: 'PARTIAL',
    timestamp: '2026-11-01T12:00:00Z',
    updatedAt: '2026-11-01T12:01:00Z',
    amount: '50',
    currency: 'USDC-BASE',
    network: 'BASE',
    ...more,
  })
  const lines = [
    line(PAYMENT_IDS[0], { requestId: request.requestId }),
    line(PAYMENT_IDS[1], { requestId: request.requestId }),
    line(PAYMENT_IDS[2], { paymentReference: '0x00000000000000aa', status: 'CONFIRMED' }),
    line(PAYMENT_IDS[2], {
      paymentReference: '0x00000000000000aa',
      status: 'FAILED',
      updatedAt: '2026-11-02T12:00:00Z',
    }),
  ]
  const text = lines.map((each) => JSON.stringify(each)).join('\n')
  const { bad } = await importLines(Readable.from([Buffer.from(text)]), importPayments(knex, account))
  expect(bad).toBe(0)
  return { account, requestId: request.requestId }
}

describe('waybill verify without chains', () => {
  it('writes nothing to standard output for an account without differences', async () => {
    await seed('sound')
    const checked = await check('--account', 'sound')
    expect(checked).toMatchObject({ code: 0, stdout: '' })
    // Two inserts for the request, which settling updates twice, and its own change; one insert without a request, and its update.
    expect(checked.stderr).toBe(
      'no chains are configured: only what is derived from payments is compared\nsound: 3 stored payments, 7 changes, 1 requests\nno difference\n',
    )
  })

  const broken: [name: string, statements: readonly string[], expected: RegExp][] = [
    [
      'a wrong count',
      [`update payment_statistics set n = n + 1 where account_id = :account and status = 3`],
      /^STATISTICS\t-\t-\tBASE - USDC-BASE - - CONFIRMED\t3 USDC .*\t2 USDC 2026-11-01T12:00:00Z to 2026-11-01T12:00:00Z$/,
    ],
    [
      'a time bound that excludes payments',
      [`update payment_statistics set last_at = '2026-11-01T11:59:59Z' where account_id = :account and status = 3`],
      /^STATISTICS\t-\t-\tBASE - USDC-BASE - - CONFIRMED\t2 USDC .* to 2026-11-01T11:59:59Z\t2 USDC .* to 2026-11-01T12:00:00Z$/,
    ],
    [
      'a combination that is not counted',
      [`delete from payment_statistics where account_id = :account and status = 5`],
      /^STATISTICS\t-\t-\tBASE - USDC-BASE - - FAILED\tnone\t1 USDC/,
    ],
    [
      'metadata that is not indexed',
      [`update payments set metadata = '{"order":"1"}' where account_id = :account and id = '${PAYMENT_IDS[2]}'`],
      /^STATISTICS\t-\t-\t\S+ order=1\tnone\t5 2026-11-01 12:00:00\+00 \S+ \S+ BASE USDC USDC-BASE 50$/,
    ],
    [
      'an index of metadata that no payment has',
      [
        `insert into payment_metadata select account_id, id, 'order=1', status, timestamp, changed_at, type, network, source_network,
           currency_symbol, currency, invoice_currency, amount, null, null from payments
         where account_id = :account and id = '${PAYMENT_IDS[2]}'`,
      ],
      /^STATISTICS\t-\t-\t\S+ order=1\t5 2026-11-01 12:00:00\+00 .* 50\tnone$/,
    ],
    [
      'a gap in the log',
      [`delete from payment_changes where account_id = :account and change in (2, 3)`],
      /^CHANGES\t-\t-\t2 to 3\tnone\tone of each from 1 to 7$/,
    ],
    [
      'a logged change that is not counted',
      [`update account_changes set last_change = 5 where account_id = :account`],
      /^CHANGES\t-\t-\t6 to 7\tlogged\tnone but from 1 to 5$/,
    ],
    [
      'a change that should have been pruned',
      [`update account_changes set pruned_change = 1 where account_id = :account`],
      /^CHANGES\t-\t-\t1\tlogged\tnone but from 2 to 7$/,
    ],
    [
      'an update without the row before',
      [`update payment_changes set old = null where account_id = :account and change = 6`],
      /^CHANGES\t-\t-\t6 of \S+\tkind 2 without the row before\tthe row before$/,
    ],
    [
      'a payment that was deleted without a logged change',
      [
        `delete from payments where account_id = :account and id = '${PAYMENT_IDS[2]}'`,
        `update payment_statistics set n = n - 1 where account_id = :account and status = 5`,
      ],
      /^CHANGES\t-\t-\t\d of \S+3\tno delete of a missing payment\ta payment$/,
    ],
    [
      'a payment with the wrong status for its request',
      [
        `update payments set status = 2 where account_id = :account and id = '${PAYMENT_IDS[0]}'`,
        `update payment_statistics set n = 1 where account_id = :account and status in (2, 3)`,
      ],
      /^PAYMENT\t\S+1\t-\tsettled\tPARTIAL\tCONFIRMED$/,
    ],
    [
      'a wrong amount of what is held',
      ['update requests set held = 7 where account_id = :account'],
      /^REQUEST\t01\w+\t-\tsettled\t\w+, \S+ paid, 0 pending, 7 held\t\w+, \S+ paid, 0 pending, \S+ held$/,
    ],
    [
      'a request whose topics are missing',
      ['delete from reference_topics where account_id = :account'],
      /^REQUEST\t01\w+\t-\tsettled\ta topic is missing\tits topics are stored$/,
    ],
    [
      'a payment that is not linked to the request of its reference',
      [`update requests set payment_reference = decode('00000000000000aa', 'hex') where account_id = :account`],
      /^PAYMENT\t\S+3\t-\tsettled\tno request\trequest 01\w+, whose reference it names$/,
    ],
  ]
  it.each(broken)('reports %s', async (name, statements, expected) => {
    const { account } = await seed(name.replaceAll(' ', '-'))
    for (const statement of statements) await knex.raw(statement, { account: account.id })
    const checked = await check('--account', account.name)
    expect(checked.lines).toHaveLength(1)
    const [line = ''] = checked.lines
    const [kind, owner, ...rest] = line.split('\t')
    expect(owner).toBe(account.name)
    expect([kind, ...rest].join('\t')).toMatch(expected)
    expect(checked.code).toBe(1)
    expect(checked.stderr).toContain(`\n1 difference\nto repair: waybill verify --account ${account.name} --repair\n`)
  })

  it('repairs what is derived from the payments, and reports the rest', async () => {
    const { account, requestId } = await seed('repaired')
    const { id } = account
    await knex('payment_statistics').where({ account_id: id }).update({ n: 7 })
    await knex('payment_changes').where({ account_id: id, change: 3 }).delete()
    await knex('requests').where({ account_id: id }).update({ held: 7 })
    await knex('payment_metadata').insert({
      account_id: id,
      id: PAYMENT_IDS[0],
      pair: 'a=b',
      status: 3,
      timestamp: new Date(),
      changed_at: new Date(),
      network: 'BASE',
      currency_symbol: 'USDC',
      currency: 'USDC-BASE',
      amount: 50,
    })
    expect((await check('--account', account.name, '--repair')).code).toBe(0)
    expect(await check('--account', account.name)).toMatchObject({ code: 0, stdout: '' })
    // A watch at change 5 cannot know what followed it.
    expect(await knex('account_changes').where({ account_id: id })).toMatchObject([
      { last_change: 8n, pruned_change: 8n },
    ])

    await knex('reference_topics').where({ account_id: id }).delete()
    await knex('payments').where({ account_id: id, id: PAYMENT_IDS[0] }).update({ status: 2 })
    const { code, lines, stderr } = await check('--account', account.name, '--repair')
    expect(code).toBe(1)
    expect(lines.filter((line) => line.endsWith('\tPARTIAL\tCONFIRMED'))).toHaveLength(1)
    expect(stderr).toContain(`could not be repaired: REQUEST\trepaired\t${requestId}\t`)
    expect(stderr).toMatch(/\n\d differences repaired, 1 left\n$/)
    expect((await check('--account', account.name)).lines).toHaveLength(1)
    await knex('requests').where({ account_id: id }).delete()
  })

  it('checks every account by default', async () => {
    const { code, lines } = await check()
    expect(code).toBe(1)
    expect(new Set(lines.map((line) => line.split('\t')[1]))).toEqual(
      new Set(broken.map(([name]) => name.replaceAll(' ', '-'))),
    )
  })

  it('fails for an unknown account and for an invalid account name', async () => {
    expect(await check('--account', 'nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no account "nobody"\n'),
    })
    expect(await check('--account', 'No Body')).toMatchObject({ code: 2, stdout: '' })
  })
})
