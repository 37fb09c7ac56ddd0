import { describe, expect, it } from 'vitest'
import type { Token } from '../../domain/currency.ts'
import { checkRouteIds, routeId } from './route-id.ts'

const aToken = (symbol: string, chain: string): Token => ({
  id: `${symbol}-${chain}`,
  symbol,
  chain,
  decimals: 6,
  bridged: false,
  approveReset: false,
})
const provider = { name: 'li.fi-v2' }

describe('the id of a route', () => {
  const usdt = aToken('USDT', 'ARBITRUM')
  const usdc = aToken('USDC', 'BASE')
  it.each([
    [{ kind: 'DIRECT', source: usdc, destination: usdc }, 'REQUEST_NETWORK_PAYMENT'],
    [{ kind: 'CONVERSION', source: usdc, destination: usdc }, 'REQUEST_NETWORK_PAYMENT'],
    [{ kind: 'CROSSCHAIN', source: usdt, destination: usdc }, 'ARBITRUM_BASE_USDT_USDC'],
    [{ kind: 'SWAP', source: aToken('USDC.e', 'BASE'), destination: usdc }, 'BASE_BASE_USDCE_USDC'],
    [{ kind: 'SWAP', source: aToken('wstETH+', 'BASE'), destination: usdc }, 'BASE_BASE_WSTETH_USDC'],
  ] as const)('of %o is %s, and ends in the provider for any but the first', (candidate, id) => {
    expect(routeId(candidate, provider, true)).toBe(id)
    expect(routeId(candidate, provider, false)).toBe(`${id}_LIFI_V2`)
  })
})

describe('the check at start', () => {
  it('accepts tokens with distinct ids', () => {
    const tokens = ['USDC', 'USDC.e', 'USDT', 'ETH'].flatMap((symbol) => [
      aToken(symbol, 'BASE'),
      aToken(symbol, 'BSC'),
    ])
    expect(() => checkRouteIds(tokens, ['request-network', 'lifi'])).not.toThrow()
  })

  it('names two tokens whose symbols become the same', () => {
    const tokens = [aToken('USDC.e', 'BASE'), aToken('USDCe', 'BASE'), aToken('ETH', 'BASE')]
    expect(() => checkRouteIds(tokens, [])).toThrow(/USDC\.e-BASE to .* and USDCe-BASE to .* have the same route id/)
  })

  it('names an id that a provider’s suffix makes equal to another', () => {
    const tokens = [aToken('A', 'X'), aToken('B', 'X'), aToken('B_P', 'X')]
    expect(() => checkRouteIds(tokens, ['p'])).toThrow(/same route id X_X_A_B_P/)
  })

  it('refuses a symbol without letters and digits', () => {
    expect(() => checkRouteIds([aToken('₮', 'BASE')], [])).toThrow(/"₮" has no letter or digit/)
  })
})
