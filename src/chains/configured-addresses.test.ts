import { describe, expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import type { ChainConfig } from './chains-file.ts'
import { configuredAddresses } from './configured-addresses.ts'

const address = (n: number) => `0x${n.toString(16).padStart(40, '0')}` as Address

const chain: ChainConfig = {
  name: 'BASE',
  chainId: 8453,
  rpcUrls: [`http://${address(99)}.example`],
  multicall: address(1),
  native: { symbol: 'ETH', decimals: 18, usdFeed: address(2), heartbeatSeconds: 60 },
  tokens: [{ symbol: 'USDC', address: address(3), decimals: 6, usdFeed: address(4), heartbeatSeconds: 60 }],
  contracts: [
    { kind: 'ERC20_FEE_PROXY', version: '0.2.0', address: address(5), fromBlock: 0 },
    { kind: 'ERC20_SWAP_TO_PAY', version: '0.4.0', address: address(6), fromBlock: 0 },
  ],
  intermediaries: [address(7), address(3)],
  executors: [address(8)],
  conversion: { path: address(9), paths: [{ from: 'USD', token: 'USDC', via: [address(10)], heartbeatSeconds: 60 }] },
  swapV2: { router: address(11), factory: address(12), pairCodeHash: `0x${'ab'.repeat(32)}`, feeBps: 30, through: [] },
  swapV3: {
    factory: address(13),
    quoter: address(14),
    router: address(15),
    poolCodeHash: `0x${'cd'.repeat(32)}`,
    fees: [],
  },
  finality: { useFinalizedTag: false, depth: 1 },
  blockTimeSeconds: 2,
}

describe('configuredAddresses', () => {
  it.each([
    [1, 'multicall'],
    [2, 'native.usdFeed'],
    [3, 'the token USDC'],
    [4, 'tokens.usdFeed'],
    [5, 'ERC20_FEE_PROXY 0.2.0'],
    [6, 'ERC20_SWAP_TO_PAY 0.4.0'],
    [7, 'intermediaries'],
    [8, 'executors'],
    [9, 'conversion.path'],
    [10, 'conversion.paths.via'],
    [11, 'swapV2.router'],
    [12, 'swapV2.factory'],
    [13, 'swapV3.factory'],
    [14, 'swapV3.quoter'],
    [15, 'swapV3.router'],
  ])('is known: address %i is %s', (n, words) => {
    expect(configuredAddresses(chain).get(address(n))).toBe(words)
  })

  it('has no other address', () => {
    expect(configuredAddresses(chain).size).toBe(15)
  })

  it('has the addresses of unknown fields, in any case', () => {
    const later = { ...chain, bridge: { spenders: ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'] } } as ChainConfig
    expect(configuredAddresses(later).get('0x70997970c51812dc3a010c7d01b50e0d17dc79c8' as Address)).toBe(
      'bridge.spenders',
    )
  })
})
