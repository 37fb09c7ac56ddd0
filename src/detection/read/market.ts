import type { Token } from '../../domain/currency.ts'
import { createPriceReader, type PriceQuery, pegOf, type UsdPrice } from './block-prices.ts'
import type { ChainReader } from './chain-reader.ts'
import { gatherCalls } from './gather-calls.ts'
import { createRateReader, type RatedPath, type RateQuery, type RateReaderOptions } from './path-rates.ts'
import { createOptionalSource, type Patience } from './patience.ts'

/** What money was worth when payments were made. */
export interface Market {
  /** Our own path of a conversion; undefined where none is configured. @param event - the same object as in the {@link ValuedPayment} */
  pathOf(event: object): RatedPath | undefined
  /** The price of a payment's token, or of the chain's coin, at the payment's block. */
  priceAt(token: Token, blockNumber: number): UsdPrice | undefined
  /** Whether that price could not be read now. */
  isUnread(token: Token, blockNumber: number): boolean
}

/** A payment whose prices and rates are to be read. */
export interface ValuedPayment extends PriceQuery {
  /** Identifies the payment in {@link Market.pathOf}. */
  readonly event: object
  /** Absent unless it is a conversion. */
  readonly conversion?: Pick<RateQuery, 'invoiceCurrency' | 'isEnough'> | undefined
}

interface MarketReaderOptions {
  readonly reader: ChainReader
  readonly clock: () => Date
}

export type MarketReader = ReturnType<typeof createMarketReader>

/** Makes what reads what the money of one chain was worth. */
export function createMarketReader(options: RateReaderOptions & MarketReaderOptions) {
  const { reader, native, clock } = options
  const prices = createPriceReader(reader)
  const rates = createRateReader(options)
  const source = createOptionalSource(clock)
  return {
    /**
     * Reads rates and prices together, so that they cost as many exchanges as the longer of the two. Rates decide what counts, so they are waited
     * for; prices only as long as `patience` lasts.
     *
     * @throws RpcError when no node answers for a rate
     */
    async read(payments: readonly ValuedPayment[], patience: Patience, signal?: AbortSignal): Promise<Market> {
      const converted = payments.flatMap(({ event, conversion, ...payment }) =>
        conversion === undefined ? [] : [{ event, ...payment, ...conversion }],
      )
      const priced = payments.flatMap(({ token, blockNumber, timestampSec }) =>
        [token, native].map((each) => ({ token: each, blockNumber, timestampSec })),
      )
      const ending = new AbortController()
      const through = gatherCalls(
        reader,
        signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]),
      )
      const ask = () => prices.pricesAt(priced, ending.signal, through)
      const asksFeeds = priced.some(({ token }) => token.usdFeed !== undefined)
      // Undefined where prices could not be read.
      const [paths, found] = await Promise.all([
        converted.length === 0 ? [] : rates.ratesAt(converted, through, signal),
        asksFeeds ? source.read(ask, patience, signal) : ask(),
      ]).finally(() => ending.abort())
      const pathOf = new Map(converted.map(({ event }, index) => [event, paths[index]]))
      const priceOf = new Map(priced.map((query, index) => [`${query.token.id} ${query.blockNumber}`, found?.[index]]))
      const readAt = (token: Token, blockNumber: number) => priceOf.get(`${token.id} ${blockNumber}`)
      return {
        pathOf: (event) => pathOf.get(event),
        priceAt(token, blockNumber) {
          const price = readAt(token, blockNumber) ?? (found === undefined ? pegOf(token) : undefined)
          return price === 'UNREAD' ? undefined : price
        },
        isUnread: (token, blockNumber) =>
          readAt(token, blockNumber) === 'UNREAD' || (found === undefined && mayHavePrice(token)),
      }
    },
  }
}

/** Whether only the chain knows the price of a token. */
function mayHavePrice(token: Token): boolean {
  return token.usdFeed !== undefined && pegOf(token) === undefined
}
