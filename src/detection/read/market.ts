import type { Token } from '../../domain/currency.ts'
import type { PriceReader, PriceWish, UsdPrice } from './block-prices.ts'
import { type ContractCaller, gatherCalls } from './gather-calls.ts'
import type { RatedPath, RateReader, RateWish } from './path-rates.ts'

/** What money was worth when payments were made. */
export interface Market {
  /** Our own path of a conversion; undefined where none is configured. @param event - the same object as in the {@link ValuedPayment} */
  pathOf(event: object): RatedPath | undefined
  /** The price of a payment's token, or of the chain's coin, at the payment's block. */
  priceAt(token: Token, blockNumber: number): UsdPrice | undefined
}

/** A payment whose prices and rates are to be read. */
export interface ValuedPayment extends PriceWish {
  /** Identifies the payment in {@link Market.pathOf}. */
  readonly event: object
  /** Absent unless it is a conversion. */
  readonly conversion?: Pick<RateWish, 'invoiceCurrency' | 'isEnough'> | undefined
}

/** Reads what a chain's money was worth. */
export interface MarketReader {
  /**
   * Reads rates and prices together, so that they cost as many exchanges as the longer of the two.
   *
   * @throws RpcError when no node answers
   */
  read(payments: readonly ValuedPayment[], signal?: AbortSignal): Promise<Market>
}

/** Makes the reader of one chain. */
export function createMarketReader(options: {
  readonly reader: ContractCaller
  readonly native: Token
  readonly prices: PriceReader
  readonly rates: RateReader
}): MarketReader {
  const { reader, native, prices, rates } = options
  return {
    async read(payments, signal) {
      const through = gatherCalls(reader, signal)
      const converted = payments.flatMap(({ event, conversion, ...payment }) =>
        conversion === undefined ? [] : [{ event, ...payment, ...conversion }],
      )
      const priced = payments.flatMap(({ token, blockNumber, timestampSec }) =>
        [token, native].map((each) => ({ token: each, blockNumber, timestampSec })),
      )
      const [paths, found] = await Promise.all([
        converted.length === 0 ? [] : rates.ratesAt(converted, through, signal),
        prices.pricesAt(priced, signal, through),
      ])
      const pathOf = new Map(converted.map(({ event }, index) => [event, paths[index]]))
      const priceOf = new Map(priced.map((wish, index) => [`${wish.token.id} ${wish.blockNumber}`, found[index]]))
      return {
        pathOf: (event) => pathOf.get(event),
        priceAt: (token, blockNumber) => priceOf.get(`${token.id} ${blockNumber}`),
      }
    },
  }
}
