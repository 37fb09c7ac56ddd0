import { once } from 'node:events'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { paceAfter } from '../../src/detection/run/follow-step.ts'
import { keepLease } from '../../src/detection/run/followed-chain.ts'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import {
  acquireLease,
  assertLeaseHeld,
  CHAIN_LEASE_MS,
  LeaseLostError,
  releaseLease,
  renewLease,
} from '../../src/store/leases-repository.ts'
import { getOrCreateSecret, readSetting, writeSettingOnce } from '../../src/store/settings-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let db: TestDatabase

beforeAll(async () => {
  db = await createTestDatabase()
})

beforeEach(async () => {
  await db.knex('leases').delete()
})

afterAll(() => db.drop())

describe('settings', () => {
  test('eight processes that ask for a secret at once get the same 32 bytes', async () => {
    const pools = Array.from({ length: 8 }, () => createDatabase(db.connection, { poolMax: 1 }))
    const secrets = await Promise.all(pools.map((knex) => getOrCreateSecret(knex, 'cursor')))
    await Promise.all(pools.map((knex) => knex.destroy()))
    expect(new Set(secrets.map((secret) => secret.toString('hex'))).size).toBe(1)
    expect(secrets[0]).toHaveLength(32)
    expect(await getOrCreateSecret(db.knex, 'cursor')).toEqual(secrets[0])
  })

  test('secrets of different names differ', async () => {
    expect(await getOrCreateSecret(db.knex, 'one')).not.toEqual(await getOrCreateSecret(db.knex, 'two'))
  })

  test('a stored value never changes', async () => {
    expect(await readSetting(db.knex, 'stamp')).toBeUndefined()
    expect(await writeSettingOnce(db.knex, 'stamp', Buffer.from('demo'))).toEqual(Buffer.from('demo'))
    expect(await writeSettingOnce(db.knex, 'stamp', Buffer.from('real'))).toEqual(Buffer.from('demo'))
    expect(await readSetting(db.knex, 'stamp')).toEqual(Buffer.from('demo'))
  })
})

describe('leases', () => {
  const ann = { name: 'follow:base', owner: 'ann' }
  const bob = { name: 'follow:base', owner: 'bob' }
  const expire = () => db.knex('leases').update({ expires_at: db.knex.raw(`now() - interval '1 second'`) })

  test('one of twenty processes that ask at once gets it', async () => {
    const asked = Array.from({ length: 20 }, (_, n) => acquireLease(db.knex, { ...ann, owner: `owner-${n}` }, 60_000))
    expect((await Promise.all(asked)).filter(Boolean)).toHaveLength(1)
  })

  test('one of twenty processes that ask at once gets an expired one', async () => {
    await acquireLease(db.knex, ann, 60_000)
    await expire()
    const asked = Array.from({ length: 20 }, (_, n) => acquireLease(db.knex, { ...ann, owner: `owner-${n}` }, 60_000))
    expect((await Promise.all(asked)).filter(Boolean)).toHaveLength(1)
  })

  test('its owner may take it again and extend it; others may not', async () => {
    expect(await acquireLease(db.knex, ann, 60_000)).toBe(true)
    expect(await acquireLease(db.knex, ann, 60_000)).toBe(true)
    expect(await renewLease(db.knex, ann, 60_000)).toBe(true)
    expect(await acquireLease(db.knex, bob, 60_000)).toBe(false)
    expect(await renewLease(db.knex, bob, 60_000)).toBe(false)
  })

  test('leases of other names stay free', async () => {
    await acquireLease(db.knex, ann, 60_000)
    expect(await acquireLease(db.knex, { ...bob, name: 'follow:ethereum' }, 60_000)).toBe(true)
  })

  test('an expired one cannot be extended, and goes to whoever asks first', async () => {
    await acquireLease(db.knex, ann, 60_000)
    await expire()
    expect(await renewLease(db.knex, ann, 60_000)).toBe(false)
    expect(await acquireLease(db.knex, bob, 60_000)).toBe(true)
    expect(await acquireLease(db.knex, ann, 60_000)).toBe(false)
  })

  test('it expires by the clock of the database server', async () => {
    await acquireLease(db.knex, ann, 90_000)
    const { rows } = await db.knex.raw(
      `select expires_at - now() > interval '89 seconds' and expires_at - now() < interval '91 seconds' as right from leases`,
    )
    expect(rows).toEqual([{ right: true }])
  })

  test('a released one is free; releasing one of another owner does nothing', async () => {
    await acquireLease(db.knex, ann, 60_000)
    await releaseLease(db.knex, bob)
    expect(await acquireLease(db.knex, bob, 60_000)).toBe(false)
    await releaseLease(db.knex, ann)
    expect(await acquireLease(db.knex, bob, 60_000)).toBe(true)
  })

  test('a transaction of a process that lost it is refused', async () => {
    await acquireLease(db.knex, ann, 60_000)
    await expire()
    await expect(inTransaction(db.knex, undefined, (trx) => assertLeaseHeld(trx, ann))).rejects.toThrow(LeaseLostError)
    await acquireLease(db.knex, bob, 60_000)
    await expect(inTransaction(db.knex, undefined, (trx) => assertLeaseHeld(trx, ann))).rejects.toThrow(LeaseLostError)
    await inTransaction(db.knex, undefined, (trx) => assertLeaseHeld(trx, bob))
  })

  test('nobody takes it while a transaction asserts it, even after it expired', async () => {
    await acquireLease(db.knex, ann, 1_000)
    const events: string[] = []
    let taking: Promise<boolean> | undefined
    await inTransaction(db.knex, undefined, async (trx) => {
      await assertLeaseHeld(trx, ann)
      const ranOut = async () => {
        const { rows } = await trx.raw('select expires_at < clock_timestamp() as out from leases')
        expect(rows[0].out).toBe(true)
      }
      await vi.waitFor(ranOut, 5_000)
      taking = acquireLease(db.knex, bob, 60_000).finally(() => events.push('taken'))
      const waiting = async () => {
        const { rowCount } = await db.knex.raw(
          `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into leases%'`,
        )
        expect(rowCount).toBe(1)
      }
      await vi.waitFor(waiting, 5_000)
      events.push('committing')
    })
    expect(await taking).toBe(true)
    expect(events).toEqual(['committing', 'taken'])
  })
  test('work that holds it ends when another owner has it', async () => {
    await acquireLease(db.knex, bob, 60_000)
    const work = async (signal: AbortSignal) => {
      await once(signal, 'abort')
      signal.throwIfAborted()
    }
    await expect(keepLease({ knex: db.knex, lease: ann, leaseTtlMs: 30 }, work)).rejects.toThrow(LeaseLostError)
  })

  test('work that holds it goes on after it expired, where nobody else took it', async () => {
    await acquireLease(db.knex, ann, 60_000)
    await expire()
    const work = async (signal: AbortSignal) => {
      await expect.poll(() => renewLease(db.knex, ann, 60_000), { interval: 5 }).toBe(true)
      return signal.aborted
    }
    expect(await keepLease({ knex: db.knex, lease: ann, leaseTtlMs: 30 }, work)).toBe(false)
  })

  test('of a chain: a process that was killed is replaced within 5 seconds, and one that is slow for 2 seconds is not', () => {
    const checkEveryMs = paceAfter('ELSEWHERE', 0).waitMs
    expect(CHAIN_LEASE_MS + checkEveryMs).toBeLessThan(5_000)
    // It is renewed each third of its time, so that one renewal that is lost or late is made up for.
    expect(CHAIN_LEASE_MS - CHAIN_LEASE_MS / 3).toBeGreaterThanOrEqual(2_000)
  })
})
