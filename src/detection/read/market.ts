import type { Token } from '../../domain/currency.ts'
import type { RatedPath } from '../match/judge-rate.ts'
import type { PriceReader, UsdPrice } from './block-prices.ts'
import type { ChainReader } from './chain-reader.ts'
import { gatherCalls } from './gather-calls.ts'
import type { RateReader, RateWish } from './path-rates.ts'
import type { SeenEvent } from './read-transaction.ts'

/** What money was worth when payments were made. */
export interface Market {
  /** Our own path of a conversion; undefined where none is configured. */
  pathOf(event: SeenEvent): RatedPath | undefined
  /** US dollars a unit of a payment's token, or of the chain's coin, at the payment's block. */
  priceAt(token: Token, blockNumber: number): UsdPrice | undefined
}

/** Reads what a chain's money was worth. */
export interface MarketReader {
  /**
   * Reads rates and prices together, so that they cost as many exchanges as the longer of the two.
   *
   * @throws RpcError when no node answers
   */
  read(payments: readonly RateWish[], signal?: AbortSignal): Promise<Market>
}

/** Makes the reader of one chain. */
export function createMarketReader(options: {
  readonly reader: ChainReader
  readonly native: Token
  readonly prices: PriceReader
  readonly rates: RateReader
}): MarketReader {
  const { reader, native, prices, rates } = options
  return {
    async read(payments, signal) {
      const through = gatherCalls(reader, signal)
      const converted = payments.filter(({ event }) => event.conversion !== undefined)
      const priced = payments.flatMap(({ match, blockNumber, timestampSec }) =>
        [match.token, native].map((token) => ({ token, blockNumber, timestampSec })),
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
