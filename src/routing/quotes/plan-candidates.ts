import type { ContractRead } from '../../contracts/multicall.ts'
import { formatAmount } from '../../domain/decimal.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import { directTerms } from '../plans/fee-proxy.ts'
import { type Candidate, isFiatRequest, type ObjectionTo, type Plan, type Provider } from '../plans/provider.ts'
import type { Payment } from '../question/parse-question.ts'
import type { ChainState } from '../scan/wallet-state.ts'
import { routeId } from './route-id.ts'

/** A candidate with one provider's plan of it. */
export interface PlannedCandidate {
  readonly candidate: Candidate
  /** Absent when there is none. */
  readonly provider?: { readonly name: string; readonly routeId: string }
  /** The explanation when the configuration alone rules it out. */
  readonly plan: Plan | Explanation
}

export interface PlanningDependencies {
  readonly providers: readonly Provider[]
  /** What nodes say against contracts and tokens of the chains file; undefined: nothing is known. */
  readonly objectionTo?: ObjectionTo | undefined
}

/** Lets every provider plan every candidate of its kind. @returns one entry for each chain, token and provider */
export function planCandidates(
  candidates: readonly Candidate[],
  payment: Payment,
  { providers, objectionTo }: PlanningDependencies,
): PlannedCandidate[] {
  const byKind = Map.groupBy(providers, (provider) => provider.kind)
  const noConversion = explainNoConversion(payment, byKind.get('CONVERSION') ?? [])
  return candidates.flatMap((candidate): PlannedCandidate[] => {
    // Every swap and bridge ends in a plain payment, which never covers a fiat request.
    const isAble = candidate.kind === 'CONVERSION' || !isFiatRequest(payment.request)
    const able = isAble ? (byKind.get(candidate.kind) ?? []) : []
    const planned = able.flatMap((provider, place) => {
      const plan = provider.plan(candidate, payment)
      const id = routeId(candidate, provider, place === 0)
      if (plan === undefined) return []
      return [{ candidate, provider: { name: provider.name, routeId: id }, plan: unlessObjected(plan, objectionTo) }]
    })
    return planned.length > 0 ? planned : [{ candidate, plan: noConversion ?? planWithoutProvider(candidate, payment) }]
  })
}

/** A plan, unless the nodes say that one of its contracts is not what the chains file says: money that is sent there would be lost. */
export function unlessObjected(plan: Plan | Explanation, objectionTo: ObjectionTo | undefined): Plan | Explanation {
  if (objectionTo === undefined || 'reason' in plan) return plan
  for (const used of plan.contracts) {
    const objection = objectionTo(used)
    if (objection !== undefined) return explain('CONTRACT_NOT_AS_CONFIGURED', { ...objection, chain: used.chain })
  }
  return plan
}

/** Why a fiat request cannot be paid at all: every way would have to end in a conversion, and there is none. */
function explainNoConversion(payment: Payment, providers: readonly Provider[]): Explanation | undefined {
  if (!isFiatRequest(payment.request)) return undefined
  const { destination } = payment
  const plans = providers.map((provider) =>
    provider.plan({ kind: 'CONVERSION', source: destination, destination }, payment),
  )
  const [first] = plans.flatMap((plan) => plan ?? [])
  return first !== undefined && 'reason' in first ? first : undefined
}

/** The chains to look at, each with the reads that the plans need. */
export function readsByChain(planned: readonly PlannedCandidate[]): ReadonlyMap<string, readonly ContractRead[]> {
  const reads = new Map<string, ContractRead[]>()
  const add = (chain: string, more: readonly ContractRead[]) => {
    const ofChain = reads.get(chain) ?? []
    ofChain.push(...more)
    reads.set(chain, ofChain)
  }
  for (const { candidate, plan } of planned) {
    if ('reason' in plan) continue
    add(candidate.source.chain, plan.reads)
    if (plan.readsOfDestination !== undefined) add(candidate.destination.chain, plan.readsOfDestination)
  }
  return reads
}

/**
 * The plan of a candidate without a provider. Its balance is read all the same, so that the answer tells which candidates would be worth a
 * provider. The missing provider is given before a missing balance: without a quote the need is unknown, and no balance would make it a route.
 */
function planWithoutProvider(candidate: Candidate, payment: Payment): Plan {
  return { contracts: [], reads: [], quote: (state) => explainMissingProvider(candidate, payment, state) }
}

function explainMissingProvider(candidate: Candidate, payment: Payment, state: ChainState): Explanation {
  const { kind, source } = candidate
  const { request } = payment
  const have = formatAmount(state.balanceOf(source) ?? 0n, source.decimals)
  const wallet = { have, token: source.symbol, chain: source.chain }
  const target = directTerms(payment)
  // The last step would have to be a conversion, which takes only the payment currency.
  if (isFiatRequest(request) && kind !== 'CONVERSION') {
    return explain('NO_CONVERSION_PROVIDER', { ...wallet, ...target, invoiceCurrency: request.invoiceCurrency })
  }
  return explain(kind === 'SWAP' ? 'NO_SWAP_PROVIDER' : 'NO_CROSSCHAIN_PROVIDER', { ...wallet, ...target })
}
