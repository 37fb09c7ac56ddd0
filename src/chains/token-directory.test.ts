import { describe, expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import { createChainDirectory } from './chain-directory.ts'
import type { ChainConfig } from './chains-file.ts'
import { createTokenDirectory, readCurrencyId } from './token-directory.ts'

function config(name: string, chainId: number, native: string, symbols: readonly string[]): ChainConfig {
  return {
    name,
    chainId,
    rpcUrls: ['http://127.0.0.1:1'],
    multicall: '0x0000000000000000000000000000000000000001' as Address,
    native: { symbol: native, decimals: 18 },
    tokens: symbols.map((symbol, i) => ({
      symbol,
      address: `0x${(i + 2).toString(16).padStart(40, '0')}` as Address,
      decimals: 6,
    })),
    contracts: [],
    finality: { useFinalizedTag: false, depth: 1 },
    blockTimeSeconds: 1,
  }
}

const configs = [
  config('ETHEREUM', 1, 'ETH', ['USDC', 'USDC.e']),
  config('POLYGON', 137, 'POL', ['USDC', 'A-B']),
  config('ARBITRUM', 42_161, 'ETH', ['USDC']),
  config('BASE', 31_337_004, 'ETH', ['USDC']),
]

describe('a currency id', () => {
  const tokens = createTokenDirectory(configs)

  it.each([
    ['USDC-BASE', 'USDC-BASE'],
    ['USDC-base', 'USDC-BASE'],
    ['usdc-Base', 'USDC-BASE'],
    ['USDC-base-mainnet', 'USDC-BASE'],
    ['USDC-31337004', 'USDC-BASE'],
    ['USDC-matic', 'USDC-POLYGON'],
    ['USDC-MATIC', 'USDC-POLYGON'],
    ['USDC-137', 'USDC-POLYGON'],
    ['USDC-eip155:137', 'USDC-POLYGON'],
    ['POL-polygon-pos', 'POL-POLYGON'],
    ['ETH-mainnet', 'ETH-ETHEREUM'],
    ['ETH-eth', 'ETH-ETHEREUM'],
    ['usdc.e-mainnet', 'USDC.e-ETHEREUM'],
    ['USDC-arbitrum-one', 'USDC-ARBITRUM'],
    ['USDC-Arbitrum One', 'USDC-ARBITRUM'],
    ['A-B-matic', 'A-B-POLYGON'],
    ['USDC-matic-matic', 'USDC-POLYGON'],
    ['USDC-arbitrum-one-arbitrum-one', 'USDC-ARBITRUM'],
    ['A-B-matic-matic', 'A-B-POLYGON'],
  ])('%s is %s', (text, id) => {
    expect(tokens.byId(text)?.id).toBe(id)
    expect(tokens.onChain(tokens.byId(id)?.chain ?? '', text)?.id).toBe(id)
  })

  it.each([
    ['a real chain whose name has another id here', 'USDC-8453'],
    ['a chain that is not configured', 'USDC-optimism'],
    ['a token that the chain does not have', 'DAI-matic'],
    ['an unknown chain', 'USDC-nowhere'],
    ['no symbol', '-matic'],
    ['no network', 'USDC-'],
    ['a symbol alone', 'USDC'],
    ['a blank', 'USDC- matic'],
    ['a property of every object', '__proto__-matic'],
    ['a very long text', `${'-'.repeat(1_000_000)}matic`],
  ])('is none with %s', (_, text) => {
    expect(tokens.byId(text)).toBeUndefined()
  })
})

describe('readings of a currency id', () => {
  const chains = createChainDirectory(configs)

  it('include chains that are known but not configured, and those that are given', () => {
    expect(readCurrencyId('WETH-op', chains)).toEqual([{ id: 'WETH-OPTIMISM', symbol: 'WETH', chain: 'OPTIMISM' }])
    expect(readCurrencyId('USDC-solana', chains)).toEqual([])
    expect(readCurrencyId('USDC-solana', chains, new Set(['SOLANA']))).toMatchObject([{ id: 'USDC-SOLANA' }])
  })

  it('are several where the text ends in several names of chains, the longest first', () => {
    const names = readCurrencyId('X-BASE-MAINNET', chains).map(({ id }) => id)
    expect(names).toEqual(['X-BASE', 'X-BASE-ETHEREUM'])
  })
})
