import { describe, expect, it } from 'vitest'
import type { UrlLimits } from './node-limits.ts'
import { createNodeLimits, type LimitedChain } from './node-limits.ts'
import { inLane } from './node-policy.ts'

const URL_OF_NODE = 'https://rpc.example/secret-key'

/** A URL whose time passes only while somebody waits. */
function limitsOf(declared: Partial<LimitedChain> = {}) {
  const clock = { nowMs: 0 }
  const limits = createNodeLimits([{ name: 'BASE', rpcUrls: [URL_OF_NODE], ...declared }], {
    clock: () => clock.nowMs,
    async sleep(ms) {
      const untilMs = clock.nowMs + ms
      await new Promise((resolve) => setImmediate(resolve))
      clock.nowMs = Math.max(clock.nowMs, untilMs)
    },
  })
  return { clock, limits, ofUrl: limits.of(URL_OF_NODE) }
}

const PATIENT = { maxWaitMs: 60_000 }
const refusalOf = (request: number, waitMs?: number) => ({ request, calls: 1, refused: 1, waitMs, isQuota: false })

/** Sends so many requests, all of which are served. */
function serveMany(ofUrl: UrlLimits, requests: number): void {
  for (let sent = 0; sent < requests; sent++) {
    ofUrl.take(1)
    ofUrl.noteServed(1)
  }
}

it('learns the rate from what was served before a refusal, and keeps to it', async () => {
  const { clock, ofUrl } = limitsOf()
  serveMany(ofUrl, 5)
  ofUrl.noteRateRefusal(refusalOf(ofUrl.take(1)))
  expect(ofUrl.rate()).toMatchObject({ perSecond: 5, unit: 'REQUESTS', isDeclared: false })
  expect(ofUrl.pauseMs()).toBe(1_000)
  await ofUrl.slot(1, PATIENT)
  const firstAtMs = clock.nowMs
  for (let slot = 0; slot < 5; slot++) await ofUrl.slot(1, PATIENT)
  expect(clock.nowMs - firstAtMs).toBe(1_000)
})

it('cuts the rate once for requests that were under way together, and lets it recover up to the declared one', () => {
  const { clock, ofUrl } = limitsOf({ requestsPerSecond: 10 })
  serveMany(ofUrl, 5)
  const [first, second] = [ofUrl.take(1), ofUrl.take(1)]
  ofUrl.noteRateRefusal(refusalOf(first))
  ofUrl.noteRateRefusal(refusalOf(second))
  expect(ofUrl.rate()).toMatchObject({ perSecond: 8, isDeclared: false })
  for (const expected of [8, 10, 10]) {
    clock.nowMs += 7_000
    ofUrl.noteServed(1)
    expect(ofUrl.rate()?.perSecond).toBeCloseTo(expected)
  }
})

it('gives live calls their slot before back-fill, and back-fill before enrichment', async () => {
  const { ofUrl } = limitsOf()
  ofUrl.noteRateRefusal(refusalOf(ofUrl.take(1)))
  const order: string[] = []
  const lanes = ['ENRICHMENT', 'BACKFILL', 'LIVE', 'BACKFILL', 'LIVE'] as const
  const slots = lanes.map(async (lane) => {
    await inLane(lane, () => ofUrl.slot(1, PATIENT))
    order.push(lane)
  })
  await Promise.all(slots)
  expect(order).toEqual(['LIVE', 'LIVE', 'BACKFILL', 'BACKFILL', 'ENRICHMENT'])
})

it('keeps enough of the daily budget for following', async () => {
  const { clock, limits, ofUrl } = limitsOf({ requestsPerDay: 100 })
  const backfill = () => inLane('BACKFILL', () => ofUrl.slot(1, PATIENT))
  for (let sent = 0; sent < 50; sent++) await backfill()
  await expect(backfill()).rejects.toMatchObject({
    kind: 'RATE_LIMITED',
    retryAfterMs: 60_000,
    detail:
      'what is left today of its budget of 100 requests a day is kept for new blocks and routes: it is asked again in 60 s',
  })
  serveMany(ofUrl, 50)
  expect(limits.figures()).toMatchObject([{ chain: 'BASE', host: 'rpc.example', budgetLeft: 0, requests: 100 }])
  await expect(ofUrl.slot(1, PATIENT)).rejects.toMatchObject({
    retryAfterMs: 86_400_000,
    detail: 'its budget of 100 requests a day is used up: it is asked again at 1970-01-02 00:00 UTC',
  })
  clock.nowMs = 86_400_000
  await ofUrl.slot(1, PATIENT)
  expect(limits.figures()).toMatchObject([{ budgetLeft: 99 }])
})

it('waits for no pause that is longer than the caller has time, and for none after they left', async () => {
  const { ofUrl } = limitsOf()
  ofUrl.noteRateRefusal(refusalOf(ofUrl.take(1), 5_000))
  await expect(ofUrl.slot(1, { maxWaitMs: 4_000 })).rejects.toMatchObject({ kind: 'RATE_LIMITED', retryAfterMs: 5_000 })
  const leaving = new AbortController()
  const slot = ofUrl.slot(1, { ...PATIENT, signal: leaving.signal })
  const reason = new Error('hung up')
  leaving.abort(reason)
  await expect(slot).rejects.toBe(reason)
})

it('shows no more of a URL than its host', () => {
  const { limits } = limitsOf()
  expect(JSON.stringify(limits.figures())).not.toContain('secret-key')
})

describe('beside a request that waits for a pause of 5 s', () => {
  /** A URL whose sleeps end only when the test ends them, or by their signal. */
  function waitForPause() {
    const clock = { nowMs: 0, wake: () => {} }
    const sleep = (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve())
        clock.wake = resolve
      })
    const ofUrl = createNodeLimits([], { clock: () => clock.nowMs, sleep }).of(URL_OF_NODE)
    const request = ofUrl.take(1)
    ofUrl.noteRateRefusal(refusalOf(request, 5_000))
    const leaving = new AbortController()
    const first = settled(ofUrl.slot(1, { ...PATIENT, signal: leaving.signal }))
    return { clock, ofUrl, request, leaving, first }
  }
  const settled = (slot: number | Promise<number>) =>
    Promise.resolve(slot).then(String, ({ kind, message }) => kind ?? message)
  const stateOf = (slot: Promise<string>) =>
    Promise.race([slot, new Promise((resolve) => setImmediate(resolve, 'waits'))])

  it('one that may not wait as long is rejected at once', async () => {
    const { ofUrl } = waitForPause()
    expect(await stateOf(settled(ofUrl.slot(1, { maxWaitMs: 4_000 })))).toBe('RATE_LIMITED')
  })

  it('one that comes as the first leaves is not sent early', async () => {
    const { ofUrl, leaving, first } = waitForPause()
    leaving.abort(new Error('hung up'))
    const second = settled(ofUrl.slot(1, PATIENT))
    expect([await first, await stateOf(second)]).toEqual(['hung up', 'waits'])
  })

  it('one that is refused meanwhile lengthens the wait of the first', async () => {
    const { clock, ofUrl, request, first } = waitForPause()
    ofUrl.noteRateRefusal(refusalOf(request, 20_000))
    clock.nowMs = 5_000
    clock.wake()
    expect(await stateOf(first)).toBe('waits')
    clock.nowMs = 20_000
    clock.wake()
    expect(await stateOf(first)).toBe('2')
  })
})
