import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { recordLogs } from '../../test/support/logs.ts'
import type { Account } from '../domain/account.ts'
import { type Decimal, ZERO } from '../domain/decimal.ts'
import type { RequestStatus } from '../domain/payment-request.ts'
import type { RequestWithBalance } from './sql/request-repository.ts'
import { createWatchRequest, type RequestMessage, type RequestWatchOptions } from './watch-request.ts'

const ACCOUNT: Account = { id: 1, name: 'shop' }
const TEN: Decimal = { units: 10n, places: 0 }

function requestAt(status: RequestStatus, requestId = '01aa'): RequestWithBalance {
  const balance = { status, paidAmount: ZERO, pendingAmount: ZERO, outstandingAmount: TEN, overpaidAmount: ZERO }
  return { request: { requestId } as RequestWithBalance['request'], balance }
}

const watchOf = (readMany: RequestWatchOptions['readMany'], now = () => new Date(0)) =>
  createWatchRequest({ readMany, logger: recordLogs(), now })

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What comes within a time. */
async function within<T>(ms: number, coming: Promise<T>): Promise<T> {
  coming.catch(() => {})
  await vi.advanceTimersByTimeAsync(ms)
  return coming
}

async function take(messages: AsyncGenerator<RequestMessage>, count: number) {
  const taken: string[] = []
  for await (const message of messages) {
    taken.push(message.type === 'STATE' ? message.found.balance.status : message.type)
    if (taken.length === count) break
  }
  return taken
}

describe('watching a request', () => {
  it('sends heartbeats while nothing changes, and each other state once', async () => {
    let reads = 0
    const watch = watchOf(async () => [requestAt(++reads < 40 ? 'OPEN' : 'PAID')])
    const taken = take(watch(ACCOUNT, requestAt('OPEN'), new AbortController().signal), 4)
    expect(await within(60_000, taken)).toEqual(['OPEN', 'HEARTBEAT', 'PAID', 'HEARTBEAT'])
  })

  it('sends the state again when the request expires, also while the reader takes nothing', async () => {
    let now = new Date(0)
    const expiresAt = new Date(1_000)
    const read = () => requestAt(now < expiresAt ? 'OPEN' : 'EXPIRED')
    const watch = watchOf(
      async () => [read()],
      () => now,
    )
    const messages = watch(ACCOUNT, read(), new AbortController().signal)
    expect((await messages.next()).value).toMatchObject({ type: 'STATE', at: now })
    now = expiresAt
    const found = { balance: { status: 'EXPIRED' } }
    const next = await within(1_000, messages.next())
    expect(next.value).toMatchObject({ type: 'STATE', at: expiresAt, found })
    await messages.return(undefined as never)
  })

  it('merges changes that the reader has not taken', async () => {
    const states: RequestStatus[] = ['PARTIALLY_PAID', 'PENDING', 'PAID']
    let now = 0
    const watch = watchOf(async () => [requestAt(states[Math.min(now++, 2)] as RequestStatus)])
    const messages = watch(ACCOUNT, requestAt('OPEN'), new AbortController().signal)
    expect((await messages.next()).value).toMatchObject({ type: 'STATE' })
    now = 2
    const next = await within(1_000, messages.next())
    expect(next.value).toMatchObject({ found: { balance: { status: 'PAID' } } })
  })

  it('reads once for all who wait, and not at all when nobody does', async () => {
    const asked: number[] = []
    const watch = watchOf(async (_, ids) => {
      asked.push(ids.length)
      return ids.map((id) => requestAt('PAID', id))
    })
    const { signal } = new AbortController()
    const watches = ['01', '02', '03', '03'].map((id) => take(watch(ACCOUNT, requestAt('OPEN', id), signal), 2))
    expect(await within(1_000, Promise.all(watches))).toEqual(watches.map(() => ['OPEN', 'PAID']))
    expect(asked).toEqual([3])
    await vi.advanceTimersByTimeAsync(5_000)
    expect(asked).toEqual([3])
  })

  it('bears a database that fails for a while, and ends with its error after that', async () => {
    let failures = 3
    const patient = watchOf(async () => {
      if (failures-- > 0) throw new Error('the database is down')
      return [requestAt('PAID')]
    })
    const { signal } = new AbortController()
    const taken = take(patient(ACCOUNT, requestAt('OPEN'), signal), 2)
    expect(await within(5_000, taken)).toEqual(['OPEN', 'PAID'])
    const failing = async () => Promise.reject(new Error('the database is down'))
    const failed = take(watchOf(failing)(ACCOUNT, requestAt('OPEN'), signal), 3)
    await expect(within(20_000, failed)).rejects.toThrow('the database is down')
  })

  it('ends with the signal, and when the request is gone', async () => {
    const aborter = new AbortController()
    const watch = watchOf(async () => [requestAt('OPEN')])
    const taken = take(watch(ACCOUNT, requestAt('OPEN'), aborter.signal), 2)
    aborter.abort(new Error('hung up'))
    await expect(taken).rejects.toThrow('hung up')
    const gone = watchOf(async () => [])
    const inVain = take(gone(ACCOUNT, requestAt('OPEN'), new AbortController().signal), 2)
    await expect(within(1_000, inVain)).rejects.toMatchObject({ reason: 'REQUEST_NOT_FOUND' })
  })
})
