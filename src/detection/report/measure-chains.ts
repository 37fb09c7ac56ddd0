import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Meter } from '../../domain/telemetry/telemetry.ts'
import { type ChainState, readChains } from './list-chains.ts'

const STATES: readonly ChainState[] = ['NOT_STARTED', 'CATCHING_UP', 'FOLLOWING', 'FAILING', 'STOPPED', 'NOT_FOLLOWED']

const METRICS = [
  { name: 'waybill_chain_state', help: '1 for the state that the chain is in.', labels: ['chain', 'state'] },
  { name: 'waybill_chain_lag_blocks', help: 'Blocks between the head and the last block read.', labels: ['chain'] },
  { name: 'waybill_chain_lag_seconds', help: 'Age of the last block read.', labels: ['chain'] },
] as const

/** Shows how following the chains goes, whichever process does it: all processes show the same. */
export function measureChains(
  meter: Meter,
  { knex, chains, now }: { readonly knex: Knex; readonly chains: readonly ChainConfig[]; readonly now: () => Date },
): void {
  meter.observe(METRICS, async () =>
    (await readChains(knex, chains, now())).flatMap(({ network: chain, state, lag }) => [
      ...STATES.map((each) => ['waybill_chain_state', Number(each === state), { chain, state: each }] as const),
      ...(lag === undefined ? [] : lagOf(chain, lag)),
    ]),
  )
}

function lagOf(chain: string, { blocks, seconds }: { readonly blocks: number; readonly seconds: number }) {
  return [
    ['waybill_chain_lag_blocks', blocks, { chain }] as const,
    ['waybill_chain_lag_seconds', seconds, { chain }] as const,
  ]
}
