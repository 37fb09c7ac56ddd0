import { describe, expect, it } from 'vitest'
import { createChainDirectory } from '../../chains/chain-directory.ts'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { createTokenDirectory } from '../../chains/token-directory.ts'
import type { Address } from '../../domain/address.ts'
import type { RoutesQuestion } from '../../domain/route.ts'
import { isWanted, parsePreferences } from './preferences.ts'

function config(name: string, chainId: number, symbols: readonly string[]): ChainConfig {
  return {
    name,
    chainId,
    rpcUrls: ['http://127.0.0.1:1'],
    multicall: '0x0000000000000000000000000000000000000001' as Address,
    native: { symbol: 'ETH', decimals: 18 },
    tokens: symbols.map((symbol, i) => ({ symbol, address: `0x${i}`.padEnd(42, '1') as Address, decimals: 6 })),
    contracts: [],
    finality: { useFinalizedTag: false, depth: 1 },
    blockTimeSeconds: 1,
  }
}

/** BASE has a private chain id, as in the demo. */
const configs = [config('ETHEREUM', 1, ['USDC', 'DAI']), config('BASE', 31_337_004, ['USDC'])]
const directories = { chains: createChainDirectory(configs), tokens: createTokenDirectory(configs) }

const preferencesOf = (preferences: Partial<RoutesQuestion>) =>
  parsePreferences({ paymentReference: '', wallet: '', ...preferences }, directories)

describe('a preference that no chain or token meets', () => {
  it.each<[Partial<RoutesQuestion>, string]>([
    [{ chains: ['TRON'] }, 'chains[0]: "TRON" is not served here, so no route matches; use one of: ETHEREUM, BASE'],
    [{ chains: ['BASE', 'matic'] }, 'chains[1]: "matic" is not served here, so no route'],
    [{ chains: ['8453'] }, 'chains[0]: "8453" is not served here, so no route'],
    [
      { tokens: ['USDC-matic'] },
      'tokens[0]: "USDC-matic" is not served here, so no route matches; use one of: USDC-ETHEREUM, USDC-BASE',
    ],
    [
      { tokens: ['DAI-BASE'] },
      'tokens[0]: "DAI-BASE" is not served here, so no route matches; use one of: DAI-ETHEREUM',
    ],
    [{ tokens: ['USDC-8453'] }, 'tokens[0]: "USDC-8453" is not served here'],
    [
      { chains: ['BASE'], tokens: ['DAI'] },
      'none of the tokens is on any of the chains, so no route matches; use one of: ETH-BASE, USDC-BASE',
    ],
    [{ chains: ['mainnet'], tokens: ['USDC-base', 'ETH-base'] }, 'none of the tokens is on any of the chains'],
  ])('gives a warning: %j', (preferences, message) => {
    const { unmet } = preferencesOf(preferences)
    expect(unmet).toEqual([{ reason: 'FILTER_MATCHES_NOTHING', message: expect.stringContaining(message) as string }])
  })

  it('gives one warning for each name', () => {
    const { unmet } = preferencesOf({ chains: ['TRON', 'polygon', 'BASE'], tokens: ['DAI-BASE'] })
    expect(unmet.map(({ message }) => message.split(' ')[0])).toEqual(['chains[0]:', 'chains[1]:', 'tokens[0]:'])
  })

  it('gives a warning where nothing is configured', () => {
    const nothing = { chains: createChainDirectory([]), tokens: createTokenDirectory([]) }
    const { unmet } = parsePreferences({ paymentReference: '', wallet: '', chains: ['BASE'] }, nothing)
    expect(unmet[0]?.message).toContain('leave chains out')
  })
})

it.each<[Partial<RoutesQuestion>, string[]]>([
  [{}, ['ETH-ETHEREUM', 'USDC-ETHEREUM', 'DAI-ETHEREUM', 'ETH-BASE', 'USDC-BASE']],
  [{ chains: [], tokens: [] }, ['ETH-ETHEREUM', 'USDC-ETHEREUM', 'DAI-ETHEREUM', 'ETH-BASE', 'USDC-BASE']],
  [{ chains: ['31337004'] }, ['ETH-BASE', 'USDC-BASE']],
  [{ tokens: ['usdc'] }, ['USDC-ETHEREUM', 'USDC-BASE']],
  [{ tokens: ['USDC-base', 'ETH-mainnet'] }, ['ETH-ETHEREUM', 'USDC-BASE']],
  [{ chains: ['mainnet'], tokens: ['USDC'] }, ['USDC-ETHEREUM']],
])('%j are met by %j', (question, ids) => {
  const preferences = preferencesOf(question)
  expect(preferences.unmet).toEqual([])
  expect(directories.tokens.all.filter((token) => isWanted(token, preferences)).map(({ id }) => id)).toEqual(ids)
})

it.each<[Partial<RoutesQuestion>, string, string]>([
  [{ chains: ['BASED'] }, 'UNKNOWN_NETWORK', 'did you mean "BASE"?'],
  [{ chains: [''] }, 'UNKNOWN_NETWORK', 'use one of'],
  [{ tokens: ['USDX'] }, 'UNKNOWN_CURRENCY', 'did you mean "USDC"?'],
  [{ tokens: ['WETH-BASE'] }, 'UNKNOWN_CURRENCY', 'did you mean "ETH-BASE"?'],
  [{ tokens: ['USDC-nowhere'] }, 'UNKNOWN_CURRENCY', 'unknown currency "USDC-nowhere"'],
  [{ maxFeeRate: '1%' }, 'INVALID_FRACTION', 'maxFeeRate: "1%"'],
  [{ maxFeeRate: '9'.repeat(79) }, 'INVALID_FRACTION', 'maxFeeRate'],
  [{ maxPriceImpact: '-0.1' }, 'INVALID_FRACTION', 'maxPriceImpact'],
])('%j is refused with %s', (question, reason, message) => {
  expect(() => preferencesOf(question)).toThrow(
    expect.objectContaining({ reason, message: expect.stringContaining(message) as string }) as Error,
  )
})
