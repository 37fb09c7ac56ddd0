import { describe, expect, it } from 'vitest'
import {
  closureOf,
  type RequestStatus,
  requestStatusAt,
  type SettledStatus,
  settledStatuses,
} from './payment-request.ts'

describe('closureOf', () => {
  const at = new Date(1_000)
  it.each<[string, Parameters<typeof closureOf>[0], nowMs: number, string | undefined]>([
    ['neither', {}, 1e15, undefined],
    ['the last millisecond before expiry', { expiresAt: at }, 999, undefined],
    ['the moment of expiry', { expiresAt: at }, 1_000, 'REQUEST_EXPIRED'],
    ['cancelled', { cancelledAt: at }, 0, 'REQUEST_CANCELLED'],
    ['cancelled and expired', { cancelledAt: at, expiresAt: at }, 1_000, 'REQUEST_CANCELLED'],
  ])('%s', (_, request, nowMs, closure) => {
    expect(closureOf(request, nowMs)).toBe(closure)
  })
})

describe('requestStatusAt', () => {
  const at = new Date(1_000)
  const closed: readonly SettledStatus[] = ['OPEN', 'PARTIALLY_PAID']
  it.each<[string, Parameters<typeof closureOf>[0], nowMs: number, RequestStatus | undefined]>([
    ['neither', {}, 1e15, undefined],
    ['the last millisecond before expiry', { expiresAt: at }, 999, undefined],
    ['the moment of expiry', { expiresAt: at }, 1_000, 'EXPIRED'],
    ['cancelled', { cancelledAt: at }, 0, 'CANCELLED'],
    ['cancelled and expired', { cancelledAt: at, expiresAt: at }, 1_000, 'CANCELLED'],
  ])('%s', (_, terms, nowMs, closure) => {
    for (const settled of settledStatuses) {
      const expected = closed.includes(settled) ? (closure ?? settled) : settled
      expect(requestStatusAt(settled, terms, nowMs)).toBe(expected)
    }
  })
})
