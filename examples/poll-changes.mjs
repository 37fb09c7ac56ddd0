/**
 * Keeps a copy of an account's payments in SQLite, by asking every few seconds for what has changed. It goes on where it was after a kill.
 *
 *   WAYBILL_URL=http://127.0.0.1:8080 WAYBILL_KEY=demo node examples/poll-changes.mjs copy.db
 *
 * Needs Node 22.13 or newer, and nothing else.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const { WAYBILL_URL = 'http://127.0.0.1:8080', WAYBILL_KEY = 'demo', POLL_SECONDS = '5', PAGE = '100' } = process.env
const copy = new DatabaseSync(process.argv[2] ?? 'payments.db')
copy.exec(`
  create table if not exists payments (id text primary key, payment text not null);
  create table if not exists position (name text primary key, value text)`)
const store = copy.prepare('insert or replace into payments values (?, ?)')
const remove = copy.prepare('delete from payments where id = ?')
const setPosition = copy.prepare('insert or replace into position values (?, ?)')
const positionOf = (name) => copy.prepare('select value from position where name = ?').get(name)?.value ?? undefined

async function ask(query) {
  const url = `${WAYBILL_URL}/v1/payments?${new URLSearchParams(query)}`
  const response = await fetch(url, { headers: { 'x-api-key': WAYBILL_KEY }, signal: AbortSignal.timeout(30_000) })
  const body = await response.json()
  if (response.ok) return body
  throw Object.assign(new Error(body.message), { reason: body.details?.[0]?.reason })
}

/** Copies one page, and keeps with it where the next one begins: both or neither. */
async function copyPage() {
  const [cursor, changedFrom] = [positionOf('cursor'), positionOf('changedFrom')]
  const first = { sortBy: 'changed', sortOrder: 'asc', limit: PAGE, ...(changedFrom && { changedFrom }) }
  const { payments, removed, completeTo, pagination } = await ask(cursor ? { cursor } : first)
  copy.exec('begin')
  for (const { id } of removed) remove.run(id)
  for (const payment of payments) store.run(payment.id, JSON.stringify(payment))
  setPosition.run('cursor', pagination.nextCursor ?? null)
  // what changes later has a later stamp
  if (!pagination.hasMore && completeTo)
    setPosition.run('changedFrom', new Date(Date.parse(completeTo) + 1).toISOString())
  copy.exec('commit')
  return { isComplete: !pagination.hasMore, completeTo }
}

for (;;) {
  try {
    const { isComplete, completeTo } = await copyPage()
    if (!isComplete) continue
    console.log(`complete to ${completeTo ?? 'the beginning'}`)
  } catch (error) {
    console.error(error.message)
    // the walk begins again; to copy a payment twice does no harm
    if (/CURSOR/.test(error.reason)) setPosition.run('cursor', null)
  }
  await sleep(Number(POLL_SECONDS) * 1_000)
}
