import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type EventKind, eventKinds } from './endpoint.ts'
import { signEvent } from './sign-webhook.ts'

const at = new Date('2026-03-01T12:00:00Z')
const bodyOf = (kind: EventKind, data: object) =>
  signEvent('endpoint', { kind, change: 1n, at, data: JSON.stringify(data) }, [], at).body

/** Of one, three, four and, escaped, two bytes. */
const text = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', '日', '😀', '"'), maxLength, size: 'max' })
const metadata = fc
  .array(text(500), { maxLength: 20, size: 'max' })
  .map((values) => Object.fromEntries(values.entries()))
const fees = fc.array(fc.record({ provider: text(128), amount: fc.constant('1') }), { maxLength: 300, size: 'max' })
const resource = fc.record({ id: fc.uuid(), returnUrl: text(2_048), reference: text(256), metadata, fees })

it('no body has 20 kB: lists are left out, then metadata, wherever they are', () => {
  fc.assert(
    fc.property(fc.constantFrom(...eventKinds), resource, (kind, payment) => {
      const data = kind === 'payment.removed' ? { id: payment.id, payment } : payment
      const body = bodyOf(kind, data)
      expect(Buffer.byteLength(body)).toBeLessThan(20_000)
      const sent = JSON.parse(body)
      const { metadata: pairs, fees: list, ...rest } = payment
      const {
        metadata: sentPairs,
        fees: sentList,
        ...sentRest
      } = kind === 'payment.removed' ? sent.data.payment : sent.data
      expect(sentRest).toEqual(rest)
      expect(sent.incomplete === true).toBe(sentList === undefined)
      if (sentList !== undefined) expect(sentList).toEqual(list)
      if (sentPairs !== undefined) expect(sentPairs).toEqual(pairs)
      else expect(Buffer.byteLength(JSON.stringify({ ...payment, fees: undefined }))).toBeGreaterThan(19_000)
    }),
    { numRuns: 50, endOnFailure: true },
  )
})
