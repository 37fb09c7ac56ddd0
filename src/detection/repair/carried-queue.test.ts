import { encodeAbiParameters, pad } from 'viem'
import { describe, expect, it } from 'vitest'
import { eventTopics, type RpcLog } from '../../contracts/decode-events.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import { isPaidBy, isTransactionOf, waitAfterAttempt } from './carried-queue.ts'

const HOUR_MS = 60 * 60 * 1_000

describe('after a lookup that found nothing', () => {
  it.each<[attempts: number, waitMs: number | undefined]>([
    [0, 2_000],
    [1, 4_000],
    [10, 2_048_000],
    [14, 6 * HOUR_MS],
    [18, 6 * HOUR_MS],
    [19, undefined],
  ])('and %i before it, the next is in %s ms', (attempts, waitMs) => {
    expect(waitAfterAttempt(attempts)).toBe(waitMs)
  })

  it('there are others for some two days', () => {
    const waits = Array.from({ length: 19 }, (_, attempts) => waitAfterAttempt(attempts) ?? 0)
    expect(waits.reduce((a, b) => a + b) / HOUR_MS).toBeGreaterThan(36)
  })
})

describe('a source transaction', () => {
  const address = (digit: string) => `0x${digit.repeat(40)}` as Address
  const [payer, other] = [address('1'), address('2')]
  const transferFrom = (from: Address, value = 5n): RpcLog =>
    ({
      address: address('9'),
      topics: [eventTopics.transfer, pad(from as Hex), pad(address('3') as Hex)],
      data: encodeAbiParameters([{ type: 'uint256' }], [value]),
    }) as unknown as RpcLog

  it.each<[string, from: Address, logs: RpcLog[], isOf: boolean]>([
    ['of its sender', payer, [], true],
    ['of whoever’s tokens it moves', other, [transferFrom(other), transferFrom(payer)], true],
    ['of whoever any Transfer names, even one of 0: it only has to name them', other, [transferFrom(payer, 0n)], true],
    ['of nobody else', other, [transferFrom(other)], false],
  ])('is %s', (_, from, logs, isOf) => {
    expect(isTransactionOf(payer, { from, logs })).toBe(isOf)
  })

  it.each<[string, from: Address, logs: RpcLog[], tokens: Address[], isPaid: boolean]>([
    ['its sender', payer, [], [], true],
    ['whoever’s listed token it moves', other, [transferFrom(other), transferFrom(payer)], [address('9')], true],
    ['nobody whom an unlisted token names', other, [transferFrom(payer)], [address('8')], false],
    ['nobody whom a Transfer of 0 names', other, [transferFrom(payer, 0n)], [address('9')], false],
    ['nobody else', other, [transferFrom(other)], [address('9')], false],
  ])('shows that it was paid by %s', (_, from, logs, tokens, isPaid) => {
    expect(isPaidBy(payer, { from, logs }, new Set(tokens))).toBe(isPaid)
  })
})
