import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { createChainDirectory } from '../../src/chains/chain-directory.ts'
import { parseChainsFile } from '../../src/chains/parse-chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import { createLifiProvider } from '../../src/routing/providers/lifi/lifi.ts'
import { createLifiClient } from '../../src/routing/providers/lifi/lifi-client.ts'
import type { Payment } from '../../src/routing/question/parse-question.ts'
import { silentLogger } from '../support/logs.ts'
import { freshAddress } from '../support/routing.ts'

const FILE = new URL('../../chains/mainnets.json', import.meta.url)

/** The live question: pay 20 USDC on Base with USDC of Arbitrum, from a wallet that nobody owns. */
async function askLive(io: { fetch: typeof fetch; apiKey?: string }) {
  const nodes = { ARBITRUM_RPC_URL: 'http://127.0.0.1:1', BASE_RPC_URL: 'http://127.0.0.1:1' }
  const parsed = parseChainsFile(await readFile(FILE, 'utf8'), nodes)
  if (!parsed.ok) throw new Error(parsed.faults.join())
  const [chains, tokens] = [createChainDirectory(parsed.chains), createTokenDirectory(parsed.chains)]
  const [source, destination] = [tokens.byId('USDC-ARBITRUM'), tokens.byId('USDC-BASE')]
  if (source === undefined || destination === undefined) throw new Error('no USDC')

  const common = { url: 'https://li.quest', clock: Date.now, logger: silentLogger, timeoutMs: 15_000 }
  const client = createLifiClient({ ...common, ...io })
  const request = { payee: freshAddress('live payee'), paymentReference: '0x1122334455667788' }
  const payment = {
    request,
    wallet: freshAddress('live payer'),
    destination,
    amount: 20_000_000n,
    limit: { slippage: { units: 5n, places: 3 } },
  } as unknown as Payment
  const candidate = { kind: 'CROSSCHAIN', source, destination } as const
  const plan = createLifiProvider({ client, chains, tokens }).plan(candidate, payment)
  if (plan === undefined || 'reason' in plan) throw new Error(plan?.message ?? 'no plan')

  const rich = { balanceOf: () => 10n ** 12n, answerTo: () => undefined } as unknown as Parameters<typeof plan.quote>[0]
  const priceOf = () => ({ usd: { units: 1n, places: 0 }, source: 'peg' }) as const
  return plan.quote(rich, { priceOf, signal: AbortSignal.timeout(15_000) })
}

/** Asks the real service for one quote: set `LIFI_LIVE=1`, and `LIFI_API_KEY` if you have one. */
it.skipIf(process.env.LIFI_LIVE !== '1')('accepts a quote of the real LI.FI', async () => {
  const { LIFI_API_KEY: apiKey } = process.env
  const quote = await askLive({ fetch, ...(apiKey && { apiKey }) })
  expect(quote).toMatchObject({ received: 20_000_000n, atomic: false })
})

it('sends one question, for a wallet that nobody owns, and says how to run it', async () => {
  const sent: { url: string; init: RequestInit }[] = []
  const record: typeof fetch = async (url, init = {}) => {
    sent.push({ url: url as string, init })
    return Response.json({ message: 'none', code: 1002 }, { status: 404 })
  }
  expect(await askLive({ fetch: record, apiKey: 'a-key' })).toMatchObject({ reason: 'CROSSCHAIN_NO_ROUTE' })
  const [{ url, init } = { url: '', init: {} }, ...more] = sent
  expect([url, init.method, more]).toEqual(['https://li.quest/v1/quote/contractCalls', 'POST', []])
  const { fromAddress, toFallbackAddress } = JSON.parse(init.body as string) as Record<string, string>
  expect([fromAddress, toFallbackAddress]).toEqual([freshAddress('live payer'), freshAddress('live payer')])
  expect(`${url}${init.body as string}`).not.toContain('a-key')
  const manual = await readFile(new URL('../../docs/internals/cross-chain.md', import.meta.url), 'utf8')
  expect(manual).toContain('`LIFI_LIVE=1 npx vitest run test/routing/lifi-live.test.ts`')
})
