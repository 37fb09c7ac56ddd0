import type { Meter } from '../domain/telemetry/telemetry.ts'
import type { NodeLimits } from './node-limits.ts'

const BY_METHOD = ['chain', 'host', 'rpc_method']
const BY_HOST = ['chain', 'host']

const METRICS = [
  { name: 'waybill_node_calls_total', help: 'Calls to nodes.', labels: BY_METHOD },
  { name: 'waybill_node_errors_total', help: 'Calls that nodes refused or did not answer.', labels: BY_METHOD },
  { name: 'waybill_node_requests_total', help: 'HTTP requests to nodes.', labels: BY_HOST },
  { name: 'waybill_node_budget_left', help: 'What is left of the daily budget in the chains file.', labels: BY_HOST },
  {
    name: 'waybill_node_left_alone',
    help: '1 while a node is not asked: it fails, or asked for that.',
    labels: BY_HOST,
  },
] as const

/** Shows what is asked of nodes. URLs of one host and chain are added up. */
export function measureNodes(meter: Meter, limits: NodeLimits, clock: () => Date): void {
  meter.observe(METRICS, () =>
    limits
      .figures()
      .flatMap(({ chain, host, calls, requests, budgetLeft, breaker, pausedUntilMs = 0 }) => [
        ...Object.entries(calls).flatMap(([rpc_method, counted]) => [
          ['waybill_node_calls_total', counted.calls, { chain, host, rpc_method }] as const,
          ['waybill_node_errors_total', counted.errors, { chain, host, rpc_method }] as const,
        ]),
        ['waybill_node_requests_total', requests, { chain, host }] as const,
        ...(budgetLeft === undefined ? [] : [['waybill_node_budget_left', budgetLeft, { chain, host }] as const]),
        [
          'waybill_node_left_alone',
          Number(breaker === 'OPEN' || pausedUntilMs > clock().getTime()),
          { chain, host },
        ] as const,
      ]),
  )
}
