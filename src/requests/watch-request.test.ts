import { describe, expect, it } from 'vitest'
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

const watchOf = (readMany: RequestWatchOptions['readMany'], more: Partial<RequestWatchOptions> = {}) =>
  createWatchRequest({ readMany, logger: recordLogs(), now: () => new Date(0), pollMs: 1, ...more })

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
    const watch = watchOf(async () => [requestAt(++reads < 30 ? 'OPEN' : 'PAID')], { heartbeatMs: 10 })
    const taken = await take(watch(ACCOUNT, requestAt('OPEN'), new AbortController().signal), 4)
    expect(taken.slice(0, 2)).toEqual(['OPEN', 'HEARTBEAT'])
    expect(taken.filter((each) => each === 'PAID').length).toBeLessThanOrEqual(1)
  })

  it('sends the state again when the request expires, also while the reader takes nothing', async () => {
    let now = new Date(0)
    const expiresAt = new Date(1_000)
    const read = () => requestAt(now < expiresAt ? 'OPEN' : 'EXPIRED')
    const watch = watchOf(async () => [read()], { now: () => now })
    const messages = watch(ACCOUNT, read(), new AbortController().signal)
    expect((await messages.next()).value).toMatchObject({ type: 'STATE', at: now })
    now = expiresAt
    const found = { balance: { status: 'EXPIRED' } }
    expect((await messages.next()).value).toMatchObject({ type: 'STATE', at: expiresAt, found })
    await messages.return(undefined as never)
  })

  it('merges changes that the reader has not taken', async () => {
    const states: RequestStatus[] = ['PARTIALLY_PAID', 'PENDING', 'PAID']
    let now = 0
    const watch = watchOf(async () => [requestAt(states[Math.min(now++, 2)] as RequestStatus)])
    const messages = watch(ACCOUNT, requestAt('OPEN'), new AbortController().signal)
    expect((await messages.next()).value).toMatchObject({ type: 'STATE' })
    now = 2
    expect((await messages.next()).value).toMatchObject({ found: { balance: { status: 'PAID' } } })
  })

  it('reads once for all who wait, and not at all when nobody does', async () => {
    const asked: number[] = []
    const watch = watchOf(async (_, ids) => {
      asked.push(ids.length)
      return ids.map((id) => requestAt('PAID', id))
    })
    const { signal } = new AbortController()
    const watches = ['01', '02', '03', '03'].map((id) => take(watch(ACCOUNT, requestAt('OPEN', id), signal), 2))
    expect(await Promise.all(watches)).toEqual(watches.map(() => ['OPEN', 'PAID']))
    expect(asked).toEqual([3])
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(asked).toEqual([3])
  })

  it('bears a database that fails for a while, and ends with its error after that', async () => {
    let failures = 3
    const patient = watchOf(async () => {
      if (failures-- > 0) throw new Error('the database is down')
      return [requestAt('PAID')]
    })
    const { signal } = new AbortController()
    expect(await take(patient(ACCOUNT, requestAt('OPEN'), signal), 2)).toEqual(['OPEN', 'PAID'])
    const failing = async () => Promise.reject(new Error('the database is down'))
    const impatient = watchOf(failing, { patienceMs: 5 })
    await expect(take(impatient(ACCOUNT, requestAt('OPEN'), signal), 2)).rejects.toThrow('the database is down')
  })

  it('ends with the signal, and when the request is gone', async () => {
    const aborter = new AbortController()
    const watch = watchOf(async () => [requestAt('OPEN')])
    const taken = take(watch(ACCOUNT, requestAt('OPEN'), aborter.signal), 2)
    aborter.abort(new Error('hung up'))
    await expect(taken).rejects.toThrow('hung up')
    const gone = watchOf(async () => [])
    await expect(take(gone(ACCOUNT, requestAt('OPEN'), new AbortController().signal), 2)).rejects.toMatchObject({
      reason: 'REQUEST_NOT_FOUND',
    })
  })
})
