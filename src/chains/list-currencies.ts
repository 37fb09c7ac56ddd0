import { caip2Of } from '../domain/chain.ts'
import type { Token } from '../domain/currency.ts'
import type { ChainDirectory } from './chain-directory.ts'
import type { TokenDirectory } from './token-directory.ts'

/** A token or coin in which requests are paid. */
export interface PaymentCurrency extends Token {
  /** CAIP-2. */
  readonly chainId: string
  /** ISO 4217 codes of the currencies that a conversion contract turns into it, sorted. */
  readonly fiatCurrencies: readonly string[]
}

/** The tokens and coins of the configured chains, in their order. */
export function listCurrencies(chains: ChainDirectory, tokens: TokenDirectory): readonly PaymentCurrency[] {
  return chains.configured.flatMap(({ name, chainId, conversion }) =>
    tokens.ofChain(name).map((token) => {
      const paths = conversion?.paths.filter((path) => path.token === token.symbol) ?? []
      return { ...token, chainId: caip2Of(chainId), fiatCurrencies: paths.map(({ from }) => from).toSorted() }
    }),
  )
}
