import { describe, expect, it } from 'vitest'
import { isRevert, isTransportFailure, isUnknownMethod, RpcError, readRefusal } from './rpc-error.ts'

describe('an error of a node', () => {
  it.each([
    [-32601, 'the method eth_simulateV1 does not exist/is not available', true],
    [-32004, 'Method eth_simulateV1 is not supported', true],
    [-32600, 'Unsupported method: eth_simulateV1', true],
    [undefined, 'eth_simulateV1 is not available on your plan', true],
    [-38014, 'insufficient funds for gas * price + value', false],
    [-32000, 'execution reverted', false],
    [-32005, 'too many requests', false],
  ])('with code %s and %j says that the node does not offer the method: %s', (code, message, isUnknown) => {
    expect(isUnknownMethod({ code, message })).toBe(isUnknown)
  })

  it.each([
    [3, '', true],
    [-32000, 'execution reverted', true],
    [-32000, 'gas required exceeds allowance', false],
  ])('with code %s and %j is a revert by the contract: %s', (code, message, reverted) => {
    expect(isRevert({ code, message })).toBe(reverted)
  })

  it.each<[unknown, ReturnType<typeof readRefusal>]>([
    [
      { code: 3, message: 'reverted', data: '0x12' },
      { code: 3, message: 'reverted', data: '0x12' },
    ],
    [
      { code: 3, message: 'reverted', data: { data: '0x12' } },
      { code: 3, message: 'reverted', data: '0x12' },
    ],
    [
      { code: '3', message: 7, data: 'words' },
      { message: '', details: 'words' },
    ],
    [
      { code: -32005, message: '', data: { rate: { backoff_seconds: 3 } } },
      { code: -32005, message: '', details: '{"rate":{"backoff_seconds":3}}' },
    ],
    [
      { code: 402, message: 'Payment Required', data: { id: 1 }, details: 'You have reached your daily credit limit.' },
      { code: 402, message: 'Payment Required', details: '{"id":1} You have reached your daily credit limit.' },
    ],
    [{ message: 'x'.repeat(600) }, { message: 'x'.repeat(500) }],
    ['rate limit', { message: 'rate limit' }],
  ])('is read whatever the node put there: %j', (error, refusal) => {
    expect(readRefusal(error)).toEqual(refusal)
  })
})

it('names the host and the node’s words in its message, and neither in its detail', () => {
  const refusal = { code: -32000, message: 'no such block' }
  const error = new RpcError('REFUSED', 'eth_call failed with code -32000', { host: 'node.example', refusal })
  expect(error.message).toBe('node.example: eth_call failed with code -32000: no such block')
  expect(error.detail).toBe('eth_call failed with code -32000')
})

it.each([
  ['UNREACHABLE', true],
  ['TIMEOUT', true],
  ['RATE_LIMITED', true],
  ['WRONG_CHAIN', true],
  ['BEHIND', true],
  ['INCONSISTENT', true],
  ['TOO_LARGE', false],
  ['BATCH_REFUSED', false],
  ['TOO_MANY_ADDRESSES', false],
  ['REVERTED', false],
  ['REFUSED', false],
] as const)('%s is a reason to ask another node: %s', (kind, expected) => {
  expect(isTransportFailure(new RpcError(kind, 'it failed'))).toBe(expected)
})
