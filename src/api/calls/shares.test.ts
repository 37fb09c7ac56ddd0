import { describe, expect, it } from 'vitest'
import { USUAL_SHARE } from '../../domain/account.ts'
import { createPlaces, decideClaim, type Holder } from './shares.ts'

const secret = { standing: 'secret', share: USUAL_SHARE } as const
const large = { standing: 'secret', share: 0.5 } as const
const page = { standing: 'publishable', share: 0 } as const
const nobody = { standing: 'keyless', share: 0 } as const

describe('of 1,000 places', () => {
  it.each([
    ['one secret key takes all of an idle process', secret, 999, 999, 'GRANTED'],
    ['and no more', secret, 1_000, 1_000, 'FULL'],
    ['another key gets its share beyond them', secret, 1_000, 0, 'GRANTED'],
    ['to the last of it', secret, 1_099, 99, 'GRANTED'],
    ['and no more', secret, 1_100, 100, 'FULL'],
    ['a third key gets its share as well', secret, 1_100, 0, 'GRANTED'],
    ['a key above its share gets what is free', secret, 950, 100, 'GRANTED'],
    ['a key with a larger share keeps it', large, 1_300, 499, 'GRANTED'],
    ['and no more', large, 1_300, 500, 'FULL'],
    ['without a key all are granted below nine tenths', nobody, 899, 899, 'GRANTED'],
    ['and none from there on', nobody, 900, 0, 'FULL'],
    ['with publishable keys all are granted there', page, 900, 900, 'GRANTED'],
    ['until less than a twentieth is free', page, 949, 0, 'GRANTED'],
    ['and none from there on', page, 950, 0, 'FULL'],
    ['secret keys above their share come after them', secret, 950, 949, 'GRANTED'],
  ] as const)('%s', (_, holder, taken, held, decision) => {
    expect(decideClaim({ holder, size: 1_000, taken, held, isCapped: false })).toBe(decision)
  })
})

describe('of 1,000 places with a cap', () => {
  it.each([
    ['a secret key gets a tenth of an idle process', secret, 99, 99, 'GRANTED'],
    ['and no more', secret, 100, 100, 'CAP_REACHED'],
    ['also with a larger share', large, 100, 100, 'CAP_REACHED'],
    ['an address with publishable keys as well', page, 100, 100, 'CAP_REACHED'],
    ['and one without a key', nobody, 100, 100, 'CAP_REACHED'],
    ['within its share a secret key is never refused', secret, 1_000, 99, 'GRANTED'],
    ['publishable keys leave space', page, 950, 0, 'FULL'],
    ['and so do callers without a key', nobody, 900, 0, 'FULL'],
  ] as const)('%s', (_, holder, taken, held, decision) => {
    expect(decideClaim({ holder, size: 1_000, taken, held, isCapped: true })).toBe(decision)
  })
})

it.each([1, 2, 5, 9, 10, 11])('each secret key gets one of %i places', (size) => {
  expect(decideClaim({ holder: secret, size, taken: size, held: 0, isCapped: false })).toBe('GRANTED')
  expect(decideClaim({ holder: nobody, size: 1, taken: 0, held: 0, isCapped: true })).toBe('GRANTED')
})

it('places that are given back are free, and holders are distinguished by name', () => {
  const places = createPlaces({ size: 20, isCapped: true })
  const at = (name: string): Holder => ({ ...page, name })
  const first = [places.take(at('a')), places.take(at('a'))]
  expect(first.map((place) => typeof place)).toEqual(['function', 'function'])
  expect(places.take(at('a'))).toBe('CAP_REACHED')
  expect(typeof places.take(at('b'))).toBe('function')
  const [give] = first
  if (typeof give === 'function') give()
  expect(typeof places.take(at('a'))).toBe('function')
  expect(places.take(at('a'))).toBe('CAP_REACHED')
})
