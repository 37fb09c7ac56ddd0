import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { behaviours, checkReceived, startAll } from './many-changes.ts'
import { openStage, paymentId, type Received, type Receiver, type Stage, startReceiver } from './webhook-stage.ts'

// What receivers get, over sockets, of changes in a real database.

let stage: Stage
const receivers: Receiver[] = []
beforeEach(async () => {
  stage = await openStage()
})
afterEach(async () => {
  await stage.stop()
  await Promise.all(receivers.splice(0).map((each) => each.stop()))
})

async function receiver(...of: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...of)
  receivers.push(started)
  return started
}

const by = { actor: 'test' }
const numberOf = ({ data }: Received) => Number(data.id.slice(-12))
const eventsOf = (received: readonly Received[]) => received.map((each) => `${each.type} ${numberOf(each)}`)
const idOf = ({ headers }: Received) => headers['webhook-id']
const webhooks = () => stage.service.webhooks.service
const stateOf = (id: string) => webhooks().get(stage.account, id)
const later = (seconds: number) => {
  stage.clock.now = new Date(stage.clock.now.getTime() + seconds * 1_000)
}

it('sends what is added, updated and removed, in order, signed after Standard Webhooks', async () => {
  const shop = await receiver()
  const { id, secret } = await stage.create({ url: shop.url })
  await stage.run(await stage.sender())
  await stage.addPayments(2)
  await stage.setStatus([1], 4)
  await stage.removePayments(1)
  await shop.until(() => shop.received.length === 4)
  const ofFirst = shop.received.filter(({ data }) => data.id === paymentId(1))
  expect(eventsOf(ofFirst)).toEqual(['payment.added 1', 'payment.updated 1', 'payment.removed 1'])
  expect(ofFirst.map(({ data }) => data.status)).toEqual(['CONFIRMED', 'REFUNDED', undefined])
  expect(ofFirst[2]?.data).toEqual({ id: paymentId(1), changedAt: expect.stringMatching(/Z$/) })
  for (const { body, headers } of shop.received) {
    expect(headers['webhook-timestamp']).toBe(String(stage.clock.now.getTime() / 1_000))
    expect(Buffer.byteLength(body)).toBeLessThan(20_000)
    // The package verifies with the machine's clock, so its signature is compared.
    const signed = new Webhook(secret).sign(String(headers['webhook-id']), stage.clock.now, body)
    expect(headers['webhook-signature']).toBe(signed)
  }
  expect(new Set(shop.received.map(idOf)).size).toBe(4)
  await expect.poll(async () => (await stateOf(id)).position).toBe(4n)
})

it('sends what the filter and the kinds choose; what no longer matches is removed and has the payment', async () => {
  const shop = await receiver()
  await stage.create({
    url: shop.url,
    filter: 'status=CONFIRMED&reference=INV-2',
    kinds: ['payment.added', 'payment.removed'],
  })
  await stage.run(await stage.sender())
  await stage.addPayments(3)
  await stage.setStatus([2], 1)
  await shop.until(() => shop.received.length === 2)
  expect(eventsOf(shop.received)).toEqual(['payment.added 2', 'payment.removed 2'])
  expect(shop.received[1]?.data).toMatchObject({ payment: { id: paymentId(2), status: 'PENDING' } })
})

it('leaves the lists out of a body that would be too long, and says so', async () => {
  const shop = await receiver()
  await stage.create({ url: shop.url })
  await stage.run(await stage.sender())
  await stage.addPayments(1)
  const history = JSON.stringify(Array.from({ length: 500 }, () => ({ status: 'PENDING', at: '2026-03-01T00:00:00Z' })))
  const update = 'update payments set status_history = ?::jsonb where account_id = ?'
  const { changePayments } = await import('../support/data/write-payments.ts')
  await stage.write((locked) => changePayments(locked, { sql: update, bindings: [history, stage.account.id] }))
  await shop.until(() => shop.received.length === 2)
  const [, long] = shop.received as [Received, Received]
  expect(Buffer.byteLength(long.body)).toBeLessThan(20_000)
  expect(JSON.parse(long.body)).toMatchObject({ incomplete: true, data: { id: paymentId(1), amount: '1' } })
})

describe('what fails', () => {
  it('is retried by its own clock; later changes of its payment wait, other payments do not', async () => {
    let isBroken = true
    const shop = await receiver((got) => (isBroken && numberOf(got) === 1 ? 500 : 204))
    const { id } = await stage.create({ url: shop.url })
    await stage.run(await stage.sender())
    await stage.addPayments(3)
    await shop.until(() => shop.received.length === 3)
    await stage.setStatus([1, 2], 4)
    await shop.until(() => shop.received.length === 4)
    expect(eventsOf(shop.received.slice(3))).toEqual(['payment.updated 2'])
    const listed = async () => (await webhooks().deliveries(stage.account, id)).deliveries
    // A delivery is written down after it was answered.
    await expect
      .poll(async () => (await listed()).map(({ state, kind }) => `${state} ${kind}`).slice(0, 3))
      .toEqual(['RETRYING payment.added', 'WAITING payment.updated', 'DELIVERED payment.updated'])
    expect((await stateOf(id)).parked).toBe(2)
    expect((await listed())[0]).toMatchObject({ status: 500, failure: 'it answered 500', attempts: 1 })
    isBroken = false
    later(5)
    await shop.until(() => shop.received.length === 6)
    expect(eventsOf(shop.received.slice(4))).toEqual(['payment.added 1', 'payment.updated 1'])
    const [first] = shop.received.filter((each) => numberOf(each) === 1) as [Received]
    expect(idOf(shop.received[4] as Received)).toBe(idOf(first))
    await expect.poll(() => stateOf(id)).toMatchObject({ parked: 0, position: 5n, lostChanges: 0n })
  })

  it('pauses the webhook with a warning after the last retry; resumed, it goes on without loss', async () => {
    let status = 503
    const shop = await receiver(() => status)
    const { id } = await stage.create({ url: shop.url })
    await stage.run(await stage.sender())
    await stage.addPayments(1)
    const pauses = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
    for (const [retry, seconds] of pauses.entries()) {
      await expect
        .poll(async () => (await webhooks().deliveries(stage.account, id)).deliveries[0]?.attempts)
        .toBe(retry + 1)
      const [parked] = (await webhooks().deliveries(stage.account, id)).deliveries
      expect(parked?.dueAt?.getTime()).toBe(stage.clock.now.getTime() + seconds * 1_000)
      later(seconds)
      await shop.until(() => shop.received.length === retry + 2)
    }
    await expect.poll(() => stateOf(id)).toMatchObject({ paused: { reason: 'RETRIES_EXHAUSTED' } })
    expect(stage.logs.records).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'a webhook is paused',
        fields: expect.objectContaining({ webhook: id }),
      }),
    )
    await stage.addPayments(1, 2)
    status = 200
    await webhooks().update(stage.account, id, { kinds: [], isPaused: false }, by)
    await shop.until(() => shop.received.length === 12)
    expect(eventsOf(shop.received.slice(10)).toSorted()).toEqual(['payment.added 1', 'payment.added 2'])
    expect(new Set(shop.received.map(idOf)).size).toBe(2)
  })

  it('waits as long as Retry-After says, if that is longer; a redirect is not followed; 410 pauses at once', async () => {
    const other = await receiver()
    const answers = [
      { status: 429, headers: { 'retry-after': '60' } },
      { status: 302, headers: { location: other.url } },
      410,
    ] as const
    const shop = await receiver((_, nth) => answers[nth - 1] ?? 204)
    const { id } = await stage.create({ url: shop.url })
    await stage.run(await stage.sender())
    await stage.addPayments(1)
    const attempt = async () => (await webhooks().deliveries(stage.account, id)).deliveries[0]
    await expect.poll(async () => (await attempt())?.attempts).toBe(1)
    expect((await attempt())?.dueAt?.getTime()).toBe(stage.clock.now.getTime() + 60_000)
    later(60)
    await expect.poll(async () => (await attempt())?.failure).toBe('it redirects, which is not followed')
    later(300)
    await expect.poll(() => stateOf(id)).toMatchObject({ paused: { reason: 'GONE' }, parked: 1 })
    expect(other.received).toEqual([])
    expect(shop.received).toHaveLength(3)
  })

  it('is sent under a filter that was changed meanwhile, as what it is there', async () => {
    let status = 500
    const shop = await receiver(() => status)
    const { id } = await stage.create({ url: shop.url, filter: 'status=CONFIRMED' })
    const first = await stage.sender()
    await first.round()
    await stage.addPayments(1)
    await stage.setStatus([1], 4)
    await expect.poll(async () => (await stateOf(id)).parked).toBe(2)
    // It would try once more under the filter that it knows, before it learns of the other.
    await first.end()
    status = 204
    await webhooks().update(stage.account, id, { kinds: [], filter: 'status=REFUNDED' }, by)
    later(5)
    await stage.run(await stage.sender())
    await shop.until(() => shop.received.length >= 2)
    await expect.poll(() => stateOf(id)).toMatchObject({ parked: 0, lostChanges: 0n })
    expect(eventsOf(shop.received)).toEqual(['payment.added 1', 'payment.added 1'])
  })

  it('is never tried sooner than its schedule, and never again once it was accepted', async () => {
    const tries = new Map<unknown, { readonly atMs: number; readonly status: number }[]>()
    const shop = await receiver((got) => {
      const made = tries.get(idOf(got)) ?? []
      // Half of the attempts fail, the fourth never.
      const draw = Number.parseInt(String(idOf(got)).slice(4 + made.length), 16) % 2
      const status = made.length < 3 && draw === 0 ? 500 : 204
      tries.set(idOf(got), [...made, { atMs: stage.clock.now.getTime(), status }])
      return status
    })
    const { id } = await stage.create({ url: shop.url })
    await stage.run(await stage.sender())
    await stage.addPayments(100)
    await stage.setStatus([1, 2, 3], 4)
    const passing = setInterval(() => later(60), 50)
    await expect.poll(() => stateOf(id), { timeout: 50_000 }).toMatchObject({ parked: 0, position: 103n })
    clearInterval(passing)
    expect(tries.size).toBe(103)
    for (const made of tries.values()) {
      expect(made.map(({ status }) => status)).toEqual([...made.slice(1).map(() => 500), 204])
      const pauses = made.slice(1).map(({ atMs }, nth) => (atMs - (made[nth]?.atMs ?? 0)) / 1_000)
      expect(pauses.filter((pause, nth) => pause < ([5, 300, 1_800][nth] ?? 0))).toEqual([])
    }
    expect(stage.logs.records.map(({ message }) => message)).not.toContain('sending webhooks failed; trying again')
  }, 60_000)

  it('delays no other webhook: one that never answers, one that breaks off, one that is away', async () => {
    const silent = await receiver(() => 'never')
    const broken = await receiver(() => 'break')
    const away = await receiver()
    await away.stop()
    receivers.splice(receivers.indexOf(away), 1)
    const shop = await receiver()
    for (const { url } of [silent, broken, away, silent, broken, away, shop]) await stage.create({ url })
    await stage.run(await stage.sender({ timeoutMs: 600_000 }))
    await stage.addPayments(200)
    // The silent ones hold theirs for ten minutes.
    await shop.until(() => shop.received.length === 200)
    expect(silent.received.length).toBeLessThanOrEqual(2 * 8)
  })
})

it('beyond 1,000 parked deliveries one is tried every five minutes, and all once it succeeds', async () => {
  let status = 500
  const shop = await receiver(() => status)
  const { id } = await stage.create({ url: shop.url })
  await stage.addPayments(1_000)
  await stage.knex.raw(
    `insert into parked_deliveries (account_id, endpoint_id, change, changed_at, kind, subject, attempts, attempted_at, due_at)
     select account_id, ?, change, at, 'payment.added', payment_id, 7, ?::timestamptz, ?::timestamptz + interval '14 hours' from payment_changes`,
    [id, stage.clock.now, stage.clock.now],
  )
  await stage.knex('webhook_endpoints').update({ position: 1_000 })
  await stage.addPayments(1, 1_001)
  await stage.run(await stage.sender())
  const warnings = () => stage.logs.records.filter(({ message }) => message.startsWith('too many deliveries'))
  const parked = () => stage.knex('parked_deliveries').orderBy('due_at').select('attempts', 'due_at')
  for (const probes of [0, 1, 2]) {
    expect(shop.received).toHaveLength(probes)
    const dueAt = new Date(stage.clock.now.getTime() + 300_000)
    // Its attempt will not count.
    await expect.poll(async () => (await parked())[0]).toEqual({ attempts: 6, due_at: dueAt })
    expect((await parked()).filter(({ attempts }) => attempts === 7)).toHaveLength(999)
    if (probes === 2) status = 204
    later(300)
    await shop.until(() => shop.received.length > probes)
  }
  await shop.until(() => shop.received.length > 100 && shop.received.some((got) => numberOf(got) === 1_001))
  expect(warnings()).toHaveLength(1)
}, 60_000)

describe('replay', () => {
  it('sends again from a position or a time, with the ids of before', async () => {
    const shop = await receiver()
    const { id } = await stage.create({ url: shop.url })
    await stage.run(await stage.sender())
    await stage.addPayments(2)
    await shop.until(() => shop.received.length === 2)
    later(60)
    const noon = stage.clock.now.toISOString()
    await stage.addPayments(2, 3)
    await shop.until(() => shop.received.length === 4)
    const isSaved = async () => {
      await expect.poll(async () => (await stateOf(id)).position).toBe(4n)
    }
    await isSaved()
    await webhooks().replay(stage.account, id, { fromPosition: 1n }, by)
    await shop.until(() => shop.received.length === 7)
    await isSaved()
    await webhooks().replay(stage.account, id, { fromTime: noon }, by)
    await shop.until(() => shop.received.length === 9)
    const numbers = shop.received.map(numberOf)
    expect(new Set(numbers.slice(4, 7))).toEqual(new Set([2, 3, 4]))
    expect(new Set(numbers.slice(7))).toEqual(new Set([3, 4]))
    expect(new Set(shop.received.map((each) => JSON.stringify([idOf(each), each.body]))).size).toBe(4)
  })

  it('skips nothing that was not sent yet', async () => {
    const shop = await receiver()
    const { id } = await stage.create({ url: shop.url })
    await webhooks().update(stage.account, id, { kinds: [], isPaused: true }, by)
    await stage.addPayments(2)
    later(60)
    await webhooks().replay(stage.account, id, { fromTime: stage.clock.now.toISOString() }, by)
    await webhooks().update(stage.account, id, { kinds: [], isPaused: false }, by)
    await stage.run(await stage.sender())
    await shop.until(() => shop.received.length === 2)
    expect(new Set(shop.received.map(numberOf))).toEqual(new Set([1, 2]))
  })

  it('refuses what the log does not have', async () => {
    const { id } = await stage.create({ url: 'http://127.0.0.1:1/' })
    await stage.addPayments(2)
    const replay = (input: object) => webhooks().replay(stage.account, id, input, by)
    await expect(replay({})).rejects.toMatchObject({ reason: 'MISSING_FIELD' })
    await expect(replay({ fromPosition: 3n })).rejects.toMatchObject({ reason: 'INVALID_FIELD' })
    await expect(replay({ fromTime: '2026-02-22T11:59:59Z' })).rejects.toMatchObject({ reason: 'REPLAY_TOO_OLD' })
    await stage.knex('account_changes').update({ pruned_change: 1 })
    await expect(replay({ fromPosition: 0n })).rejects.toMatchObject({ reason: 'REPLAY_TOO_OLD' })
  })

  it('says how many changes were pruned before they were sent', async () => {
    const shop = await receiver()
    const { id } = await stage.create({ url: shop.url })
    await stage.addPayments(3)
    await stage.knex('payment_changes').where('change', '<=', 2).delete()
    await stage.knex('account_changes').update({ pruned_change: 2 })
    await stage.run(await stage.sender())
    await shop.until(() => shop.received.length === 1)
    await expect.poll(() => stateOf(id)).toMatchObject({ lostChanges: 2n, position: 3n })
  })
})

it('signs with both secrets for a day after a rotation, and stores none', async () => {
  const shop = await receiver()
  const { id, secret: old } = await stage.create({ url: shop.url })
  const { secret } = await webhooks().rotate(stage.account, id, by)
  await stage.run(await stage.sender())
  await stage.addPayments(1)
  await shop.until(() => shop.received.length === 1)
  later(24 * 3_600)
  await stage.addPayments(1, 2)
  await shop.until(() => shop.received.length === 2)
  const signatures = shop.received.map(({ headers }) => String(headers['webhook-signature']).split(' '))
  const expected = (each: string, at: number) => {
    const { headers, body } = shop.received[at] as Received
    return new Webhook(each).sign(
      String(headers['webhook-id']),
      new Date(Number(headers['webhook-timestamp']) * 1_000),
      body,
    )
  }
  expect(signatures).toEqual([[expected(secret, 0), expected(old, 0)], [expected(secret, 1)]])
  expect(secret).not.toBe(old)
  const { rows } = await stage.knex.raw('select webhook_endpoints::text as row from webhook_endpoints')
  expect(JSON.stringify([rows, stage.logs.records])).not.toMatch(/whsec_/)
})

it('a second process takes half of the accounts, and goes on at the position of one that ended', async () => {
  const shop = await receiver()
  const { id } = await stage.create({ url: shop.url })
  const [first, second] = [await stage.sender(), await stage.sender()]
  await first.round()
  await stage.addPayments(20)
  await shop.until(() => shop.received.length === 20)
  await expect.poll(async () => (await stateOf(id)).position).toBe(20n)
  const holders = async () => {
    const names = await stage.knex('leases').whereLike('name', 'webhooks:%').select('owner')
    return Object.values(Object.groupBy(names, ({ owner }) => owner)).map((of) => of?.length)
  }
  expect(await holders()).toEqual([16])
  await second.round()
  await first.round()
  await second.round()
  expect(await holders()).toEqual([8, 8])
  await first.end()
  await stage.run(second)
  await stage.addPayments(20, 21)
  await shop.until(() => shop.received.length === 40)
  expect(shop.received.map(numberOf).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 1))
})

it('every change arrives, in order for each payment, whatever receivers do', async () => {
  const all = await startAll(stage)
  receivers.push(...all)
  const sender = await stage.sender({ timeoutMs: 1_000 })
  await stage.run(sender)
  const numbers = Array.from({ length: 100 }, (_, at) => at + 1)
  await stage.addPayments(100)
  await stage.setStatus(numbers, 4)
  await stage.setStatus(numbers, 3)
  await stage.removePayments(1, 50)
  const changes = ['payment.added', 'payment.updated', 'payment.updated']
  const expected = new Map(numbers.map((n) => [paymentId(n), n <= 50 ? [...changes, 'payment.removed'] : changes]))
  // Time passes, so that what failed is tried again.
  const passing = setInterval(() => later(60), 100)
  await Promise.all(all.map((each) => each.until(() => each.ids.size === 350)))
  clearInterval(passing)
  for (const each of all) checkReceived(each, expected)
  expect(all.length).toBe(behaviours.length)
}, 60_000)
