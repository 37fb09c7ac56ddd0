import fc from 'fast-check'
import { expect, it } from 'vitest'
import { suggestName } from './nearest.ts'

const parameters = ['fromDate', 'toDate', 'payer', 'walletAddress', 'txHash', 'sortOrder', 'status', 'network', 'limit']

it.each([
  ['from', 'fromDate'],
  ['to', 'toDate'],
  ['tx', 'txHash'],
  ['order', 'sortOrder'],
  ['wallet', 'walletAddress'],
  ['statuss', 'status'],
  ['STATUS', 'status'],
  ['netwrok', 'network'],
  ['lmit', 'limit'],
  ['netowrk', 'network'],
  ['paeyr', 'payer'],
])('takes %s for %s', (mistyped, name) => {
  expect(suggestName(mistyped, parameters)).toBe(`did you mean "${name}"?`)
})

it.each(['nope', 'xy', '', 'pageSize', 'x'.repeat(10_000)])('lists the names when none is near to "%s"', (mistyped) => {
  expect(suggestName(mistyped, ['q', 'op', ...parameters])).toBe(`use one of: q, op, ${parameters.join(', ')}`)
})

it('lists at most 40 names', () => {
  const names = Array.from({ length: 100 }, (_, i) => `NAME${i}`)
  expect(suggestName('zzz', names)).toMatch(/NAME39 and 60 more$/)
})

it('lists a repeated name once', () => {
  expect(suggestName('zzz', ['one', 'two', 'one'])).toBe('use one of: one, two')
})

/** The full table of edit distances, without any limit. */
function naiveDistance(a: string, b: string): number {
  const rows: number[][] = []
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 0; i <= a.length; i++) {
    const row: number[] = []
    rows.push(row)
    for (let j = 0; j <= b.length; j++) {
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = i + j === 0 ? 0 : Math.min(change, swap, at(i - 1, j) + 1, at(i, j - 1) + 1)
    }
  }
  return at(a.length, b.length)
}

function naiveNearest(mistyped: string, names: readonly string[]): string | undefined {
  const wanted = mistyped.toLowerCase()
  if (wanted.length === 0) return undefined
  const holder =
    (wanted.length >= 2 && names.find((name) => name.toLowerCase().startsWith(wanted))) ||
    (wanted.length >= 4 && names.find((name) => name.toLowerCase().includes(wanted)))
  if (holder) return holder
  let best: { readonly name: string; readonly distance: number } | undefined
  for (const name of names) {
    const distance = naiveDistance(wanted, name.toLowerCase())
    const most = Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
    if (distance <= most && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { name, distance }
  }
  return best?.name
}

it('finds the name that a full comparison with every name finds', () => {
  const word = fc.string({ unit: fc.constantFrom(...'abcB-'.split('')), maxLength: 24 })
  fc.assert(
    fc.property(word, fc.array(word, { maxLength: 12 }), (mistyped, names) => {
      const nearest = naiveNearest(mistyped, names)
      const expected = nearest === undefined ? expect.stringMatching(/^use one of/) : `did you mean "${nearest}"?`
      expect(suggestName(mistyped, names)).toEqual(expected)
    }),
    { numRuns: 1_500 },
  )
})

it('finds a name from a few edits of it, among long names', () => {
  const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'.split(''))
  const names = fc.array(fc.string({ unit: letter, minLength: 12, maxLength: 26 }), { minLength: 1, maxLength: 20 })
  const edits = fc.array(fc.tuple(fc.nat(), letter, fc.nat({ max: 2 })), { maxLength: 6 })
  fc.assert(
    fc.property(names, fc.nat(), edits, (known, pick, made) => {
      let mistyped = known[pick % known.length] ?? ''
      for (const [place, by, kind] of made) {
        const at = place % mistyped.length
        mistyped = mistyped.slice(0, at) + (kind === 0 ? '' : by) + mistyped.slice(kind === 2 ? at : at + 1)
      }
      const nearest = naiveNearest(mistyped, known)
      if (mistyped.length <= 32) expect(suggestName(mistyped, known)).toContain(nearest ?? 'use one of')
    }),
    { numRuns: 150 },
  )
})

/** Pseudo-random numbers, the same in each run. */
function wordsOf(count: number, length: number, alphabet: string): readonly string[] {
  let state = 1
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return alphabet[Math.floor((state / 2 ** 32) * alphabet.length)]
  }
  return Array.from({ length: count }, () => Array.from({ length }, next).join(''))
}

const manyNames: readonly (readonly [string, readonly string[]])[] = [
  ['12,000 names of any letters', wordsOf(12_000, 65, 'abcdefghijklmnopqrstuvwxyz')],
  ['12,000 names of two letters', wordsOf(12_000, 65, 'ab')],
  ['12,000 shorter ones', wordsOf(12_000, 31, 'ab')],
  ['12,000 names that begin alike', wordsOf(12_000, 25, 'abcdefgh').map((word) => 'a'.repeat(40) + word)],
  ['60,000 names', wordsOf(60_000, 65, 'abcdefgh')],
]

/** The least time of several measurements, because other processes may delay this thread. In milliseconds of the processor. */
function leastMs(work: () => unknown): number {
  const takenMs = Array.from({ length: 8 }, () => {
    const before = process.cpuUsage()
    work()
    return process.cpuUsage(before).user / 1_000
  })
  return Math.min(...takenMs)
}

/** Reads each letter of 60,000 names once: 4 ms on a usual machine, and longer on a slow one. */
function readLetters(): number {
  let sum = 0
  for (const name of manyNames[4]?.[1] ?? []) for (let at = 0; at < name.length; at++) sum += name.charCodeAt(at)
  return sum
}

it.each(manyNames)(
  'takes at most five times as long as reading the letters of 60,000 names for %s, whatever the text',
  (_, names) => {
    const known = (names[9_000] as string).padEnd(65, 'b')
    const asked = [
      '#'.repeat(64),
      `#${known.slice(2, 64)}`,
      known.slice(0, 43) + '#'.repeat(21),
      'ab'.repeat(32),
      'ab'.repeat(16),
    ]
    const unitMs = leastMs(readLetters)
    for (const mistyped of asked) {
      expect(leastMs(() => suggestName(mistyped, names)) / unitMs).toBeLessThan(5)
    }
  },
)
