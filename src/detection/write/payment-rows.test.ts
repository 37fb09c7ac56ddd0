import { describe, expect, it } from 'vitest'
import { codeOfType, rankOfStatus } from '../../domain/payment.ts'
import { attachFacts } from '../../store/payment-facts.ts'
import type { PaymentFacts, PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import { findGone } from './account-change.ts'
import { correctFacts, finalisePayments } from './payment-rows.ts'

const bytes = (digit: string, length = 32) => Buffer.from(digit.repeat(length), 'hex')
const [payer, other] = [bytes('11', 21), bytes('22', 21)]
const chain = { chainId: 'eip155:8453', network: 'BASE' }

const facts: PaymentFacts = {
  type: codeOfType('DIRECT'),
  event_index: 0,
  log_index: 0,
  block_number: 100n,
  timestamp: new Date(1_000),
  network: 'BASE',
  source_network: 'BASE',
  chain_id: chain.chainId,
  currency: 'USDC-BASE',
  currency_symbol: 'USDC',
  invoice_currency: 'USDC-BASE',
  amount: '5',
  amount_in_usd: '5.01',
  invoice_amount: '5',
  tx_hash: bytes('aa'),
  source_tx_hash: bytes('aa'),
  payer,
  payee: bytes('33', 21),
  initiator: payer,
  token_address: bytes('44', 21),
  request_id: bytes('01', 33),
  payment_reference: bytes('55', 8),
  reference: null,
  fees: [{ type: 'PLATFORM', stage: 'SENDING', amount: '0.1', currency: 'USDC-BASE', amountInUsd: '0.1' }],
  exchange_rates: [],
  gas: null,
  marks: 0,
}

const row: PaymentRow = {
  ...facts,
  account_id: 1,
  id: '00000000-0000-8000-8000-000000000001',
  status: rankOfStatus('PENDING'),
  final: false,
  imported: false,
  detected: true,
  superseded: false,
  confirmations: null,
  updated_at: new Date(2_000),
  refunded_amount: '0',
  refunds: [],
  status_history: [],
  line_hash: null,
  line_updated_at: null,
  metadata: null,
}
const imported: PaymentRow = { ...row, imported: true, detected: false, block_number: null, line_hash: bytes('77') }
const crosschain = { type: codeOfType('CROSSCHAIN'), source_network: null, source_tx_hash: null }

describe('a payment that is read once more for a new topic', () => {
  it.each<[string, PaymentRow, Partial<PaymentFacts>, Partial<PaymentRow> | undefined]>([
    ['stays as it is in the same block', row, { amount_in_usd: null, payer: other }, undefined],
    ['moves to another block after a reorg', row, { block_number: 101n }, { block_number: 101n }],
    ['keeps a price that is no longer known', row, { block_number: 101n, amount_in_usd: null }, { block_number: 101n }],
    [
      'is detected if it was only imported',
      { ...imported, payer: null },
      {},
      { detected: true, payer, block_number: 100n, line_hash: null, final: false },
    ],
    [
      'was made after all if its import said FAILED',
      { ...imported, status: rankOfStatus('FAILED') },
      {},
      { detected: true, status: rankOfStatus('PENDING'), block_number: 100n, line_hash: null },
    ],
    [
      'replaces what an import said',
      { ...imported, amount: '7' },
      {},
      { amount: '5', detected: true, block_number: 100n, line_hash: null },
    ],
    [
      'loses the payer and the source of its import where the chain does not tell them',
      { ...imported, payer: other, source_network: 'POLYGON', source_tx_hash: bytes('88') },
      { payer: null, ...crosschain },
      { ...crosschain, payer: null, detected: true, block_number: 100n, line_hash: null, final: false },
    ],
    [
      'stays where only the form of a number differs',
      { ...imported, detected: true, block_number: 100n, amount: '5.000' },
      {},
      undefined,
    ],
  ])('%s', (_, before, reported, changes) => {
    const after = attachFacts(before, { ...facts, ...reported })
    if (changes === undefined) expect(after).toBe(before)
    else expect(after).toEqual({ ...before, ...changes })
  })
})

describe('a payment whose event is read again', () => {
  it.each<[string, PaymentRow, Partial<PaymentFacts>, Partial<PaymentRow> | undefined]>([
    ['stays as it is where nothing differs', row, {}, undefined],
    [
      'stays where only prices differ',
      row,
      { amount_in_usd: null, fees: [{ type: 'PLATFORM', stage: 'SENDING', amount: '0.1', currency: 'USDC-BASE' }] },
      undefined,
    ],
    ['gets another payer', row, { payer: other, amount_in_usd: null }, { payer: other }],
    ['loses a payer that is not certain', row, { payer: null }, { payer: null }],
    [
      'becomes another payment with its prices',
      row,
      { amount: '6', amount_in_usd: '6.01' },
      { amount: '6', amount_in_usd: '6.01' },
    ],
    ['gets another fee', row, { fees: [] }, { fees: [] }],
    [
      'keeps the payer that a bridge named',
      { ...row, ...crosschain, payer: other },
      { ...crosschain, payer: null },
      undefined,
    ],
    [
      'takes the payer of the chain alone where it was imported',
      { ...row, imported: true },
      { amount: '6', payer: other },
      { payer: other },
    ],
  ])('%s', (_, before, reported, changes) => {
    const after = correctFacts(before, { ...facts, ...reported })
    if (changes === undefined) expect(after).toBe(before)
    else expect(after).toEqual({ ...before, ...changes })
  })
})

describe('of events that were read again', () => {
  const place = { txHash: `0x${'aa'.repeat(32)}`, eventIndex: 0 } as const
  const refund = { tx_hash: bytes('aa'), event_index: 0, network: 'BASE' } as RefundRow
  const found = [place] as never
  it.each<
    [string, payments: PaymentRow[], Parameters<typeof findGone>[1], gone: { payments: number; refunds: number }]
  >([
    [
      'rows that no longer count are gone',
      [row],
      { payments: [], refunds: [], rereadEvents: [place] },
      { payments: 1, refunds: 1 },
    ],
    [
      'a payment that counts stays',
      [row],
      { payments: found, refunds: [], rereadEvents: [place] },
      { payments: 0, refunds: 1 },
    ],
    [
      'a refund that counts stays',
      [row],
      { payments: [], refunds: found, rereadEvents: [place] },
      { payments: 1, refunds: 0 },
    ],
    [
      'an imported payment stays',
      [{ ...row, imported: true }],
      { payments: [], refunds: [], rereadEvents: [place] },
      { payments: 0, refunds: 1 },
    ],
    [
      'others stay',
      [row],
      { payments: [], refunds: [], rereadEvents: [{ ...place, eventIndex: 1 }] },
      { payments: 0, refunds: 0 },
    ],
    ['none is gone where nothing was read again', [row], { payments: [], refunds: [] }, { payments: 0, refunds: 0 }],
  ])('%s', (_, payments, change, gone) => {
    const result = findGone(chain, change, { payments, refunds: [refund] })
    expect({ payments: result.payments.length, refunds: result.refunds.length }).toEqual(gone)
  })
})

describe('a payment', () => {
  const heights = { finalBlock: 100, headBlock: 130 }
  it.each<[string, PaymentRow, Partial<PaymentRow> | undefined]>([
    ['becomes final at the final block, with its confirmations', row, { final: true, confirmations: 31 }],
    ['is not final above it', { ...row, block_number: 101n }, undefined],
    ['of another chain is left alone', { ...row, chain_id: 'eip155:1' }, undefined],
    ['without a request is never final', { ...row, request_id: null }, undefined],
    ['that is final keeps its confirmations', { ...row, final: true, confirmations: 12 }, undefined],
    ['that was not detected is not final', imported, undefined],
  ])('%s', (_, before, changes) => {
    const [after] = finalisePayments([before], chain, heights)
    if (changes === undefined) expect(after).toBe(before)
    else expect(after).toEqual({ ...before, ...changes })
  })
})
