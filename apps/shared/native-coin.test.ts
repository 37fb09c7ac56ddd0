import { expect, it } from 'vitest'
import { isNativeCoin } from '../console/payment/payment-details.tsx'

const gas = (currency: string) => ({ $typeName: 'payments.v1.Payment.Gas' as const, amount: '0.001', currency })

it.each([
  ['a payment in the coin that its gas was paid in', { currency: 'ETH-BASE', gas: gas('ETH-BASE') }, true],
  [
    'a token',
    { currency: 'USDC-BASE', tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', gas: gas('ETH-BASE') },
    false,
  ],
  ['a token whose import leaves its contract out', { currency: 'USDC-BASE', gas: gas('ETH-BASE') }, false],
  ['a token of unknown contract and gas', { currency: 'USDC-BASE' }, false],
  [
    'a token of a coin’s symbol',
    { currency: 'ETH-BASE', tokenAddress: '0x4200000000000000000000000000000000000006', gas: gas('ETH-BASE') },
    false,
  ],
  ['a coin of unknown gas, of which nothing is certain', { currency: 'ETH-BASE' }, false],
])('tells of %s whether it is the chain’s own coin', (_, payment, expected) => {
  expect(isNativeCoin(payment)).toBe(expected)
})
