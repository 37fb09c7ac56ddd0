import { expect } from 'vitest'
import { parseAmount } from '../../src/domain/decimal.ts'
import type { Reason } from '../../src/errors/reasons.ts'
import { deploySwapToPay } from '../support/chains/uniswap.ts'
import { type EvmAddress, freshAddress } from '../support/routing.ts'
import {
  add,
  crosschainScene,
  DIRECT,
  entryOf,
  idsOf,
  inCoins,
  inFiat,
  nearScene,
  payingWith,
  read,
  reopened,
  SWAPPED,
  SWAPPED_V3,
  withoutContract,
} from './remedy-acts.ts'
import { type Scene, stage, USD } from './remedy-stage.ts'

const COIN = 10n ** 18n
const UNIT = 10n ** 6n

/** Reasons of wallets, callers, feeds, exchanges and the configuration of a chain. */
export const ownScenes = {
  // Balances of wallets and limits of callers
  INSUFFICIENT_BALANCE: [
    () =>
      nearScene('USDC', {
        then:
          ({ wallet }) =>
          async (remedy) => {
            await add(wallet, read(remedy, /^add ([\d.]+) (\w+) on ETHEREUM$/))
            return {}
          },
      }),
  ],
  FEE_ABOVE_MAXIMUM: [
    () =>
      nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        ask: { feePercentage: '1', feeAddress: freshAddress('platform'), maxFeeRate: '0.01' },
        then:
          ({ question }) =>
          (remedy) => {
            const [maxFeeRate] = read(remedy, /^raise maxFeeRate to ([\d.]+) or more$/)
            return { question: { ...question, maxFeeRate } }
          },
      }),
  ],
  PRICE_IMPACT_ABOVE_MAXIMUM: [
    () =>
      nearScene('DAI', {
        funds: { DAI: 200_000n * COIN },
        terms: { amount: '100000' },
        ask: { maxPriceImpact: '0.01' },
        ...SWAPPED,
        then:
          ({ question }) =>
          (remedy) => {
            const [maxPriceImpact] = read(remedy, /^raise maxPriceImpact to ([\d.]+) or more$/)
            return { question: { ...question, maxPriceImpact } }
          },
      }),
  ],
  PRICE_IMPACT_UNCERTAIN: [
    // Pools that price DAI at a dollar, where its feed says five percent more; and pools beside which no feed stands.
    { pegUsd: '1.05', usdFeed: undefined, heartbeatSeconds: undefined },
    { usdFeed: undefined, heartbeatSeconds: undefined },
  ].map((priced) => () => {
    const near = { tokens: { DAI: priced } }
    return nearScene('DAI', {
      funds: { DAI: 200n * COIN },
      near,
      ask: { maxPriceImpact: '0.9' },
      ...SWAPPED,
      then:
        ({ question }) =>
        (remedy) => {
          read(remedy, /^leave maxPriceImpact out$/)
          const { maxPriceImpact: _, ...rest } = question
          return { question: rest }
        },
    })
  }),
  // Conversions
  NO_CONVERSION_PROVIDER: [
    () =>
      nearScene('DAI', {
        funds: { DAI: 200n * COIN },
        terms: inFiat('USD'),
        then:
          ({ wallet, routing, question }) =>
          async (remedy) => {
            const [symbol] = read(
              remedy,
              /^get (\w+) on ETHEREUM elsewhere and pay with it; its own entry says how much is needed$/,
            )
            const there = entryOf(await routing.find(question), { token: symbol })
            await add(wallet, read(there?.remedy ?? '', /^add ([\d.]+) (\w+) on ETHEREUM$/))
            return {}
          },
      }),
  ],
  NO_CONVERSION_PATH: [
    () =>
      nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        terms: inFiat('EUR'),
        then:
          ({ wallet }) =>
          async (remedy) => {
            const words = /^configure a path from (\w+) to USDC under conversion in the chains file$/
            const [from] = read(remedy, words)
            const { path } = stage.config().conversion as { path: EvmAddress }
            await stage.addFiatFeed('EUR')
            const conversion = { path, paths: [stage.pathFrom(from as string)] }
            return reopened({ conversion }, wallet, inFiat('EUR'))
          },
      }),
  ],
  NO_RATE: [
    () => {
      const { path } = stage.config().conversion as { path: EvmAddress }
      return nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        terms: inFiat('CHF'),
        near: { conversion: { path, paths: [stage.pathFrom('CHF')] } },
        then: () => async (remedy) => {
          const words = /^register a price feed with an answer above 0 there for each step from (\w+) to USDC$/
          await stage.addFiatFeed(read(remedy, words)[0] as string)
          return {}
        },
      })
    },
    async () => {
      const { feed } = stage.near.tokens.USDC
      await stage.near.setFeed(feed, { answer: 0n })
      return nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        terms: inFiat('USD'),
        then: () => async (remedy) => {
          read(remedy, /^register a price feed with an answer above 0/)
          await stage.near.setFeed(feed, { answer: USD })
          return {}
        },
      })
    },
  ],
  RATE_STALE: [
    async () => {
      const { feed } = stage.near.tokens.USDC
      const { timestampSec } = await stage.near.client.head()
      await stage.near.setFeed(feed, { answer: USD, updatedAtSec: timestampSec - 4_000 })
      return nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        terms: inFiat('USD'),
        then: () => async (remedy) => {
          read(remedy, /^try again when its price feed has a new round$/)
          await stage.near.setFeed(feed, { answer: USD })
          return {}
        },
      })
    },
  ],
  CONVERSION_TOO_SMALL: [
    async () => {
      const { feed } = stage.near.tokens.USDC
      await stage.near.setFeed(feed, { answer: 3n * USD })
      return nearScene('USDC', {
        funds: { USDC: 200n * UNIT },
        terms: inFiat('USD', '0.00000001'),
        then:
          ({ routing, question }) =>
          async (remedy) => {
            const [amount = ''] = read(remedy, /^pay ([\d.]+) USD or more at once: ask with a larger amount$/)
            const less = ((parseAmount(amount, 8) as bigint) - 1n).toString().padStart(9, '0')
            const short = await routing.find({ ...question, amount: less.replace(/(\d{8})$/, '.$1') })
            expect(entryOf(short, { token: 'USDC' })?.reason).toBe('CONVERSION_TOO_SMALL')
            expect(idsOf(await routing.find({ ...question, amount }))).toEqual([DIRECT])
            await stage.near.setFeed(feed, { answer: USD })
            return { question: { ...question, amount } }
          },
      })
    },
  ],
  // Swaps
  NO_SWAP_CONTRACT: [undefined, freshAddress('no swap')].map((address) => () => {
    const { contracts } = stage.config()
    const others = contracts.filter(({ kind }) => kind !== 'ERC20_SWAP_TO_PAY')
    const wrong = contracts.flatMap((each) =>
      each.kind === 'ERC20_SWAP_TO_PAY' && address ? [{ ...each, address }] : [],
    )
    return nearScene('DAI', {
      funds: { DAI: 200n * COIN },
      near: { contracts: [...others, ...wrong] },
      ...SWAPPED,
      then:
        ({ wallet }) =>
        (remedy) => {
          read(remedy, /^configure such an ERC20_SWAP_TO_PAY and the fee proxy of ETHEREUM in the chains file$/)
          return reopened({}, wallet)
        },
    })
  }),
  COIN_NOT_SWAPPABLE: [
    () => nearScene('ETH', { at: { token: 'ETH', provider: 'uniswap-v2' }, then: ({ wallet }) => payingWith(wallet) }),
    () =>
      nearScene('DAI', {
        terms: inCoins,
        at: { token: 'DAI', provider: 'uniswap-v3' },
        then: ({ wallet }) => payingWith(wallet),
      }),
  ],
  NO_POOL: [
    () =>
      nearScene('USDT', { at: { token: 'USDT', provider: 'uniswap-v2' }, then: ({ wallet }) => payingWith(wallet) }),
    () => nearScene('DAI', { at: { token: 'DAI', provider: 'uniswap-v3' }, then: ({ wallet }) => payingWith(wallet) }),
  ],
  INSUFFICIENT_LIQUIDITY: [SWAPPED, SWAPPED_V3].flatMap(({ at, route }) => {
    const funds = { DAI: 5_000_000n * COIN, USDT: 5_000_000n * UNIT }
    const terms = { amount: '2000000' }
    return [
      () => nearScene(at.token, { at, funds, terms, then: ({ wallet }) => payingWith(wallet) }),
      () =>
        nearScene(at.token, {
          at,
          route,
          funds,
          terms,
          then:
            ({ question }) =>
            (remedy) => {
              read(remedy, /, or pay a smaller amount at once$/)
              return { question: { ...question, amount: '500000' } }
            },
        }),
    ]
  }),
  SWAP_NOT_SET_UP: [
    async () => {
      const young = await deploySwapToPay(stage.near, freshAddress('another router'))
      const contracts = stage
        .config()
        .contracts.map((each) => (each.kind === 'ERC20_SWAP_TO_PAY' ? { ...each, address: young.address } : each))
      return nearScene('DAI', {
        funds: { DAI: 200n * COIN },
        near: { contracts },
        ...SWAPPED,
        then:
          ({ routing, question }) =>
          async (remedy) => {
            // Reported in full where the route is prepared, too.
            const taken = routing.prepare({ ...question, route: SWAPPED.route })
            await expect(taken).rejects.toMatchObject({
              message: expect.stringContaining(remedy),
              metadata: { remedy },
            })
            const [calls = ''] = read(remedy, /^ask its owner to call (.+)$/)
            for (const call of calls.split(', then ')) await young.callAsOwner(call)
            return {}
          },
      })
    },
  ],
  NO_FEE_RECEIVER: [
    async () => {
      await stage.swapToPay.setFee(3n)
      return nearScene('DAI', {
        funds: { DAI: 200n * COIN },
        ...SWAPPED,
        then:
          ({ routing, question }) =>
          async (remedy) => {
            const words = /^send a feeAddress, and (feePercentage)=(0) if you charge nothing yourself$/
            const [name = '', value] = read(remedy, words)
            const asked = { ...question, feeAddress: freshAddress('receiver of a fee'), [name]: value }
            expect(idsOf(await routing.find(asked))).toContain(SWAPPED.route)
            await stage.swapToPay.setFee(0n)
            return { question: asked }
          },
      })
    },
  ],
  NO_SWAP_PROVIDER: [
    () =>
      nearScene('DAI', {
        near: { swapV2: undefined, swapV3: undefined },
        funds: { DAI: 200n * COIN },
        then: ({ wallet }) => payingWith(wallet),
      }),
  ],
  // Configuration and callers
  NO_PAYMENT_CONTRACT: [
    withoutContract({}, undefined),
    withoutContract(inCoins, 'ETH'),
    withoutContract(inFiat('USD'), undefined),
    withoutContract({ ...inCoins, ...inFiat('USD') }, 'ETH'),
  ],
  CURRENCY_NOT_SUPPORTED: [
    () => {
      const without = { ...stage.config(), tokens: stage.config().tokens.filter(({ symbol }) => symbol !== 'USDC') }
      return crosschainScene({
        configs: [without],
        at: { chain: 'ETHEREUM' },
        route: DIRECT,
        then:
          ({ wallet }) =>
          async (remedy) => {
            read(remedy, /^configure the token on ETHEREUM in the chains file$/)
            await add(wallet, ['100', 'USDC'])
            return reopened({}, wallet)
          },
      })
    },
  ],
  CHAIN_NOT_SUPPORTED: [
    () =>
      crosschainScene({
        configs: [stage.farConfig()],
        at: { chain: 'ETHEREUM' },
        route: DIRECT,
        then:
          ({ wallet }) =>
          async (remedy) => {
            read(remedy, /^configure ETHEREUM in the chains file$/)
            await add(wallet, ['100', 'USDC'])
            return reopened({}, wallet)
          },
      }),
  ],
  WALLET_FAMILY_MISMATCH: [
    () =>
      nearScene('USDC', {
        ask: { wallet: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8' },
        then:
          ({ wallet, question }) =>
          async (remedy) => {
            read(remedy, /^ask with a wallet of ETHEREUM$/)
            await add(wallet, ['100', 'USDC'])
            return { question: { ...question, wallet } }
          },
      }),
  ],
} satisfies Partial<Record<Reason, (() => Promise<Scene>)[]>>
