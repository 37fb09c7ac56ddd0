import { expect, it, vi } from 'vitest'
import { createFigures } from './figures.ts'
import { createChainMeasuring } from './measure-chains.ts'

const base = {
  network: 'BASE',
  state: 'FOLLOWING',
  heights: { scanned: 97, head: 100, final: 90 },
  lag: { blocks: 3, seconds: 36 },
  reorgs: { deepest: 2 },
  unmatched: [{ reason: 'RATE_OFF', events: 5 }],
  unpricedPayments: 4,
}

it('shows what is stored of each chain, forgets what is not known any more, and goes on after a failure', async () => {
  const figures = createFigures()
  const answers = [
    () => [base],
    () => {
      throw new Error('the database is gone')
    },
    () => [{ network: 'BASE', state: 'STOPPED', alarm: 'block 90 was replaced', unmatched: [] }],
  ]
  const failures: string[] = []
  const logger = { debug: (_: object, message: string) => void failures.push(message) }
  let reads = 0
  const measuring = createChainMeasuring({
    figures,
    logger,
    everyMs: 1,
    read: async () => {
      seen.push(figures.read())
      return answers[Math.min(reads++, 2)]!()
    },
  })
  const seen: ReturnType<typeof figures.read>[] = []
  measuring.start()
  measuring.start()
  await vi.waitFor(() => expect(reads).toBeGreaterThan(3))
  await measuring.stop()
  const shown = (at: number) =>
    seen[at]?.map(({ name, labels, value }) => `${name}${labels['reason'] ? ` ${labels['reason']}` : ''} ${value}`)
  expect(shown(1)).toEqual([
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
  expect(failures).toHaveLength(1)
  expect(shown(3)).toEqual([
    'waybill_chain_alarm 1',
    'waybill_chain_failing 0',
    'waybill_chain_followed 1',
    'waybill_unmatched_events RATE_OFF 0',
  ])
})
