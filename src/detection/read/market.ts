import { decodeIsSanctioned, readIsSanctioned } from '../../contracts/contract-reads.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { PaymentMark } from '../../domain/payment.ts'
import { createPriceReader, isRefused, type PriceQuery, pegOf, type UsdPrice } from './block-prices.ts'
import type { ChainReader, ReadAtBlock } from './chain-reader.ts'
import { type ContractCaller, gatherCalls } from './gather-calls.ts'
import { createRateReader, type RatedPath, type RateQuery, type RateReaderOptions } from './path-rates.ts'
import { createOptionalSource, type Patience } from './patience.ts'

/** What money was worth when payments were made. */
export interface Market {
  /** Our own path of a conversion; undefined where none is configured. @param event - the same object as in the {@link ValuedPayment} */
  pathOf(event: object): RatedPath | undefined
  /** What the chain's oracle says of a payment's payer. @param event - as for `pathOf` */
  marksOf(event: object): readonly PaymentMark[]
  /** The price of a payment's token, or of the chain's coin, at the payment's block. */
  priceAt(token: Token, blockNumber: number): UsdPrice | undefined
  /** Whether that price could not be read now. */
  isUnread(token: Token, blockNumber: number): boolean
}

/** A payment whose prices and rates are to be read. */
export interface ValuedPayment extends PriceQuery {
  /** Identifies the payment in {@link Market.pathOf}. */
  readonly event: object
  /** Who is screened; undefined where it is not known. */
  readonly payer: Address | undefined
  /** Absent unless it is a conversion. */
  readonly conversion?: Pick<RateQuery, 'invoiceCurrency' | 'isEnough'> | undefined
}

interface MarketReaderOptions {
  readonly reader: ChainReader
  readonly clock: () => Date
  /** Who screens payers; undefined: nobody. */
  readonly oracle: Address | undefined
}

export type MarketReader = ReturnType<typeof createMarketReader>

/** Makes what reads what the money of one chain was worth. */
export function createMarketReader(options: RateReaderOptions & MarketReaderOptions) {
  const { reader, native, clock, oracle } = options
  const prices = createPriceReader(reader)
  const rates = createRateReader(options)
  const source = createOptionalSource(clock)
  const screening = createOptionalSource(clock)
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
      const payers = payments.flatMap(({ event, payer, blockNumber: block }) =>
        oracle === undefined || payer === undefined ? [] : [{ event, ...readIsSanctioned(oracle, payer), block }],
      )
      const asksFeeds = priced.some(({ token }) => token.usdFeed !== undefined)
      // Undefined where prices could not be read.
      const [paths, found, listed] = await Promise.all([
        converted.length === 0 ? [] : rates.ratesAt(converted, through, signal),
        asksFeeds ? source.read(ask, patience, signal) : ask(),
        payers.length === 0
          ? []
          : screening.read(() => readListings(reader, through, payers, ending.signal), patience, signal),
      ]).finally(() => ending.abort())
      const marksOf = new Map(payers.map(({ event }, index) => [event, marksOfListing(listed?.[index])]))
      const pathOf = new Map(converted.map(({ event }, index) => [event, paths[index]]))
      const priceOf = new Map(priced.map((query, index) => [`${query.token.id} ${query.blockNumber}`, found?.[index]]))
      const readAt = (token: Token, blockNumber: number) => priceOf.get(`${token.id} ${blockNumber}`)
      return {
        pathOf: (event) => pathOf.get(event),
        marksOf: (event) => marksOf.get(event) ?? [],
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

/** What an oracle answers at blocks. What one node refuses, the others are asked. @returns undefined where none of them says */
async function readListings(
  reader: ChainReader,
  through: ContractCaller,
  reads: readonly ReadAtBlock[],
  signal: AbortSignal,
): Promise<(boolean | undefined)[]> {
  const answers = await through.calls(reads)
  const open = reads.filter((_, index) => isRefused(answers[index]))
  const elsewhere = open.length === 0 ? [] : await reader.callsAnywhere(open, signal)
  return reads.map((read, index) => {
    const answer = isRefused(answers[index]) ? elsewhere[open.indexOf(read)] : answers[index]
    return answer?.ok === true ? decodeIsSanctioned(String(answer.result).slice(2)) : undefined
  })
}

function marksOfListing(isListed: boolean | undefined): readonly PaymentMark[] {
  if (isListed === undefined) return ['SCREENING_UNKNOWN']
  return isListed ? ['PAYER_SCREENED'] : []
}

/** Whether only the chain knows the price of a token. */
function mayHavePrice(token: Token): boolean {
  return token.usdFeed !== undefined && pegOf(token) === undefined
}
