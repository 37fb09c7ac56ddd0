import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Token } from '../../domain/currency.ts'
import type { UnavailableRoute } from '../../domain/route.ts'
import type { Reason } from '../../errors/reasons.ts'
import { type Explanation, explain } from '../../errors/waybill-error.ts'
import type { Quote } from '../plans/provider.ts'
import type { RunningScan } from '../scan/scan.ts'
import type { Screening } from '../scan/screening.ts'
import type { ChainState } from '../scan/wallet-state.ts'
import { assembleRoute, type UnrankedRoute } from './assemble-route.ts'
import type { PlannedCandidate } from './plan-candidates.ts'
import { explainUnwanted, type Preferences } from './preferences.ts'

/** The results of all candidates. */
export interface Assessment {
  readonly routes: readonly UnrankedRoute[]
  readonly unavailable: readonly UnavailableRoute[]
  readonly degraded: boolean
  /** A chain whose oracle lists the wallet: then there is nothing else. */
  readonly listedBy?: ChainState | undefined
}

export interface AssessOptions {
  /** What the chains' oracles say of the wallet. */
  readonly screening: Promise<Screening>
  readonly tokens: TokenDirectory
  /** Milliseconds since 1970. */
  readonly clock: () => number
  readonly preferences?: Preferences | undefined
  /** When the request expires: no quote lasts longer. */
  readonly requestExpiresAt?: Date | undefined
  /** Whether the wallet counts as one that holds enough of everything. */
  readonly holdsEnough?: boolean | undefined
  /** Called with each result as it comes; a chain that fails comes once for each of its candidates. */
  readonly onAssessed?: ((result: Assessed) => void) | undefined
}

/** The result of one candidate, or of a whole chain. */
export type Assessed =
  | { readonly route: UnrankedRoute }
  | { readonly unavailable: UnavailableRoute; readonly degraded: boolean }

/** How long a quote holds: gas prices and feeds move with every block. */
const QUOTE_LIFETIME_MS = 30_000

/** Reasons that mean a failed source, after which an answer is `degraded`. */
const DEGRADING: ReadonlySet<string> = new Set<Reason>([
  'CHAIN_INCONSISTENT',
  'CHAIN_UNREACHABLE',
  'CONTRACT_UNREADABLE',
  'CROSSCHAIN_QUOTA_EXHAUSTED',
  'CROSSCHAIN_REJECTED',
  'CROSSCHAIN_UNAUTHORIZED',
  'CROSSCHAIN_UNREACHABLE',
  'SCREENING_UNAVAILABLE',
])

/**
 * Turns every planned candidate into a route, or into an entry that says why it is not one, as soon as its chains have been looked at. Where
 * several reasons hold, the first in this order is given: the configuration rules it out; its chain gave no answer (one entry for the whole
 * chain); its token cannot be read; no provider takes it; the wallet holds too little.
 *
 * @throws the reason of the caller's signal
 */
export async function assessCandidates(
  planned: readonly PlannedCandidate[],
  running: RunningScan,
  options: AssessOptions,
): Promise<Assessment> {
  const assessed = await Promise.all(
    planned.map(async (entry) => {
      const outcome = await assess(entry, running, options)
      // Every result waits for the oracles of all chains: what was sent could not be taken back.
      const screening = await options.screening
      if (screening.listedBy !== undefined) return []
      const screened = 'reason' in entry.plan ? outcome : unlessUnknown(entry, outcome, screening)
      const result = toResult(entry, screened, options.preferences ?? {})
      options.onAssessed?.(result)
      return [result]
    }),
  )
  const results = assessed.flat()
  const unavailable = results.flatMap((result) => ('unavailable' in result ? [result.unavailable] : []))
  return {
    routes: results.flatMap((result) => ('route' in result ? [result.route] : [])),
    unavailable: [...new Map(unavailable.map((entry) => [keyOf(entry), entry])).values()],
    degraded: results.some((result) => 'unavailable' in result && result.degraded),
    listedBy: (await options.screening).listedBy,
  }
}

/** Leaves out what would pay through a chain on which nobody can say that the wallet is not listed. */
function unlessUnknown({ candidate }: PlannedCandidate, outcome: Outcome, { isUnknownOn }: Screening): Outcome {
  const { source, destination } = candidate
  const unknown = [source.chain, destination.chain].find(isUnknownOn)
  if (unknown === undefined || 'chainFailure' in outcome) return outcome
  return { chainFailure: explain('SCREENING_UNAVAILABLE', { chain: unknown }) }
}

function toResult(entry: PlannedCandidate, outcome: Outcome, preferences: Partial<Preferences>): Assessed {
  if ('chainFailure' in outcome) {
    return { unavailable: { chain: entry.candidate.source.chain, ...outcome.chainFailure }, degraded: true }
  }
  if (!('route' in outcome)) {
    return { unavailable: { ...placeOf(entry), ...outcome }, degraded: DEGRADING.has(outcome.reason) }
  }
  const unwanted = explainUnwanted(outcome, preferences)
  if (unwanted === undefined) return { route: outcome }
  return { unavailable: { ...placeOf(entry), ...unwanted }, degraded: false }
}

type Outcome = UnrankedRoute | Explanation | { readonly chainFailure: Explanation }

async function assess(entry: PlannedCandidate, running: RunningScan, options: AssessOptions): Promise<Outcome> {
  const { tokens, clock, requestExpiresAt, holdsEnough } = options
  const { candidate, provider, plan } = entry
  if ('reason' in plan) return plan
  const { source, destination } = candidate
  const { outcomes, signal } = running
  const [found, ofDestination] = await Promise.all([outcomes.get(source.chain), outcomes.get(destination.chain)])
  const scan = found === undefined || 'reason' in found || !holdsEnough ? found : withEnough(found)
  const native = tokens.native(source.chain)
  if (scan === undefined || native === undefined) throw new TypeError(`${source.chain} was not looked at`)
  if ('reason' in scan) return { chainFailure: scan }
  const unreadable = [source, native].find((token) => scan.balanceOf(token) === undefined)
  if (unreadable !== undefined) return explainUnreadableBalance(unreadable)
  if (plan.readsOfDestination !== undefined && ofDestination && 'reason' in ofDestination) return ofDestination
  const priceOf = (token: Token) => {
    const ofToken = token.chain === source.chain ? scan : ofDestination
    return ofToken && 'priceOf' in ofToken ? ofToken.priceOf(token) : undefined
  }
  const quote = await plan.quote(scan, { priceOf, signal })
  if ('reason' in quote || provider === undefined) return quote as Exclude<typeof quote, Quote>
  return assembleRoute({
    id: provider.routeId,
    provider: provider.name,
    candidate,
    quote,
    state: scan,
    native,
    priceOf,
    expiresAt: new Date(Math.min(clock() + QUOTE_LIFETIME_MS, requestExpiresAt?.getTime() ?? Number.POSITIVE_INFINITY)),
  })
}

/** More than any payment takes; sums of it still fit a contract's number. */
const ENOUGH = 1n << 200n

function withEnough(state: ChainState): ChainState {
  const balanceOf = (token: Token) => (state.balanceOf(token) === undefined ? undefined : ENOUGH)
  return { ...state, balanceOf, walletIsContract: false }
}

/** Balances of the native coin are read through Multicall3. */
function explainUnreadableBalance({ address, symbol, chain }: Token): Explanation {
  const contract = address === undefined ? 'multicall' : symbol
  return explain('CONTRACT_UNREADABLE', { contract, chain, what: `the balance of ${symbol}` })
}

function placeOf({ candidate, provider }: PlannedCandidate): Pick<UnavailableRoute, 'chain' | 'token' | 'provider'> {
  const { chain, symbol } = candidate.source
  return { chain, token: symbol, provider: provider?.name }
}

/** A key that is equal for entries about the same chain, or about the same candidate and provider. */
export function keyOf({ chain, token = '', provider = '' }: UnavailableRoute): string {
  return `${chain} ${token} ${provider}`
}
