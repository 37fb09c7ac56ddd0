import { currencyHash } from '../contracts/currency-hash.ts'
import type { Address } from '../domain/address.ts'
import type { Token } from '../domain/currency.ts'
import type { ConversionConfig, ConversionPath } from './chains-file.ts'

/** The configured path from a fiat currency to a token or coin. A chain has at most one for each pair. */
export function findConversionPath(
  conversion: ConversionConfig | undefined,
  from: string,
  into: Pick<Token, 'symbol'>,
): ConversionPath | undefined {
  return conversion?.paths.find((path) => path.from === from && path.token === into.symbol)
}

/** The path as ChainlinkConversionPath takes it: the currency to convert, those between, and the token or coin. */
export function addressesOfPath({ from, via }: ConversionPath, into: Pick<Token, 'address' | 'symbol'>): Address[] {
  const hops = via.map((hop) => (hop.startsWith('0x') ? (hop as Address) : currencyHash('iso4217', hop)))
  return [currencyHash('iso4217', from), ...hops, addressInPath(into)]
}

/** The address that stands for a token or coin in a path. */
export function addressInPath({ address, symbol }: Pick<Token, 'address' | 'symbol'>): Address {
  return address ?? currencyHash('eth', symbol)
}

/** The age beyond which a rate of the path is stale: its longest heartbeat and a tenth. Never 0. */
export function maxRateAgeSeconds({ heartbeatSeconds }: ConversionPath): number {
  return Math.ceil((heartbeatSeconds * 11) / 10)
}
