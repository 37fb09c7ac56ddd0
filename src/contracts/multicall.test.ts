import fc from 'fast-check'
import { decodeFunctionData, encodeFunctionResult, parseAbi } from 'viem'
import { describe, expect, it } from 'vitest'
import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import { decodeAggregate3, encodeAggregate3 } from './multicall.ts'

const ABI = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
])

const bytes = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((array): Hex => `0x${Buffer.from(array).toString('hex')}`)
const address = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((array) => `0x${Buffer.from(array).toString('hex')}` as Address)

describe('aggregate3', () => {
  it('is encoded as viem encodes it', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ to: address, data: bytes(100) }), { maxLength: 12 }), (reads) => {
        const { args } = decodeFunctionData({ abi: ABI, data: encodeAggregate3(reads) })
        const calls = args[0].map((call) => ({ to: call.target.toLowerCase(), data: call.callData }))
        expect(calls).toEqual(reads)
        expect(args[0].every((call) => call.allowFailure)).toBe(true)
      }),
    )
  })

  it('is decoded as viem encodes it', () => {
    const result = fc.record({ success: fc.boolean(), returnData: bytes(200) })
    fc.assert(
      fc.property(fc.array(result, { maxLength: 12 }), (results) => {
        const data = encodeFunctionResult({ abi: ABI, functionName: 'aggregate3', result: results })
        const expected = results.map((entry) => (entry.success ? entry.returnData.slice(2) : undefined))
        expect(decodeAggregate3(data, results.length)).toEqual(expected)
      }),
    )
  })

  it('throws nothing but RangeError for malformed data', () => {
    const results = [{ success: true, returnData: `0x${'12'.repeat(64)}` as const }]
    const good = encodeFunctionResult({ abi: ABI, functionName: 'aggregate3', result: results })
    fc.assert(
      fc.property(fc.nat(good.length - 3), fc.integer({ min: 0, max: 15 }), fc.nat(good.length), (at, digit, cut) => {
        const broken = (good.slice(0, at + 2) + digit.toString(16) + good.slice(at + 3)).slice(0, -cut || undefined)
        try {
          decodeAggregate3(broken, 1)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
