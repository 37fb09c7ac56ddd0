import { setTimeout as sleep } from 'node:timers/promises'
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

interface MeasureOptions {
  readonly figures: Pick<Figures, 'set'>
  readonly read: (signal: AbortSignal) => Promise<readonly MeasuredChain[]>
  readonly logger: { readonly debug: (fields: object, message: string) => void }
  /** Default 15,000. */
  readonly everyMs?: number
}

/** Keeps the gauges of chains current. Every process of a fleet shows the same, since it reads what the followers have stored. */
export interface ChainMeasuring {
  start(): void
  /** Resolves when nothing is being read any more. */
  stop(): Promise<void>
}

/** Makes the measuring of all chains; does nothing until it is started. */
export function createChainMeasuring(options: MeasureOptions): ChainMeasuring {
  let running: { readonly ending: AbortController; readonly done: Promise<void> } | undefined
  return {
    start() {
      if (running !== undefined) return
      const ending = new AbortController()
      running = { ending, done: run(options, ending.signal) }
    },
    async stop() {
      running?.ending.abort(new Error('measuring is stopping'))
      await running?.done
      running = undefined
    },
  }
}

async function run({ figures, read, logger, everyMs = 15_000 }: MeasureOptions, signal: AbortSignal): Promise<void> {
  const reasons = new Map<string, ReadonlySet<string>>()
  while (!signal.aborted) {
    try {
      for (const chain of await read(signal)) {
        setGauges(figures, chain, reasons.get(chain.network) ?? new Set())
        reasons.set(chain.network, new Set(chain.unmatched.map(({ reason }) => reason)))
      }
    } catch (err) {
      if (!signal.aborted) logger.debug({ err }, 'the chains were not measured; it is tried again')
    }
    await sleep(everyMs, undefined, { signal }).catch(() => {})
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
