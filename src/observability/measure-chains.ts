import type { Figures } from './figures.ts'

/** What is measured of a chain. */
interface MeasuredChain {
  readonly network: string
  readonly state: string
  readonly heights?: { readonly scanned: number; readonly head: number; readonly final: number } | undefined
  readonly lag?: { readonly blocks: number; readonly seconds: number } | undefined
  readonly alarm?: string | undefined
  readonly reorgs?: { readonly deepest: number } | undefined
  readonly unmatched: readonly { readonly reason: string; readonly events: number }[]
  readonly unpricedPayments?: number | undefined
}

/**
 * Makes what keeps the gauges of chains current: call the function with all chains, again and again. Every process of a fleet shows the same,
 * since it is given what the followers have stored.
 */
export function createChainGauges(figures: Pick<Figures, 'set'>): (chains: readonly MeasuredChain[]) => void {
  const reasons = new Map<string, ReadonlySet<string>>()
  return (chains) => {
    for (const chain of chains) {
      setGauges(figures, chain, reasons.get(chain.network) ?? new Set())
      reasons.set(chain.network, new Set(chain.unmatched.map(({ reason }) => reason)))
    }
  }
}

/** @param before - the reasons of unmatched events that were shown before, and are gone if they have none now */
function setGauges(figures: Pick<Figures, 'set'>, chain: MeasuredChain, before: ReadonlySet<string>): void {
  const { network, state, heights, lag, alarm, reorgs, unmatched, unpricedPayments } = chain
  const labels = { chain: network }
  figures.set('waybill_chain_head_block', labels, heights?.head)
  figures.set('waybill_chain_scanned_block', labels, heights?.scanned)
  figures.set('waybill_chain_final_block', labels, heights?.final)
  figures.set('waybill_chain_lag_blocks', labels, lag?.blocks)
  figures.set('waybill_chain_lag_seconds', labels, lag?.seconds)
  figures.set('waybill_chain_reorg_depth_blocks', labels, reorgs?.deepest)
  figures.set('waybill_chain_alarm', labels, alarm === undefined ? 0 : 1)
  figures.set('waybill_chain_failing', labels, state === 'FAILING' ? 1 : 0)
  figures.set('waybill_chain_followed', labels, state === 'NOT_FOLLOWED' ? 0 : 1)
  figures.set('waybill_unpriced_payments', labels, unpricedPayments)
  const events = new Map(unmatched.map((each) => [each.reason, each.events]))
  for (const reason of new Set([...before, ...events.keys()])) {
    figures.set('waybill_unmatched_events', { chain: network, reason }, events.get(reason) ?? 0)
  }
}
