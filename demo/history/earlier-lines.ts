/** The earlier payments of all chains, as lines of an import. */
import { createHash } from 'node:crypto'
import type { Payment } from '../../src/domain/payment.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import type { DemoChainSpec } from '../network/chain-specs.ts'
import type { DemoPeople } from '../network/people.ts'
import { LAYOUT_VERSION } from '../network/state-folder.ts'
import { planEarlierPayments } from './earlier-payments.ts'

/** What the earlier payments of a chain depend on. */
export interface EarlierChain {
  readonly spec: DemoChainSpec
  readonly people: Pick<DemoPeople, 'payees' | 'feeCollector'>
  /** The time of the first payment on the chain. */
  readonly beginsSec: number
  /** When the chain was made. */
  readonly madeAtSec: number
}

/**
 * The latest first, since people look at them while the others are still being imported.
 *
 * @param days - how far they reach back
 */
export function* earlierLines(chains: readonly EarlierChain[], days: number): Generator<Uint8Array> {
  const plans = chains.map(({ spec, people, beginsSec, madeAtSec }) =>
    planEarlierPayments(spec, people, { toSec: beginsSec, days, madeAtSec }),
  )
  const heads = plans.map((plan) => plan.next())
  for (;;) {
    const latest = heads.reduce((best, { done }, at) => (done || isLater(heads[best], heads[at]) ? best : at), 0)
    const head = heads[latest]
    if (head === undefined || head.done) return
    yield Buffer.from(`${formatPaymentLine(head.value)}\n`)
    heads[latest] = (plans[latest] as Generator<Payment>).next()
  }
}

type Head = IteratorResult<Payment> | undefined

function isLater(one: Head, other: Head): boolean {
  if (one === undefined || one.done || other === undefined || other.done) return false
  return one.value.timestamp >= other.value.timestamp
}

/** A name for the lines of these chains; other lines have another name. */
export function nameOfLines(chains: readonly EarlierChain[], days: number): string {
  const parts = chains.map(({ spec, beginsSec, madeAtSec }) => [spec.chainId, beginsSec, madeAtSec])
  return createHash('sha256')
    .update(JSON.stringify([LAYOUT_VERSION, days, parts]))
    .digest('hex')
}
