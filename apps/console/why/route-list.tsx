import { type FeeLine, FeeLine_Stage, FeeLine_Type, type Route, Route_StepKind, Route_Tag } from '@waybill/client'
import { addDecimals, shareOf } from '../../shared/decimals.ts'
import { symbolOf } from '../../shared/format-amount.ts'
import { formatSpan } from '../../shared/format-time.ts'
import { sentence } from '../../shared/sentence.ts'
import { feeTexts, whyTexts } from '../../shared/texts.ts'
import { Facts, Table } from '../parts/blocks.tsx'
import { Amount, Badge, Usd } from '../parts/shown-values.tsx'
import { sayHow, sayWay } from './say-verdict.ts'

const texts = whyTexts.routes
/** Routes side by side, with their costs as bars of one scale. */
export function RouteList({ routes }: { routes: readonly Route[] }) {
  const bars = routes.map((route) => costParts(route))
  const longest = longestBar(bars)
  return (
    <section aria-labelledby="routes" className="stack gap-3">
      <header className="row gap-wide">
        <h2 id="routes">{texts.title}</h2>
        <Legend kinds={kindsOf(bars)} />
      </header>
      <ol className="stack gap-2">
        {routes.map((route, index) => (
          <RouteRow key={route.id} route={route} parts={bars[index] ?? []} longest={longest} />
        ))}
      </ol>
    </section>
  )
}

function Legend({ kinds }: { kinds: readonly CostKind[] }) {
  return (
    <ul className="legend small quiet row" aria-hidden="true">
      {kinds.map((kind) => (
        <li key={kind}>
          <span className="swatch" style={{ background: colourOf(kind) }} />
          {feeTexts.kinds[kind]}
        </li>
      ))}
    </ul>
  )
}

interface RouteRowProps {
  readonly route: Route
  readonly parts: readonly CostPart[]
  readonly longest: number
}

function RouteRow({ route, parts, longest }: RouteRowProps) {
  return (
    <li className="why-route card stack gap-2">
      <div className="row">
        <h3>{whyTexts.on(route.token, route.chain)}</h3>
        {route.tags.includes(Route_Tag.CHEAPEST) && <Badge tone="good">{texts.cheapest}</Badge>}
        {route.tags.includes(Route_Tag.FASTEST) && <Badge tone="busy">{texts.fastest}</Badge>}
        <span className="quiet small">{sayHow(route)}</span>
      </div>
      <Facts
        className="why-figures columns"
        facts={[
          [texts.leaves, <Amount value={route.sourceAmount} currency={route.token} />],
          [texts.cost, <Cost route={route} parts={parts} longest={longest} />],
          [texts.time, formatSpan(route.estimatedDurationSeconds)],
          [texts.ready, <Ready route={route} />],
        ]}
      />
      <RouteDetails route={route} />
    </li>
  )
}

function Cost({ route, parts, longest }: RouteRowProps) {
  return (
    <>
      {!route.feeIsComplete && `${texts.atLeast} `}
      <strong>{formatFraction(route.totalCost)}</strong>{' '}
      <span className="quiet small">
        <Amount value={route.feeAmount} currency={symbolOf(route.feeCurrency)} /> · <Usd value={route.feeInUsd} />
      </span>
      <Bar parts={parts} longest={longest} isComplete={route.feeIsComplete} />
    </>
  )
}

function Bar({ parts, longest, isComplete }: { parts: readonly CostPart[]; longest: number; isComplete: boolean }) {
  return (
    <span className="parts" aria-hidden="true">
      {parts
        .filter(({ rate }) => rate > 0)
        .map(({ kind, rate }) => (
          <span
            key={kind}
            title={`${feeTexts.kinds[kind]} ${formatFraction(rate)}`}
            style={{ width: `${(100 * rate) / longest}%`, background: colourOf(kind) }}
          />
        ))}
      {!isComplete && <span className="why-open-end striped" />}
    </span>
  )
}

function Ready({ route: { readiness } }: { route: Route }) {
  const { enough, missing, unknown } = texts.gas
  const steps = readiness?.steps ?? []
  const kinds = steps.map((step) => texts.steps[Route_StepKind[step] as keyof typeof texts.steps])
  return (
    <>
      {readiness?.hasEnoughGas === false ? (
        <Badge tone="bad">{missing}</Badge>
      ) : (
        <Badge tone={readiness?.hasEnoughGas ? 'good' : 'warn'}>{readiness?.hasEnoughGas ? enough : unknown}</Badge>
      )}
      <span className="quiet small line">{texts.signs(steps.length, kinds.join(texts.then))}</span>
    </>
  )
}

function RouteDetails({ route }: { route: Route }) {
  return (
    <>
      {route.warnings.map(({ reason, message }) => (
        <p key={reason} className="warning small">
          {sentence(message)}
        </p>
      ))}
      <details>
        <summary>{texts.details}</summary>
        <div className="stack gap-3">
          <FeeTable route={route} />
          <p className="small quiet">
            {route.atomic ? texts.atomic : texts.notAtomic} {texts.id}: <span className="mono">{route.id}</span>
          </p>
        </div>
      </details>
    </>
  )
}

function FeeTable({ route }: { route: Route }) {
  const fee = symbolOf(route.feeCurrency)
  const columns = [texts.for, texts.amount, fee, texts.inDollars]
  const rows = [
    ...route.feeBreakdown.map((line) => [
      <FeeName line={line} />,
      <Amount value={line.amount} currency={symbolOf(line.currency)} />,
      <Amount value={line.amountInFeeCurrency} currency={fee} />,
      <Usd value={line.amountInUsd} />,
    ]),
    [texts.allFees, '', <Amount value={route.feeAmount} currency={fee} />, <Usd value={route.feeInUsd} />],
    [feeTexts.kinds.PRICE_IMPACT, '', '', formatFraction(route.priceImpact)],
  ]
  return <Table label={texts.costsOf(sayWay(route))} columns={columns} rows={rows} numbers={[1, 3]} name={0} />
}

function FeeName({ line }: { line: FeeLine }) {
  const kind = feeTexts.kinds[FeeLine_Type[line.type] as CostKind]
  const stage = feeTexts.stages[FeeLine_Stage[line.stage] as keyof typeof feeTexts.stages]
  return (
    <>
      {kind} <span className="quiet">{[stage, line.provider].filter(Boolean).join(', ')}</span>
    </>
  )
}

/** What a route costs, as parts of a bar: fees by kind and the price impact, all as fractions of what the payee receives. */
type CostKind = keyof typeof FeeLine_Type | 'PRICE_IMPACT'

interface CostPart {
  readonly kind: CostKind
  /** Fraction of what the payee receives. Negative where the payer gains. */
  readonly rate: number
  /** The sum of the lines in the route's `feeCurrency`, exact. The price impact has none. */
  readonly amount?: string
}

/** What a bar needs of a route. */
interface Costs extends Pick<Route, 'feeAmount' | 'feeRate' | 'priceImpact'> {
  readonly feeBreakdown: readonly Pick<FeeLine, 'type' | 'amountInFeeCurrency'>[]
}

/** More than a screen has pixels. */
const DIGITS = 7
const order: readonly CostKind[] = ['GAS', 'SWAP', 'CROSSCHAIN', 'PROTOCOL', 'PLATFORM', 'PRICE_IMPACT']

/** Each kind has its own; what has no kind is grey, like the last. */
const colourOf = (kind: CostKind) => `var(--series-${((order.indexOf(kind) + order.length) % order.length) + 1})`

/** @returns the parts that are not zero, in the order in which every bar shows them; costs without a price are left out */
export function costParts({ feeAmount, feeRate, priceImpact, feeBreakdown }: Costs): CostPart[] {
  const fees = [...Map.groupBy(feeBreakdown, ({ type }) => type)].map(([type, lines]) => {
    const amount = addDecimals(lines.flatMap(({ amountInFeeCurrency: line }) => (line === undefined ? [] : [line])))
    return {
      kind: FeeLine_Type[type] as CostKind,
      rate: (shareOf(amount, feeAmount, DIGITS) / 100) * feeRate,
      amount,
    }
  })
  return [...fees, { kind: 'PRICE_IMPACT', rate: priceImpact } as const]
    .filter((part) => ('amount' in part ? part.amount !== '0' : part.rate !== 0))
    .toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
}

/** The kinds that any of the bars shows, in their order. */
export function kindsOf(bars: readonly (readonly CostPart[])[]): CostKind[] {
  const kinds = new Set(bars.flat().map(({ kind }) => kind))
  return order.filter((kind) => kinds.has(kind))
}

/** The length of the longest bar, which fills the width; above 0. */
export function longestBar(bars: readonly (readonly CostPart[])[]): number {
  return Math.max(...bars.map((parts) => parts.reduce((sum, { rate }) => sum + Math.max(0, rate), 0)), Number.MIN_VALUE)
}

/**
 * A fraction in percent: `1.50%`; `≈ 1.99%` where digits were rounded away, `< 0.01%` for less.
 */
export function formatFraction(fraction: number, locale?: string): string {
  const format = new Intl.NumberFormat(locale, { style: 'percent', minimumFractionDigits: 2, maximumFractionDigits: 2 })
  if (fraction === 0) return new Intl.NumberFormat(locale, { style: 'percent' }).format(0)
  const size = Math.abs(fraction)
  if (size < 0.000_1) return fraction > 0 ? `< ${format.format(0.000_1)}` : `> ${format.format(-0.000_1)}`
  const isExact = Math.abs(size * 10_000 - Math.round(size * 10_000)) < 1e-9
  return isExact ? format.format(fraction) : `≈ ${format.format(fraction)}`
}
