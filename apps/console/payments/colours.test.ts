import { expect, it } from 'vitest'
import { coloursOf } from './colours.ts'
import { OTHER, SPLITS } from './sums.ts'

const currencies = ['DAI-BSC', 'ETH-BASE', 'USDC-BASE', 'USDC-BSC', 'USDT-BSC']

it('gives each network and currency a colour of its own', () => {
  const networks = ['ETHEREUM', 'POLYGON', 'ARBITRUM', 'BSC', 'BASE', 'OPTIMISM', 'DEMO-1', 'DEMO-2']
  expect(new Set(networks.map(coloursOf('network', networks))).size).toBe(networks.length)
  expect(new Set(currencies.map(coloursOf('currency', currencies))).size).toBe(currencies.length)
})

it('keeps the colour of a usual network whatever others there are', () => {
  const [few, many] = [['BASE'], ['AVALANCHE', 'BASE', 'ETHEREUM']].map((known) => coloursOf('network', known)('BASE'))
  expect(few).toBe(many)
})

it('has a colour of no name for what stands together', () => {
  for (const split of SPLITS) expect(coloursOf(split, currencies)(OTHER)).toBe('var(--series-6)')
  expect(coloursOf('status', [])('FAILED')).toBe('var(--bad)')
})
