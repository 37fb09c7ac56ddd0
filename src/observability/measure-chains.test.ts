import { expect, it } from 'vitest'
import { createFigures } from './figures.ts'
import { createChainGauges } from './measure-chains.ts'

const base = {
  network: 'BASE',
  state: 'FOLLOWING',
  heights: { scanned: 97, head: 100, final: 90 },
  lag: { blocks: 3, seconds: 36 },
  reorgs: { deepest: 2 },
  unmatched: [{ reason: 'RATE_OFF', events: 5 }],
  unpricedPayments: 4,
}

it('shows what is stored of each chain, and forgets what is not known any more', () => {
  const figures = createFigures()
  const setGauges = createChainGauges(figures)
  const shown = () =>
    figures.read().map(({ name, labels, value }) => `${name}${labels['reason'] ? ` ${labels['reason']}` : ''} ${value}`)
  setGauges([base])
  expect(shown()).toEqual([
    'waybill_chain_alarm 0',
    'waybill_chain_failing 0',
    'waybill_chain_final_block 90',
    'waybill_chain_followed 1',
    'waybill_chain_head_block 100',
    'waybill_chain_lag_blocks 3',
    'waybill_chain_lag_seconds 36',
    'waybill_chain_reorg_depth_blocks 2',
    'waybill_chain_scanned_block 97',
    'waybill_unmatched_events RATE_OFF 5',
    'waybill_unpriced_payments 4',
  ])
  setGauges([{ network: 'BASE', state: 'STOPPED', alarm: 'block 90 was replaced', unmatched: [] }])
  expect(shown()).toEqual([
    'waybill_chain_alarm 1',
    'waybill_chain_failing 0',
    'waybill_chain_followed 1',
    'waybill_unmatched_events RATE_OFF 0',
  ])
})
