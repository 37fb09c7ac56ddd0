import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { hideNumber, openCursor, readHiddenNumber, sealCursor } from './sealed-cursor.ts'

const seal = { secret: Buffer.alloc(32, 7), scope: '1/payments', version: 2 }
const small = { key: ['2026-03-01T00:00:00.000Z'], id: 'a' }
const large = { hashes: Array.from({ length: 100 }, () => randomBytes(32).toString('hex')), text: 'é'.repeat(300) }

test.each([
  ['small', small],
  ['large', large],
])('a %s payload comes back as it was sealed', (_, payload) => {
  expect(openCursor(seal, sealCursor(seal, payload))).toEqual(payload)
})

test('a large payload takes less than four fifths of its JSON, in characters that a URL takes as they are', () => {
  const cursor = sealCursor(seal, large)
  expect(cursor.length).toBeLessThan(JSON.stringify(large).length * 0.8)
  expect(cursor).toMatch(/^[\w-]+$/)
})

test.each([
  ['small', small],
  ['large', large],
])('a %s cursor opens no more once a character is changed, cut or added', (_, payload) => {
  const cursor = sealCursor(seal, payload)
  const step = Math.ceil(cursor.length / 200)
  for (let at = 0; at < cursor.length; at += step) {
    const other = cursor[at] === 'A' ? 'B' : 'A'
    expect(() => openCursor(seal, cursor.slice(0, at) + other + cursor.slice(at + 1))).toThrow(/damaged/)
  }
  for (const changed of [cursor.slice(0, -1), `${cursor}A`, `${cursor}=`, ` ${cursor}`, 'AAAA', 'é']) {
    expect(() => openCursor(seal, changed)).toThrow(/damaged/)
  }
})

test.each([
  ['that is empty', '', 'empty'],
  ['that is damaged', 'AAAA', 'damaged'],
  ['of another version', sealCursor({ ...seal, version: 1 }, small), 'version'],
])('a cursor %s is refused with the reason', (_, cursor, detail) => {
  const refusal = (reason: string) =>
    expect.objectContaining({ reason, message: expect.stringContaining(detail) as string }) as Error
  expect(() => openCursor(seal, cursor)).toThrow(refusal('INVALID_CURSOR'))
  expect(() => openCursor(seal, cursor, 'INVALID_WATCH_CURSOR')).toThrow(refusal('INVALID_WATCH_CURSOR'))
})

test('a cursor opens under no other secret and no other scope', () => {
  const cursor = sealCursor(seal, small)
  expect(() => openCursor({ ...seal, secret: Buffer.alloc(32, 8) }, cursor)).toThrow(/damaged/)
  expect(() => openCursor({ ...seal, scope: '2/payments' }, cursor)).toThrow(/damaged/)
  expect(() => openCursor({ ...seal, scope: '1/requests' }, cursor)).toThrow(/damaged/)
})

test('a hidden number comes back, shows none of its digits nor how many, and is another in each scope', () => {
  const other = { ...seal, scope: '2/payments' }
  for (const number of ['1', '42', '999999999999999', '9223372036854775807']) {
    const hidden = hideNumber(seal, number)
    expect(readHiddenNumber(seal, hidden)).toBe(number)
    expect(hideNumber(seal, number)).toBe(hidden)
    expect(Buffer.from(hidden, 'base64url').toString('latin1')).not.toContain(number)
    expect(hideNumber(other, number)).not.toBe(hidden)
  }
  const lengths = ['1', '42', '999999999999999'].map((number) => hideNumber(seal, number).length)
  expect(new Set(lengths).size).toBe(1)
})
