import { describe, expect, it } from 'vitest'
import { type ComparedRow, matchImports } from './supersede-imports.ts'

const bytes = (digit: string, length = 32) => Buffer.from(digit.repeat(length), 'hex')
const [tx, otherTx, source] = [bytes('aa'), bytes('ab'), bytes('ac')]
const [request, otherRequest] = [bytes('01', 33), bytes('02', 33)]
const [reference, otherReference] = [bytes('51', 8), bytes('52', 8)]

const base = { network: 'BASE', tx_hash: tx, request_id: request, payment_reference: reference }
const event = (index: number, more: Partial<ComparedRow> = {}): ComparedRow => ({
  ...base,
  id: `event ${index}`,
  imported: false,
  detected: true,
  event_index: index,
  source_tx_hash: tx,
  ...more,
})
const line = (name: string, more: Partial<ComparedRow> = {}): ComparedRow => ({
  ...base,
  id: name,
  imported: true,
  detected: false,
  event_index: null,
  source_tx_hash: null,
  ...more,
})
const carried = (index: number, more: Partial<ComparedRow> = {}) => event(index, { source_tx_hash: source, ...more })
const ofSource = (name: string) => line(name, { tx_hash: null, source_tx_hash: source })

const NOTHING = { adopted: [], superseded: [] }
const becomes = (name: string, index = 0) => ({ adopted: [[`event ${index}`, name]], superseded: [] })
const superseded = (...names: readonly string[]) => ({ adopted: [], superseded: names })

describe('an imported payment beside events of its account', () => {
  it.each<[string, readonly ComparedRow[], { adopted: readonly string[][]; superseded: readonly string[] }]>([
    ['counts where detection has found nothing', [line('a'), line('b')], NOTHING],
    ['becomes the event’s where both are the only ones', [event(0), line('a')], becomes('a')],
    ['becomes it by the request id alone', [event(0), line('a', { payment_reference: null })], becomes('a')],
    ['becomes it by the reference alone', [event(0), line('a', { request_id: null })], becomes('a')],
    [
      'becomes it by the reference beside an unknown request',
      [event(0), line('a', { request_id: otherRequest })],
      becomes('a'),
    ],
    ['is superseded where there are two of them', [event(0), line('a'), line('b')], superseded('a', 'b')],
    ['is superseded where the transaction has two events', [event(0), event(1), line('a')], superseded('a')],
    ['is superseded beside two of each', [event(0), event(1), line('a'), line('b')], superseded('a', 'b')],
    [
      'is superseded by an event that another line has named',
      [event(0, { imported: true }), line('a')],
      superseded('a'),
    ],
    [
      'is superseded where it names an event that was not found',
      [event(0), line('a', { event_index: 7 })],
      superseded('a'),
    ],
    [
      'becomes the event’s although another names an event that was not found',
      [event(0), line('a'), line('b', { event_index: 7 })],
      { adopted: [['event 0', 'a']], superseded: ['b'] },
    ],
    ['becomes the event’s by its source', [carried(0), ofSource('a')], becomes('a')],
    [
      'becomes the event’s by the transaction of a direct payment as its source',
      [event(0), line('a', { tx_hash: null, source_tx_hash: tx })],
      becomes('a'),
    ],
    [
      'is superseded where one names the source and one the transaction',
      [carried(0), ofSource('a'), line('b')],
      superseded('a', 'b'),
    ],
    [
      'is superseded where its source paid two events',
      [carried(0), carried(1, { tx_hash: otherTx }), ofSource('a')],
      superseded('a'),
    ],
    [
      'is superseded where its hashes are of two events',
      [carried(0), event(1, { tx_hash: otherTx }), line('a', { tx_hash: otherTx, source_tx_hash: source })],
      superseded('a'),
    ],
    ['meets no event whose source is unknown', [carried(0, { source_tx_hash: null }), ofSource('a')], NOTHING],
    [
      'meets no event of another request',
      [event(0, { request_id: otherRequest, payment_reference: otherReference }), line('a')],
      NOTHING,
    ],
    [
      'meets no event of another transaction',
      [event(0, { tx_hash: otherTx, source_tx_hash: otherTx }), line('a')],
      NOTHING,
    ],
    ['meets no event on another chain', [event(0, { network: 'POLYGON' }), line('a')], NOTHING],
    [
      'meets no event without request and reference',
      [event(0), line('a', { request_id: null, payment_reference: null })],
      NOTHING,
    ],
    ['meets no event without a transaction', [event(0), line('a', { tx_hash: null })], NOTHING],
    [
      'is distinguished by request where one transaction pays two',
      [event(0), event(1, { request_id: otherRequest, payment_reference: otherReference }), line('a')],
      becomes('a'),
    ],
    [
      'is superseded where its request is of one event and its reference of another',
      [
        event(0),
        event(1, { request_id: otherRequest, payment_reference: otherReference }),
        line('a', { payment_reference: otherReference }),
      ],
      superseded('a'),
    ],
    ['is not compared once it was found itself', [event(0, { id: 'a', imported: true }), event(1)], NOTHING],
    [
      'is superseded beside an event that took the place of one like it',
      [event(0, { id: 'a', imported: true }), line('b')],
      superseded('b'),
    ],
  ])('%s', (_, rows, expected) => {
    for (const order of [rows, rows.toReversed()]) {
      const { adopted, superseded: ids } = matchImports(order)
      expect({ adopted: [...adopted], superseded: [...ids].toSorted() }).toEqual(expected)
    }
  })
})
