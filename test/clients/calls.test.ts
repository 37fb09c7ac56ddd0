import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWaybill, type Waybill, type WaybillOptions } from '../../clients/typescript/src/public.ts'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'

// Calls of the published client: errors as values, retries that do nothing twice, deadlines, keys.

let running: TestService
beforeAll(async () => {
  running = await startTestService()
})
afterAll(() => running?.stop())

const connect = (more: Partial<WaybillOptions> = {}): Waybill =>
  createWaybill({ baseUrl: `${running.url}/`, apiKey: running.keys.shop, ...more })

const terms = {
  payee: freshAddress('payee'),
  amount: '5',
  invoiceCurrency: 'USDC-ETHEREUM',
  paymentCurrency: 'USDC-ETHEREUM',
}

/** Loses the first answers, after the service has done its work. */
function loseAnswers(count: number) {
  const sent: Request[] = []
  const fetchAndLose: typeof fetch = async (input, init) => {
    sent.push(new Request(input, init))
    const answer = await fetch(input, init)
    if (sent.length > count) return answer
    await answer.arrayBuffer()
    throw new TypeError('terminated')
  }
  return { sent, fetch: fetchAndLose }
}

async function countRequests(reference: string): Promise<number> {
  let count = 0
  for await (const _ of connect().eachPaymentRequest({ reference: [reference], limit: 1 })) count += 1
  return count
}

describe('a call', () => {
  it('that is wrong says how in its fields', async () => {
    const wrong = connect().searchPayments({ minAmount: '-1', payer: ['0x1'] })
    await expect(wrong).rejects.toMatchObject({
      name: 'WaybillCallError',
      code: 'invalid_argument',
      requestId: expect.any(String),
      retryAfterMs: undefined,
      fieldViolations: expect.arrayContaining([
        { field: 'minAmount', reason: 'INVALID_AMOUNT', description: expect.any(String) },
        { field: 'payer', reason: 'INVALID_ADDRESS', description: expect.any(String) },
      ]),
    })
  })

  it('that creates a request creates one, however often its answer is lost', async () => {
    const { sent, fetch } = loseAnswers(2)
    const { paymentReference } = await connect({ fetch }).createPaymentRequest({ ...terms, reference: 'lost twice' })
    expect(paymentReference).toMatch(/^0x/)
    expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1)
    expect([sent.length, await countRequests('lost twice')]).toEqual([3, 1])
  })

  it('that may not be carried out twice is not tried again', async () => {
    const { sent, fetch } = loseAnswers(1)
    await expect(connect({ fetch }).createWatchTicket({})).rejects.toMatchObject({
      reason: 'NETWORK',
      code: 'unavailable',
    })
    expect(sent.length).toBe(1)
  })

  it('is given up after the retries that are allowed', async () => {
    const { sent, fetch } = loseAnswers(9)
    await expect(connect({ fetch, retries: 1 }).searchPayments({})).rejects.toMatchObject({ reason: 'NETWORK' })
    expect(sent.length).toBe(2)
  })

  it('ends at its deadline, waits included', async () => {
    const { sent, fetch } = loseAnswers(9)
    const late = connect({ fetch, retries: 9, timeoutMs: 100 }).searchPayments({})
    await expect(late).rejects.toMatchObject({ name: 'WaybillCallError' })
    expect(sent.length).toBe(1)
  })

  it('gives the headers of its answer', async () => {
    let headers = new Headers()
    const onHeader = (given: Headers) => {
      headers = given
    }
    await connect().searchPayments({}, { onHeader })
    expect([headers.get('x-request-id'), Date.parse(headers.get('date') ?? '')]).toEqual([
      expect.any(String),
      expect.closeTo(Date.now(), -4),
    ])
  })

  it("ends with the signal's reason", async () => {
    const call = connect().searchPayments({}, { signal: AbortSignal.abort(new Error('left')) })
    await expect(call).rejects.toThrow('left')
  })

  it('of a platform names the account', async () => {
    const platform = connect({ apiKey: running.keys.platform, account: 'shop' })
    await expect(platform.searchPayments({})).resolves.toMatchObject({ payments: [] })
    const nameless = connect({ apiKey: running.keys.platform })
    await expect(nameless.searchPayments({})).rejects.toMatchObject({
      name: 'WaybillCallError',
      requestId: expect.any(String),
    })
  })
})

it('a watch that is cut before its first event has what happened since it began', async () => {
  const { chain, service } = running
  const { paymentReference } = await connect().createPaymentRequest({ ...terms, payee: chain.wallets[1] })
  const [payer, to] = chain.wallets
  await chain.fund(chain.tokens.USDC, payer, 5_000_000n)
  let watches = 0
  // The first watch is cut, and a payment comes before the second.
  const fetchAndCut: typeof fetch = async (input, init) => {
    if (!new Request(input, init).url.endsWith('/WatchPayments') || ++watches > 1) return fetch(input, init)
    const { address } = chain.tokens.USDC
    const reference = paymentReference as `0x${string}`
    await chain.pay(payer, { kind: 'ERC20', token: address, to, amount: 5_000_000n, paymentReference: reference })
    await service.detection.scanOnce()
    throw new TypeError('terminated')
  }
  const signal = AbortSignal.timeout(5_000)
  const changes = connect({ fetch: fetchAndCut }).watchPayments({}, { signal })
  expect((await changes.next()).value).toMatchObject({ payment: { paymentReference } })
  expect(watches).toBe(2)
  await changes.return()
})

it('a watch ends with the error of who stores its position', async () => {
  const onPosition = async () => {
    throw new Error('the store is down')
  }
  await expect(connect().watchPayments({}, { onPosition }).next()).rejects.toThrow('the store is down')
})

it('a watch of a request that is cut gives the request again, though nothing has changed', async () => {
  const { paymentReference } = await connect().createPaymentRequest(terms)
  let watches = 0
  const fetchAndCut: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (!answer.url.endsWith('/WatchPaymentRequest') || ++watches > 1) return answer
    const cut = new TransformStream({ transform: (chunk, to) => (to.enqueue(chunk), to.terminate()) })
    return new Response(answer.body?.pipeThrough(cut), answer)
  }
  let reconnects = 0
  const options = { signal: AbortSignal.timeout(10_000), onReconnect: () => void (reconnects += 1) }
  const watch = connect({ fetch: fetchAndCut }).watchPaymentRequest(paymentReference, options)
  const { value: first } = await watch.next()
  expect(reconnects).toBe(0)
  expect((await watch.next()).value).toEqual(first)
  expect([watches, reconnects]).toEqual([2, 1])
  await watch.return()
})

it('pages are walked to the end', async () => {
  const waybill = connect()
  for (let n = 0; n < 3; n++) await waybill.createPaymentRequest({ ...terms, reference: 'walked' })
  expect(await countRequests('walked')).toBe(3)
})
