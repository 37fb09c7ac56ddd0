import type { Token, TokenDirectory } from '../domain/currency.ts'
import type { UnavailableRoute } from '../domain/route.ts'
import { type Explanation, explain } from '../errors.ts'
import { assembleRoute, type UnrankedRoute } from './assemble-route.ts'
import type { PlannedCandidate } from './plan-candidates.ts'
import type { Price } from './prices.ts'
import type { ScanOutcome } from './scan.ts'

/** What became of the candidates. */
export interface Assessment {
  readonly routes: readonly UnrankedRoute[]
  readonly unavailable: readonly UnavailableRoute[]
  readonly degraded: boolean
}

interface AssessOptions {
  readonly tokens: TokenDirectory
  readonly nowMs: number
}

/** How long a quote is good: gas prices and feeds move with the blocks. */
const QUOTE_LIFETIME_MS = 30_000

/**
 * Turns every planned candidate into a route or an entry that says why it is none. Of the reasons that may hold at once the first
 * of this order is given: the configuration rules it out; its chain gave no answer (one entry for the whole chain); its
 * token cannot be read; nobody carries it; the wallet holds too little.
 */
export function assessCandidates(
  planned: readonly PlannedCandidate[],
  scans: ReadonlyMap<string, ScanOutcome>,
  { tokens, nowMs }: AssessOptions,
): Assessment {
  const routes: UnrankedRoute[] = []
  const unavailable = new Map<string, UnavailableRoute>()
  const expiresAt = new Date(nowMs + QUOTE_LIFETIME_MS)
  let degraded = false

  for (const entry of planned) {
    const { chain } = entry.candidate.source
    const scan = scans.get(chain)
    if (scan?.ok === false && !('reason' in entry.plan)) {
      unavailable.set(chain, { chain, ...scan.failure })
      degraded = true
      continue
    }
    const outcome = assess(entry, scan, { tokens, expiresAt, priceOf: (token) => priceIn(scans, token) })
    if ('route' in outcome) routes.push(outcome)
    else unavailable.set(keyOf(entry), { ...placeOf(entry), ...outcome })
    if ('reason' in outcome && outcome.reason === 'CHAIN_INCONSISTENT') degraded = true
  }
  return { routes, unavailable: [...unavailable.values()], degraded }
}

interface AssessContext {
  readonly tokens: TokenDirectory
  readonly expiresAt: Date
  readonly priceOf: (token: Token) => Price | undefined
}

function assess(
  { candidate, provider, plan }: PlannedCandidate,
  scan: ScanOutcome | undefined,
  { tokens, expiresAt, priceOf }: AssessContext,
): UnrankedRoute | Explanation {
  if ('reason' in plan) return plan
  const { source } = candidate
  const native = tokens.native(source.chain)
  if (!scan?.ok || native === undefined) throw new TypeError(`${source.chain} was not looked at`)
  const unreadable = [source, native].find((token) => scan.state.balanceOf(token) === undefined)
  if (unreadable !== undefined) return explainUnreadable(unreadable)
  const quote = plan.quote(scan.state)
  if ('reason' in quote || provider === undefined) return quote as Explanation
  const { state } = scan
  return assembleRoute({
    id: provider.routeId,
    provider: provider.name,
    candidate,
    quote,
    state,
    native,
    priceOf,
    expiresAt,
  })
}

function priceIn(scans: ReadonlyMap<string, ScanOutcome>, token: Token): Price | undefined {
  const scan = scans.get(token.chain)
  return scan?.ok ? scan.state.priceOf(token) : undefined
}

function explainUnreadable(token: Token): Explanation {
  return explain('CHAIN_INCONSISTENT', { chain: token.chain, detail: `no balance of ${token.symbol} can be read` })
}

function placeOf({ candidate, provider }: PlannedCandidate): Pick<UnavailableRoute, 'chain' | 'token' | 'provider'> {
  const { chain, symbol } = candidate.source
  return { chain, token: symbol, ...(provider === undefined ? {} : { provider: provider.name }) }
}

function keyOf({ candidate, provider }: PlannedCandidate): string {
  return `${candidate.source.id} ${provider?.name ?? ''}`
}
