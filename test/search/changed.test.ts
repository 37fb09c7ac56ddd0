import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PaymentPage } from '../../src/search/page/payment-search.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { generatePayments, insertPayments, type StoredPayment } from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { account, type OpenedSearch, openSearch } from './open-search.ts'

// The order of changes, with what was removed in its places.

let opened: OpenedSearch

/** Payments of many transactions, of which some delete, and some delete and store the same again. */
beforeAll(async () => {
  opened = await openSearch()
  const { knex } = opened.database
  for (let nth = 0; nth < 12; nth++) {
    await insertPayments(knex, withoutEvents(5, 100 + nth))
    await knex.transaction(async (trx) => {
      const locked = await lockAccount(trx, account.id, new Date())
      const like = `${nth.toString(16)}%`
      const change = (sql: string) => changePayments(locked, { sql, bindings: [account.id, like] })
      if (nth % 3 === 0)
        await change('update payments set amount = amount + 1 where account_id = ? and id::text like ?')
      else await change('delete from payments where account_id = ? and id::text like ?')
    })
  }
  // deleted and stored again by one transaction: not removed
  const [again] = withoutEvents(1, 555)
  await insertPayments(knex, again === undefined ? [] : [again])
  await knex.transaction(async (trx) => {
    const locked = await lockAccount(trx, account.id, new Date())
    const row = await trx('payments').where({ account_id: account.id, id: again?.payment.id }).first()
    const bindings = [account.id, row.id]
    await changePayments(locked, { sql: 'delete from payments where account_id = ? and id = ?', bindings })
    const json = ['fees', 'exchange_rates', 'gas', 'refunds', 'status_history'].map((name) => [
      name,
      row[name] === null ? null : JSON.stringify(row[name]),
    ])
    const { sql, bindings: values } = trx('payments')
      .insert({ ...row, ...Object.fromEntries(json) })
      .toSQL()
    await changePayments(locked, { sql, bindings: values })
  })
})
afterAll(() => opened.database.drop())

/** Payments of random ids; those of `openSearch` have their events. */
function withoutEvents(count: number, seed: number): StoredPayment[] {
  return generatePayments(account.id, count, seed).map((stored) => ({
    ...stored,
    payment: { ...stored.payment, eventIndex: undefined },
  }))
}

interface Place {
  readonly id: string
  readonly at: string
  readonly isRemoved: boolean
}

const placesOf = ({ payments, removed }: PaymentPage): Place[] =>
  [
    ...payments.map(({ id, changedAt }) => ({ id, at: changedAt?.toISOString() ?? '', isRemoved: false })),
    ...removed.map(({ id, changedAt }) => ({ id, at: changedAt.toISOString(), isRemoved: true })),
  ].toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))

const keyOf = ({ at, id }: Place) => `${at} ${id}`

async function expected(): Promise<Place[]> {
  const { rows } = await opened.database.knex.raw<{ rows: { id: string; at: Date; removed: boolean }[] }>(
    `select id, changed_at as at, false as removed from payments where account_id = ?
     union all select id, changed_at, true from removed_payments r where account_id = ?
       and not exists (select from payments p where p.id = r.id and p.account_id = r.account_id and p.changed_at = r.changed_at)
     order by at, id`,
    [account.id, account.id],
  )
  return rows.map(({ id, at, removed }) => ({ id, at: at.toISOString(), isRemoved: removed }))
}

test.each([
  ['asc', 1],
  ['asc', 7],
  ['desc', 1],
  ['desc', 4],
  ['desc', 100],
] as const)('%s in pages of %i: every change comes once, forward and back', async (sortOrder, limit) => {
  const all = await expected()
  const inOrder = sortOrder === 'asc' ? all : all.toReversed()
  const pages = [await opened.search({ sortBy: 'changed', sortOrder, limit })]
  for (let cursor = pages[0]?.pagination.nextCursor; cursor !== undefined; ) {
    const page = await opened.search({ cursor })
    pages.push(page)
    cursor = page.pagination.nextCursor
  }
  const read = (some: readonly PaymentPage[]) =>
    some.flatMap((page) => (sortOrder === 'asc' ? placesOf(page) : placesOf(page).toReversed()))
  expect(read(pages)).toEqual(inOrder)
  expect(pages.slice(0, -1).every((page) => placesOf(page).length === limit)).toBe(true)
  const back = pages.slice(-1)
  for (let cursor = back[0]?.pagination.prevCursor; cursor !== undefined; ) {
    const page = await opened.search({ cursor })
    back.unshift(page)
    cursor = page.pagination.prevCursor
  }
  expect(read(back)).toEqual(inOrder)
  expect(all.filter(({ isRemoved }) => isRemoved).length).toBeGreaterThan(30)
})

test('a range bounds both, and the answer is complete to its end or to the last change', async () => {
  const all = await expected()
  const [from = '', to = ''] = [all[50]?.at, all[250]?.at]
  const { removed, completeTo } = await opened.search({
    sortBy: 'changed',
    changedFrom: from,
    changedTo: to,
    limit: 100,
  })
  expect(completeTo).toEqual(new Date(to))
  expect(removed.every(({ changedAt }) => changedAt >= new Date(from) && changedAt <= new Date(to))).toBe(true)
  const { rows } = await opened.database.knex.raw('select last_changed_at from account_changes where account_id = ?', [
    account.id,
  ])
  expect((await opened.search({ sortBy: 'changed' })).completeTo).toEqual(rows[0].last_changed_at)
  const next = new Date(rows[0].last_changed_at.getTime() + 1).toISOString()
  expect(await opened.search({ sortBy: 'changed', changedFrom: next })).toMatchObject({ payments: [], removed: [] })
})

test('other orders have neither, and an account without changes is complete to no moment', async () => {
  expect(await opened.search({})).toMatchObject({ removed: [], completeTo: undefined })
  const nobody = await opened.search({ sortBy: 'changed' }, { id: 77, name: 'nobody' })
  expect(nobody).toMatchObject({ payments: [], removed: [], completeTo: undefined })
})
