import { describe, expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import { canonicalChainName, knownChains } from '../domain/chain.ts'
import { createChainDirectory } from './chain-directory.ts'
import type { ChainConfig } from './chains-file.ts'

function config(name: string, chainId: number): ChainConfig {
  return {
    name,
    chainId,
    rpcUrls: ['http://127.0.0.1:1'],
    multicall: '0x0000000000000000000000000000000000000001' as Address,
    native: { symbol: 'ETH', decimals: 18 },
    tokens: [],
    contracts: [],
    finality: { useFinalizedTag: false, depth: 1 },
    blockTimeSeconds: 1,
  }
}

describe('resolve', () => {
  const real = createChainDirectory([config('ETHEREUM', 1), config('MYCHAIN', 4242)])
  const demo = createChainDirectory([config('ETHEREUM', 31_337_001)])

  it.each([
    ['ETHEREUM', 'ETHEREUM'],
    ['ethereum', 'ETHEREUM'],
    ['mainnet', 'ETHEREUM'],
    ['Mainnet', 'ETHEREUM'],
    ['1', 'ETHEREUM'],
    ['eip155:1', 'ETHEREUM'],
    ['EIP155:1', 'ETHEREUM'],
    ['matic', 'POLYGON'],
    ['eip155:137', 'POLYGON'],
    ['arbitrum-one', 'ARBITRUM'],
    ['arbitrum_one', 'ARBITRUM'],
    ['Arbitrum One', 'ARBITRUM'],
    ['mychain', 'MYCHAIN'],
    ['4242', 'MYCHAIN'],
    ['tron', 'TRON'],
  ])('%s is %s', (text, name) => {
    expect(real.resolve(text)).toEqual({ kind: 'chain', name })
  })

  it('resolves a real id to a chain elsewhere when its name has another id here', () => {
    expect(demo.resolve('1')).toEqual({ kind: 'elsewhere', name: 'ETHEREUM' })
    expect(demo.resolve('eip155:1')).toEqual({ kind: 'elsewhere', name: 'ETHEREUM' })
    expect(demo.resolve('31337001')).toEqual({ kind: 'chain', name: 'ETHEREUM' })
    expect(demo.resolve('mainnet')).toEqual({ kind: 'chain', name: 'ETHEREUM' })
    expect(demo.resolve('137')).toEqual({ kind: 'chain', name: 'POLYGON' })
  })

  it.each([
    '',
    ' ',
    'etherium',
    'polygn',
    '999999',
    'eip155:999999',
    'eip155:',
    '__proto__',
    'constructor',
    '1e0',
    '-1',
    'x'.repeat(1000),
  ])('does not know "%s"', (text) => {
    expect(real.resolve(text).kind).toBe('unknown')
  })

  it('suggests the nearest name, and also knows the names that it is given', () => {
    const unknown = real.resolve('etherium')
    expect(unknown.kind === 'unknown' && unknown.suggest()).toBe('did you mean "ETHEREUM"?')
    expect(real.resolve('solana', new Set(['SOLANA']))).toEqual({ kind: 'chain', name: 'SOLANA' })
  })
})

it('has built-in names, ids and aliases that are canonical and unique', () => {
  const words = knownChains.flatMap(({ name, chainId, aliases }) => [name.toLowerCase(), chainId, ...aliases])
  expect(new Set(words).size).toBe(words.length)
  for (const { name } of knownChains) expect(canonicalChainName(name)).toBe(name)
})
