import type { Address } from '../../domain/address.ts'
import type { RouteWarning, StepKind } from '../../domain/route.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { gasToAllow } from '../gas/gas.ts'
import type { GasAnswer, GasQuestion, Step, StepGas } from '../gas/steps.ts'
import type { Scanner, ScanOptions } from '../scan/scan.ts'
import type { ChainState } from '../scan/wallet-state.ts'
import { assembleRoute, l1FeesOf, l1GasOf, type UnrankedRoute, warn } from './assemble-route.ts'

/** A route of which the gas was measured on a node, as far as possible. */
export interface MeasuredRoute {
  /** Its gas lines count what was measured, else what the table says. */
  readonly found: UnrankedRoute
  /** By step, the gas limit to send it with; undefined where the wallet is to estimate it. */
  readonly limits: readonly (bigint | undefined)[]
  /** How gas was found out, where not by simulation. */
  readonly warnings: readonly RouteWarning[]
}

interface MeasureOptions extends ScanOptions {
  readonly scanner: Pick<Scanner, 'measureGas'>
  readonly wallet: Address
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/**
 * Measures the gas of a route's transactions.
 *
 * @throws WaybillError ROUTE_WOULD_FAIL where one of them would be reverted; the signal's reason when it fires
 */
export async function measureRoute(found: UnrankedRoute, options: MeasureOptions): Promise<MeasuredRoute> {
  const { quoted } = found
  const { quote, state } = quoted
  const answer = await options.scanner.measureGas(state.chain.name, questionOf(found, options), options)
  if (answer !== undefined && 'reverted' in answer) throw explainRevert(found, answer.reverted)
  const measured = quote.steps.map((_, place) => answer?.steps[place])
  const l1Fees = l1FeesOf(quote, state) ?? []
  const steps = quote.steps.map((step, place): Step => {
    const l1Gas = l1GasOf(l1Fees[place] ?? 0n, state)
    return measuredStep(step, measured[place], l1Gas, found.gasLimits[place] ?? 0n)
  })
  const again = assembleRoute({ ...quoted, quote: { ...quote, steps } })
  return {
    found: 'reason' in again ? found : again,
    limits: steps.map(({ allow }) => allow),
    warnings: warningsOf(quote.steps, measured, state),
  }
}

function questionOf({ quoted }: UnrankedRoute, { wallet, nowMs }: MeasureOptions): GasQuestion {
  const { quote, state, native } = quoted
  return {
    wallet,
    balance: state.balanceOf(native) ?? 0n,
    quotedAtSec: state.timestampSec,
    simulateAtSec: laterThanAnyBlock(state, nowMs),
    calls: quote.steps.map((step) => ({ ...step.transaction(), effect: step.effect })),
  }
}

/** When the first transaction could be mined. Nodes refuse to simulate a block that is not later than their newest. */
function laterThanAnyBlock({ timestampSec, chain }: ChainState, nowMs: number): number {
  return Math.max(timestampSec, Math.ceil(nowMs / 1_000)) + Math.max(1, Math.ceil(chain.blockTimeSeconds))
}

/**
 * The step with what a node measured. Its limit is never below the table's.
 *
 * @param l1Gas - what its chain counts as gas for publishing the transaction
 */
function measuredStep(step: Step, gas: StepGas | undefined, l1Gas: bigint, tableLimit: bigint): Step {
  if (gas === undefined) return step
  // A simulation has no gas price, so it leaves out the gas for publishing on the parent chain; an estimate includes it.
  const most = gas.way === 'SIMULATED' ? gas.most + l1Gas : gas.most
  const limit = gasToAllow(most)
  const expected = gas.way === 'SIMULATED' ? gas.used : expectedOf(gas.most - l1Gas, step.gasLimit)
  return { ...step, gasLimit: expected, allow: limit > tableLimit ? limit : tableLimit }
}

/**
 * The gas that is used lies between `most` and four fifths of it, since refunds are at most a fifth. Within that, the table decides.
 *
 * @param most - 0 or less where an estimate left out the gas for publishing: then the table is all that is known
 */
function expectedOf(most: bigint, table: bigint): bigint {
  if (most <= 0n) return table
  const least = (most * 4n) / 5n
  return table < least ? least : table > most ? most : table
}

function warningsOf(
  steps: readonly Step[],
  measured: readonly (StepGas | undefined)[],
  { chain }: ChainState,
): readonly RouteWarning[] {
  const kindsWhere = (holds: (gas: StepGas | undefined) => boolean) =>
    steps.filter((_, place) => holds(measured[place])).map(({ kind }) => kind)
  const estimated = kindsWhere((gas) => gas?.way === 'ESTIMATED')
  const unknown = kindsWhere((gas) => gas === undefined)
  const list = (kinds: readonly StepKind[]) => ({ steps: kinds.join(', '), chain: chain.name })
  return [
    ...(estimated.length === 0 ? [] : [warn('GAS_ESTIMATED', list(estimated))]),
    ...(unknown.length === 0 ? [] : [warn('GAS_NOT_MEASURED', list(unknown))]),
  ]
}

function explainRevert(
  { route, quoted }: UnrankedRoute,
  { place, detail }: Extract<GasAnswer, { reverted: unknown }>['reverted'],
) {
  const step = quoted.quote.steps[place]
  return waybillError('ROUTE_WOULD_FAIL', {
    route: route.id,
    step: step?.kind ?? '',
    contract: step?.transaction().to ?? '',
    chain: route.chain,
    detail,
  })
}
