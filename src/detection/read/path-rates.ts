import type { ConversionConfig } from '../../chains/chains-file.ts'
import { addressesOfPath, addressInPath, findConversionPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { readPathRate } from '../../contracts/contract-reads.ts'
import { splitWords, uintOf } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { ChainReader } from './chain-reader.ts'
import type { ContractCaller } from './gather-calls.ts'
import { findPathRateAt, type PathRate } from './path-rate-rounds.ts'

/** The configured path of a conversion, with its rates around the payment's block. */
export interface RatedPath {
  /** Rates whose oldest feed is older are stale. */
  readonly maxAgeSeconds: number
  /** That at the block, that at its parent, both, or none. */
  readonly rates: readonly PathRate[]
}

/** A conversion whose rate is to be read. */
export interface RateQuery {
  readonly invoiceCurrency: string
  /** What was paid with. */
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
  /** Whether the payment counts by these rates already; otherwise the rate at the parent block is read too. */
  isEnough(path: RatedPath): boolean
}

export type RateReader = ReturnType<typeof createRateReader>

interface RateReaderOptions {
  readonly reader: Pick<ChainReader, 'headers'>
  readonly conversion: ConversionConfig | undefined
  readonly native: Token
  readonly tokens: TokenDirectory
}

/**
 * Makes what finds the rates of our own conversion paths on one chain. It asks ChainlinkConversionPath at the payment's block and, only where the payment does not count by that rate, at
 * the parent block. Where the node no longer has that state, it searches the rounds of the feeds that the contract uses now.
 */
export function createRateReader({ reader, conversion, native, tokens }: RateReaderOptions) {
  /** Decimals of a currency in a path, as the contract finds them; undefined where only the chain can tell. */
  const decimalsIn = (token: Token) => (address: Address) =>
    [token, native].find((known) => addressInPath(known) === address)?.decimals ??
    tokens.byAddress(native.chain, address)?.decimals

  async function rateAt(contract: Address, moment: Moment, through: ContractCaller): Promise<PathRate | undefined> {
    const { path, token, blockNumber, timestampSec } = moment
    const [answer] = await through.calls([{ ...readPathRate(contract, path), block: blockNumber }])
    if (answer?.ok !== false || answer.error.kind === 'REVERTED') return pathRateIn(answer)
    await moment.requireBlock()
    return findPathRateAt(through, { contract, path, timestampSec, decimalsOf: decimalsIn(token) })
  }

  async function ratedPath(query: RateQuery, requireBlock: () => Promise<void>, through: ContractCaller) {
    const { invoiceCurrency, token, blockNumber, timestampSec } = query
    const configured = findConversionPath(conversion, invoiceCurrency, token)
    if (conversion === undefined || configured === undefined) return undefined
    const path = addressesOfPath(configured, token)
    const maxAgeSeconds = maxRateAgeSeconds(configured)
    const at = { path, token, requireBlock }
    const atBlock = await rateAt(conversion.path, { ...at, blockNumber, timestampSec }, through)
    const rated: RatedPath = { maxAgeSeconds, rates: atBlock === undefined ? [] : [atBlock] }
    if (blockNumber === 0 || query.isEnough(rated)) return rated
    // A search by time finds the parent's rounds: those before this block's second.
    const before = { blockNumber: blockNumber - 1, timestampSec: timestampSec - 1 }
    const atParent = await rateAt(conversion.path, { ...at, ...before }, through)
    return { maxAgeSeconds, rates: [...rated.rates, ...(atParent === undefined ? [] : [atParent])] }
  }

  return {
    /**
     * @param through - makes the calls, and merges those that are made at the same time
     * @returns paths in the order of the queries; undefined where none is configured
     * @throws RpcError when no node answers, or none that knows the block
     */
    async ratesAt(
      queries: readonly RateQuery[],
      through: ContractCaller,
      signal?: AbortSignal,
    ): Promise<(RatedPath | undefined)[]> {
      const last = Math.max(...queries.map(({ blockNumber }) => blockNumber))
      let checked: Promise<void> | undefined
      // A node that refuses the call because it lags would give the rounds of an earlier block.
      const requireBlock = () => (checked ??= requireHeader(reader, last, signal))
      return Promise.all(queries.map((query) => ratedPath(query, requireBlock, through)))
    },
  }
}

interface Moment {
  readonly path: readonly Address[]
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
  /** @throws RpcError where the node does not know the block */
  readonly requireBlock: () => Promise<void>
}

async function requireHeader(
  reader: Pick<ChainReader, 'headers'>,
  blockNumber: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const [header] = await reader.headers([blockNumber], signal)
  if (header === undefined) throw new RpcError('REFUSED', `the node does not know block ${blockNumber} yet`)
}

/** Decodes the answer to a call for a path's rate; undefined where there is none. A negative feed answer gives a rate of 0, which is none. */
export function pathRateIn(answer: RpcAnswer | undefined): PathRate | undefined {
  const words = answer?.ok ? splitWords(String(answer.result).slice(2), 3) : undefined
  if (words === undefined) return undefined
  const [rate, oldestSec, scale] = words.map(uintOf) as [bigint, bigint, bigint]
  return rate === 0n || scale === 0n ? undefined : { rate, oldestSec, scale }
}
