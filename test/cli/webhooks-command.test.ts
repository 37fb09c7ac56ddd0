import { afterAll, beforeAll, expect, it } from 'vitest'
import { urlOfDatabase } from '../support/data/database.ts'
import { startWaybill } from '../support/process.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { openStage, type Receiver, type Stage, startReceiver } from '../webhooks/webhook-stage.ts'

let stage: Stage
let shop: Receiver
let status = 204
beforeAll(async () => {
  stage = await openStage({ realTime: true })
  shop = await startReceiver(() => status)
})
afterAll(async () => {
  await stage?.stop()
  await shop?.stop()
})

async function webhooks(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const environment = { DATABASE_URL: urlOfDatabase(stage.database), CHAINS_FILE: 'none', ...more }
  const outcome = await runCommand(environment, ['webhooks', ...words, '--account', 'shop'])
  return { ...outcome, rows: rowsOf(outcome.stdout) }
}

const local = { WEBHOOK_ALLOW_PRIVATE: 'true' }

it('creates, lists, tests, pauses, resumes, rotates, replays and removes', async () => {
  const created = await webhooks(
    ['create', shop.url, '--filter', 'status=CONFIRMED', '--kinds', 'payment.added'],
    local,
  )
  const [[id = '', secret = ''] = []] = created.rows
  expect(created).toMatchObject({ code: 0, stdout: `${id}\t${secret}\n` })
  expect(secret).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/)
  expect((await webhooks(['list'])).rows).toEqual([[id, shop.url, 'ACTIVE', '0 of 0', '0 parked', '0 lost']])
  expect(await webhooks(['test', id], local)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^msg_\S+\tanswered 204\n$/),
  })
  status = 500
  expect(await webhooks(['test', id], local)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('it answered 500'),
  })
  expect(await webhooks(['test', id])).toMatchObject({ code: 1, stdout: expect.stringContaining('not public') })
  status = 204
  expect((await webhooks(['pause', id])).rows[0]?.[2]).toMatch(/^PAUSED BY_ACCOUNT 20/)
  expect((await webhooks(['resume', id])).rows[0]?.[2]).toBe('ACTIVE')
  expect((await webhooks(['rotate', id])).stdout).not.toBe(`${secret}\n`)
  await stage.addPayments(3)
  // Nothing was sent yet, so nothing is skipped.
  expect((await webhooks(['replay', id, '--position', '1'])).rows[0]?.[3]).toBe('0 of 3')
  expect((await webhooks(['replay', id, '--since', '2026-03-01T00:00:00Z'])).code).toBe(1)
  expect(await webhooks(['remove', id])).toMatchObject({ code: 0 })
  expect(await webhooks(['remove', id])).toMatchObject({ code: 1, stderr: expect.stringContaining('has no webhook') })
  const { rows } = await stage.knex.raw('select action from audit_log order by id')
  expect(rows.map(({ action }: { action: string }) => action)).toEqual([
    'CREATE_WEBHOOK',
    'UPDATE_WEBHOOK',
    'UPDATE_WEBHOOK',
    'ROTATE_WEBHOOK_SECRET',
    'REPLAY_WEBHOOK',
    'REMOVE_WEBHOOK',
  ])
})

it.each([
  [['create', 'http://shop.example/'], 'https'],
  [['create', 'https://10.0.0.1/'], 'no public address'],
  [['create', 'https://shop.example/', '--kinds', 'payment.add'], 'payment.added'],
  [['create', 'https://shop.example/', '--filter', 'stat=PAID'], 'status'],
  [
    ['listen', '--forward', 'localhost:3000/webhooks'],
    '--forward is "localhost:3000/webhooks": it is not http:// or https://',
  ],
  [['listen', '--forward', ''], '--forward'],
  [['replay', '00000000-0000-4000-8000-000000000000'], '--since or --position'],
])('%s is wrong usage', async (words, says) => {
  expect(await webhooks(words)).toMatchObject({ code: 2, stderr: expect.stringContaining(says) })
})

it.each([[[]], [['--forward']]])('listen %s shows what is delivered, verified', async (words) => {
  const before = shop.received.length
  const environment = { DATABASE_URL: urlOfDatabase(stage.database), CHAINS_FILE: 'none' }
  const forward = words.length === 0 ? [] : [...words, shop.url]
  const listening = startWaybill(['webhooks', 'listen', '--account', 'shop', ...forward], environment)
  await listening.says(/the secret is whsec_\S+\nlistening to changes of shop/, 'stderr')
  await stage.addPayments(1, 100 * (words.length + 1))
  await listening.says(/\tpayment\.added\tanswered 204\t\{"type":"payment\.added"/)
  listening.kill('SIGINT')
  expect((await listening.ended).code).toBe(0)
  expect(shop.received.length - before).toBe(words.length)
})
