import type { JsonObject } from '@bufbuild/protobuf'
import type { Hex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { type WatchWay, watchBy, watchWays } from '../support/clients/watch-clients.ts'
import { PATIENCE } from '../support/patience.ts'
import { startTestService, type TestService } from '../support/service.ts'

// Watches of one request over the wire.

const method = RequestsService.method.watchPaymentRequest

let running: TestService
let headers: Readonly<Record<string, string>>
beforeAll(async () => {
  running = await startTestService()
  headers = { 'x-api-key': running.keys.shop }
  const { chain } = running
  await chain.fund(chain.tokens.USDC, chain.wallets[0], 1_000_000000n)
})
afterAll(() => running?.stop())

async function post(path: string, body: object): Promise<JsonObject> {
  const init = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  return (await (await fetch(running.url + path, init)).json()) as JsonObject
}

async function createRequest(): Promise<Hex> {
  const terms = { amount: '20', invoiceCurrency: 'USDC', paymentCurrency: 'USDC', network: 'ETHEREUM' }
  const created = await post('/v1/request', { payee: running.chain.wallets[1], ...terms })
  return created['paymentReference'] as Hex
}

async function pay(paymentReference: Hex, amount = 20_000000n): Promise<void> {
  const { chain, service } = running
  const [payer, to] = chain.wallets
  await chain.pay(payer, { kind: 'ERC20', token: chain.tokens.USDC.address, to, amount, paymentReference })
  await service.detection.scanOnce()
}

async function settle(): Promise<void> {
  await running.chain.mine({ blocks: 4 })
  await running.service.detection.scanOnce()
}

type Seen = { readonly status?: string; readonly isCancelled?: boolean; readonly type?: string }

/** Watches a request; after each state calls the next of the steps, and ends after the last. */
async function watch(
  way: WatchWay,
  paymentReference: string,
  steps: readonly (() => Promise<unknown>)[],
): Promise<Seen[]> {
  const seen: Seen[] = []
  const done: Promise<unknown>[] = []
  const { error } = await watchBy(way, {
    url: running.url,
    method,
    request: { paymentReference },
    headers,
    onMessage(message) {
      const request = message['request'] as JsonObject | undefined
      if (request === undefined) return 'go on'
      seen.push({ status: request['status'] as string, isCancelled: request['cancelledAt'] !== undefined })
      const step = steps[seen.length - 1]
      if (step === undefined) return 'hang up'
      done.push(step())
      return 'go on'
    },
  })
  await Promise.all(done)
  expect(error).toBeUndefined()
  return seen
}

const OPEN = { status: 'OPEN', isCancelled: false }

describe('WatchPaymentRequest', PATIENCE, () => {
  it.concurrent.each(watchWays)('over %s sends the request, and sends it again when it has changed', async (way) => {
    const reference = await createRequest()
    const seen = await watch(way, reference, [() => post(`/v1/request/${reference}:cancel`, {})])
    expect(seen).toEqual([OPEN, { status: 'CANCELLED', isCancelled: true }])
  })

  it('sends each state of a request that is paid in parts', async () => {
    const reference = await createRequest()
    const seen = await watch('grpc', reference, [
      () => pay(reference, 5_000000n),
      () => pay(reference, 15_000000n),
      settle,
      () => post(`/v1/request/${reference}:cancel`, {}),
    ])
    expect(seen).toEqual([
      OPEN,
      { ...OPEN, status: 'PARTIALLY_PAID' },
      { ...OPEN, status: 'PENDING' },
      { ...OPEN, status: 'PAID' },
      { status: 'PAID', isCancelled: true },
    ])
  })

  it('tells that a reorg took the payment back', async () => {
    const reference = await createRequest()
    const undo = async () => {
      await running.chain.reorg(1)
      await running.chain.mine({ blocks: 2 })
      await running.service.detection.scanOnce()
    }
    const seen = await watch('JSON lines', reference, [() => pay(reference), undo])
    expect(seen.map(({ status }) => status)).toEqual(['OPEN', 'PENDING', 'OPEN'])
  })

  it('begins with the state of the moment after a broken connection', async () => {
    const reference = await createRequest()
    expect(await watch('server-sent events', reference, [])).toEqual([OPEN])
    await pay(reference)
    await settle()
    expect(await watch('server-sent events', reference, [])).toEqual([{ ...OPEN, status: 'PAID' }])
  })

  it('reaches everybody who watches', async () => {
    const reference = await createRequest()
    const seen = await Promise.all(
      (['grpc', 'connect-json', 'JSON lines'] as const).map((way, nth) =>
        watch(way, reference, nth === 0 ? [() => pay(reference)] : [async () => {}]),
      ),
    )
    for (const states of seen) expect(states.map(({ status }) => status)).toEqual(['OPEN', 'PENDING'])
  })

  it.concurrent.each([
    ['a malformed reference', 'xyz', 'INVALID_PAYMENT_REFERENCE'],
    ['a request that is not there', '0x00000000000000ff', 'REQUEST_NOT_FOUND'],
    ['no reference', '', 'MISSING_FIELD'],
  ])('refuses %s', async (_, paymentReference, reason) => {
    const call = {
      url: running.url,
      method,
      request: { paymentReference },
      headers,
      onMessage: () => 'hang up' as const,
    }
    for (const way of ['grpc', 'connect-json'] as const)
      expect((await watchBy(way, call)).error).toMatchObject({ reason })
  })

  it.concurrent.each([
    ['another account', { 'x-api-key': 'other' }, 'REQUEST_NOT_FOUND', 404],
    ['a key without the scope', { 'x-api-key': 'writeOnly' }, 'MISSING_SCOPE', 403],
    ['no key', {}, 'MISSING_API_KEY', 401],
  ] as const)('refuses %s', async (_, given, reason, httpStatus) => {
    const paymentReference = await createRequest()
    const key = 'x-api-key' in given ? { 'x-api-key': running.keys[given['x-api-key']] } : {}
    const call = {
      url: running.url,
      method,
      request: { paymentReference },
      headers: key,
      onMessage: () => 'hang up' as const,
    }
    expect((await watchBy('JSON lines', call)).error).toMatchObject({ reason, httpStatus })
  })
})
