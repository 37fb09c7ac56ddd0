import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import { beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../../../../test/support/logs.ts'
import { createLifiClient, type LifiClient } from './lifi-client.ts'

const HASH = `0x${'7'.repeat(64)}` as const
const { signal } = new AbortController()

let nowMs: number
let asked: string[]
let client: LifiClient
/** By path. */
let answers: Record<string, () => Response>

beforeEach(() => {
  nowMs = 0
  asked = []
  const clock = () => nowMs
  const fetch: typeof globalThis.fetch = async (url) => {
    const { pathname } = new URL(url as string)
    asked.push(pathname)
    return answers[pathname]?.() ?? Response.error()
  }
  client = createLifiClient({ url: 'http://lifi/', fetch, clock, logger: silentLogger })
})

const QUOTE = '/v1/quote/contractCalls'
const STATUS = '/v1/status'
const askStatus = () => client.status(HASH, { signal })
let amount = 0
/** Each is another question. */
const askQuote = () => {
  const request = { toAmount: `${++amount}` } as ContractCallsQuoteRequestToAmount
  return client.quote(request, { signal, fresh: false })
}

const well = (headers?: Record<string, string>) => () => Response.json({}, headers && { headers })
const window = (remaining: number, resetSeconds: number) => ({
  'ratelimit-remaining': `${remaining}`,
  'ratelimit-reset': `${resetSeconds}`,
})

it('counts the quotas of quotes and of statuses apart', async () => {
  answers = { [QUOTE]: well(window(0, 7_200)), [STATUS]: well(window(99, 60)) }
  expect([await askQuote(), await askStatus()]).toMatchObject([{ ok: true }, { ok: true }])
  const failure = { kind: 'QUOTA', seconds: 7_200 }
  expect(await askQuote()).toEqual({ ok: false, isAsked: false, failure, forMs: 7_200_000 })
  expect(await askStatus()).toMatchObject({ ok: true })
  expect(asked).toEqual([QUOTE, STATUS, STATUS])
})

it('asks for quotes while statuses fail', async () => {
  const down = () => Response.json({ message: 'down' }, { status: 503 })
  answers = { [QUOTE]: well(), [STATUS]: down }
  for (let n = 0; n < 3; n++) expect(await askStatus()).toMatchObject({ ok: false, isAsked: true })
  expect(await askStatus()).toMatchObject({ ok: false, isAsked: false, forMs: 1_000 })
  expect(await askQuote()).toMatchObject({ ok: true })
  nowMs += 1_000
  answers[STATUS] = well()
  expect(await askStatus()).toMatchObject({ ok: true })
})
