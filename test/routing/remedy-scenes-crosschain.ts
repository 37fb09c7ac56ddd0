import { expect } from 'vitest'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Reason } from '../../src/errors/reasons.ts'
import { quoteWell, sendJson } from '../support/lifi-server.ts'
import { canonical, changeResults, type EvmAddress, freshAddress } from '../support/routing.ts'
import { LIES } from './lifi-lies.ts'
import {
  crosschainScene,
  DIRECT,
  entryOf,
  fundFar,
  inCoins,
  lifiErrs,
  nearScene,
  nodeErrs,
  noQuote,
  payingWith,
  read,
  reopened,
} from './remedy-acts.ts'
import { type Scene, stage, USD } from './remedy-stage.ts'

const UNIT = 10n ** 6n

/** The first lie for each check that a quote may fail. */
function liedScenes({ isDear }: { isDear: boolean }) {
  const firstOf = new Map(LIES.toReversed().map((lie) => [lie.check, lie]))
  const lies = [...firstOf.values()].filter(({ check }) => (check === 'COST_TOO_HIGH') === isDear)
  return lies.map(({ tell, terms }) => () => {
    stage.lifi.charge(terms ?? {})
    return lifiErrs(({ quote, response }) => {
      const answer = tell(quote())
      stage.lifi.charge({})
      sendJson(response, 200, answer)
    })
  })
}

/** Reasons of other chains, of the cross-chain provider, and of nodes. */
export const crosschainScenes = {
  // From another chain
  NO_CROSSCHAIN_PROVIDER: [
    async () => {
      const wallet = await stage.newWallet()
      await fundFar(wallet, 1_000n * UNIT)
      const routing = stage.open()
      const at = { chain: 'BASE', token: 'USDT' }
      return { routing, question: stage.ask(routing, wallet), at, route: DIRECT, follow: payingWith(wallet) }
    },
  ],
  CROSSCHAIN_DELIVERS_TOKENS: [
    () => crosschainScene({ terms: inCoins, route: DIRECT, then: ({ wallet }) => payingWith(wallet) }),
  ],
  CROSSCHAIN_BRIDGED_TOKEN: [
    () =>
      crosschainScene({
        far: { tokens: { USDT: { bridged: true } } },
        route: DIRECT,
        then: ({ wallet }) => payingWith(wallet),
      }),
  ],
  CROSSCHAIN_AMOUNT_TOO_SMALL: [
    () => crosschainScene({ terms: { amount: '1' }, route: DIRECT, then: ({ wallet }) => payingWith(wallet) }),
    () =>
      crosschainScene({
        terms: { amount: '1' },
        then:
          ({ question }) =>
          (remedy) => {
            read(remedy, /, or pay more at once$/)
            return { question: { ...question, amount: '1.000001' } }
          },
      }),
  ],
  CROSSCHAIN_BALANCE_TOO_LOW: [
    async () => {
      stage.lifi.charge({ bridgeFee: 2_000n })
      return crosschainScene({
        usdt: 10n * UNIT,
        then:
          ({ wallet, routing, question }) =>
          async (remedy) => {
            const words = /^add more than ([\d.]+) USDT on BASE; the quote then shows the costs of the bridge$/
            await fundFar(wallet, parseAmount(read(remedy, words)[0] as string, 6) as bigint)
            const reported = entryOf(await routing.find(question), { chain: 'BASE', token: 'USDT' })
            expect(reported?.reason).toBe('INSUFFICIENT_BALANCE')
            const [more = ''] = read(reported?.remedy ?? '', /^add ([\d.]+) USDT on BASE$/)
            await fundFar(wallet, parseAmount(more, 6) as bigint)
            return {}
          },
      })
    },
  ],
  CROSSCHAIN_NOT_ASKED: [
    async () => {
      const coupons = await stage.deployCoupons(9)
      const far = stage.farConfig()
      const scene = await crosschainScene({
        configs: [stage.config(), { ...far, tokens: [...far.tokens, ...coupons] }],
        usdt: 101n * UNIT,
        then:
          ({ question }) =>
          (remedy) => {
            const [token, chain] = read(remedy, /^ask with tokens=(\w+) and chains=(\w+)$/) as [string, string]
            return { question: { ...question, tokens: [token], chains: [chain] } }
          },
      })
      for (const { address } of coupons) {
        await stage.far.fund({ address: address as EvmAddress }, scene.question.wallet as EvmAddress, 500n * UNIT)
      }
      return scene
    },
  ],
  CROSSCHAIN_NO_ROUTE: [
    () => lifiErrs(noQuote),
    () => {
      stage.lifi.behave(noQuote)
      return crosschainScene({ route: DIRECT, then: ({ wallet }) => payingWith(wallet) })
    },
  ],
  CROSSCHAIN_REFUSED: [
    () =>
      lifiErrs(
        ({ response }) => sendJson(response, 400, { message: 'unknown chain', code: 1011 }),
        {},
        /^check that lifi serves BASE and ETHEREUM and their configured tokens$/,
      ),
  ],
  CROSSCHAIN_QUOTA_EXHAUSTED: [
    () => {
      stage.lifi.behave(({ response }) =>
        sendJson(response, 429, { message: 'slow', code: 1005 }, { 'ratelimit-reset': '7' }),
      )
      return crosschainScene({
        then: () => (remedy) => {
          read(remedy, /^try again then, /)
          stage.lifi.behave(quoteWell)
          stage.wait(7)
          return {}
        },
      })
    },
  ],
  CROSSCHAIN_UNAUTHORIZED: [
    () => {
      stage.lifi.behave((exchange) => {
        const key = stage.lifi.headers.at(-1)?.['x-lifi-api-key']
        if (key === 'right') return quoteWell(exchange)
        return sendJson(exchange.response, 401, { message: 'who?', code: 1010 })
      })
      return crosschainScene({
        lifi: { apiKey: 'wrong' },
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /^ask the operator to check LIFI_API_KEY$/)
            const routing = stage.open({ lifi: { apiKey: 'right' } })
            return { routing, question: stage.ask(routing, wallet) }
          },
      })
    },
  ],
  CROSSCHAIN_UNREACHABLE: [
    () => lifiErrs(() => {}, { timeoutMs: 300 }),
    () => lifiErrs(({ response }) => sendJson(response, 500, { message: 'oh' })),
  ],
  CROSSCHAIN_COST_TOO_HIGH: liedScenes({ isDear: true }),
  CROSSCHAIN_REJECTED: [
    ...liedScenes({ isDear: false }),
    () => lifiErrs(({ response }) => void response.writeHead(200).end('<html>')),
    () =>
      lifiErrs(({ quote, response }) => {
        const answer = quote()
        sendJson(response, 200, { ...answer, estimate: { ...answer.estimate, fromAmount: '1' } })
      }),
  ],
  CROSSCHAIN_NOT_PINNED: [
    () => {
      const { lifi: _, ...unpinned } = stage.farConfig()
      return crosschainScene({
        configs: [stage.config(), unpinned],
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /^configure the entry lifi of BASE in the chains file$/)
            const routing = stage.open({ lifi: {} })
            return { routing, question: stage.ask(routing, wallet) }
          },
      })
    },
  ],
  NO_PRICE: [
    () =>
      crosschainScene({
        far: { tokens: { USDT: { usdFeed: undefined, heartbeatSeconds: undefined } } },
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /^configure a price feed or a peg for USDT in the chains file$/)
            const peg = { usdFeed: undefined, heartbeatSeconds: undefined, pegUsd: '1' }
            const routing = stage.open({ lifi: {}, far: { tokens: { USDT: peg } } })
            return { routing, question: stage.ask(routing, wallet) }
          },
      }),
  ],
  PRICE_STALE: [
    async () => {
      const { feed } = stage.far.tokens.USDT
      const { timestampSec } = await stage.far.client.head()
      await stage.far.setFeed(feed, { answer: USD, updatedAtSec: timestampSec - 4_000 })
      return crosschainScene({
        then: () => async (remedy) => {
          read(remedy, /^try again when it has a new round with a price above 0$/)
          await stage.far.setFeed(feed, { answer: USD })
          return {}
        },
      })
    },
  ],
  // Nodes
  CHAIN_UNREACHABLE: [
    ...[1, 4, 7].map((questions) => () => nodeErrs((_, response) => void response.destroy(), { questions })),
    // A probe of a failed node has a quarter of the time.
    () => nodeErrs(() => {}, { chainTimeoutMs: 1_200 }),
  ],
  CHAIN_INCONSISTENT: [
    () =>
      nodeErrs(
        changeResults((method, result) => (method === 'eth_chainId' ? '0x1' : result)),
        { questions: 3 },
      ),
    () =>
      nearScene('USDC', {
        funds: { USDC: 100n * UNIT },
        near: { multicall: freshAddress('no multicall') },
        at: { chain: 'ETHEREUM' },
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /; if it happens again, check ETHEREUM in the chains file$/)
            return reopened({}, wallet)
          },
      }),
  ],
  SCREENING_UNAVAILABLE: [
    () =>
      nearScene('USDC', {
        funds: { USDC: 100n * UNIT },
        near: { screening: { oracle: freshAddress('no oracle') } },
        at: { chain: 'ETHEREUM' },
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /; if it happens again, check screening of ETHEREUM in the chains file$/)
            return reopened({}, wallet)
          },
      }),
  ],
  CONTRACT_NOT_AS_CONFIGURED: [
    async () => {
      const wallet = await stage.newWallet()
      await stage.near.fund(stage.near.tokens.USDC, wallet, 200n * UNIT)
      const { USDC } = stage.near.tokens
      const routing = stage.open({
        objectionTo: ({ address }) =>
          address === canonical(USDC.address)
            ? { contract: 'USDC', detail: 'its decimals are 18, and 6 in the file' }
            : undefined,
      })
      const follow = (remedy: string) => {
        read(remedy, /^ask the operator to correct USDC of ETHEREUM in the chains file$/)
        const next = stage.open()
        return { routing: next, question: stage.ask(next, wallet) }
      }
      const at = { chain: 'ETHEREUM', token: 'USDC' }
      return { routing, question: stage.ask(routing, wallet), at, route: DIRECT, follow }
    },
  ],
  CONTRACT_UNREADABLE: [
    () =>
      nearScene('USDC', {
        funds: { USDC: 100n * UNIT },
        near: { tokens: { USDC: { address: freshAddress('no token') } } },
        then:
          ({ wallet }) =>
          (remedy) => {
            read(remedy, /^check USDC on ETHEREUM in the chains file$/)
            return reopened({}, wallet)
          },
      }),
  ],
} satisfies Partial<Record<Reason, (() => Promise<Scene>)[]>>
