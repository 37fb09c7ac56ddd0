import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { createChainDirectory } from '../src/domain/chain.ts'
import { createTokenDirectory } from '../src/domain/currency.ts'
import { silentLogger } from '../src/domain/logger.ts'
import { parseChainsFile } from '../src/domain/parse-chains-file.ts'
import { createLifiClient } from '../src/routing/lifi-client.ts'
import type { Payment } from '../src/routing/payment.ts'
import { createLifiProvider } from '../src/routing/providers/lifi.ts'
import { freshAddress } from './support/routing.ts'

const FILE = new URL('../chains/mainnets.json', import.meta.url)

/** Over the network, at the cost of one quote: `LIFI_LIVE=1`, and `LIFI_API_KEY` if there is one. */
it.skipIf(process.env.LIFI_LIVE !== '1')('asks the real LI.FI, whose answer is taken as good', async () => {
  const nodes = { ARBITRUM_RPC_URL: 'http://127.0.0.1:1', BASE_RPC_URL: 'http://127.0.0.1:1' }
  const parsed = parseChainsFile(await readFile(FILE, 'utf8'), nodes)
  if (!parsed.ok) throw new Error(parsed.faults.join())
  const [chains, tokens] = [createChainDirectory(parsed.chains), createTokenDirectory(parsed.chains)]
  const [source, destination] = [tokens.byId('USDC-ARBITRUM'), tokens.byId('USDC-BASE')]
  if (source === undefined || destination === undefined) throw new Error('no USDC')

  const { LIFI_API_KEY: apiKey } = process.env
  const url = 'https://li.quest'
  const io = { fetch, clock: Date.now, logger: silentLogger, timeoutMs: 15_000 }
  const client = createLifiClient({ url, ...(apiKey && { apiKey }), ...io })
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
  const quote = await plan.quote(rich, { priceOf, signal: AbortSignal.timeout(15_000) })
  expect(quote).toMatchObject({ received: 20_000_000n, atomic: false })
})
