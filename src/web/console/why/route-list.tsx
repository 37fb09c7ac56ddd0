import { type FeeLine, FeeLine_Stage, FeeLine_Type, type Route, Route_StepKind, Route_Tag } from '@waybill/client'
import { formatSpan } from '../../look/format-span.ts'
import { sentence } from '../../look/sentence.ts'
import { whyTexts } from '../../look/texts.ts'
import { navigate, searchOf, useLocation } from '../parts/location.ts'
import { Amount, Badge, Unknown, Usd } from '../parts/shown-values.tsx'
import { type CostKind, type CostPart, colourOf, costParts, formatFraction, kindsOf, longestBar } from './cost-bars.ts'
import { byCost, sayHow, sayWay, splitCurrency } from './say-verdict.ts'

const texts = whyTexts.routes
const sorts = Object.keys(texts.sorts) as (keyof typeof texts.sorts)[]

interface RouteListProps {
  readonly routes: readonly Route[]
  /** While routes still come they keep the order in which they came, so that none moves under a finger. */
  readonly isComplete: boolean
}

/** Routes side by side, with their costs as bars of one scale. */
export function RouteList({ routes, isComplete }: RouteListProps) {
  const { query } = useLocation()
  const sort = sorts.find((name) => name === query.get('sort')) ?? 'best'
  const bars = new Map(routes.map((route) => [route.id, costParts(route)]))
  const longest = longestBar([...bars.values()])
  const kinds = kindsOf([...bars.values()])
  const ordered = isComplete ? sortRoutes(routes, sort) : routes
  return (
    <section aria-labelledby="routes" className="stack">
      <header className="why-routes-head row">
        <h2 id="routes">{texts.title}</h2>
        <Legend kinds={kinds} />
        <SortChoice query={query} chosen={sort} />
      </header>
      <ol className="why-routes">
        <li className="why-columns" aria-hidden="true">
          <span>{texts.way}</span>
          <span>{texts.leaves}</span>
          <span>{texts.cost}</span>
          <span>{texts.time}</span>
          <span>{texts.ready}</span>
        </li>
        {ordered.map((route) => (
          <RouteRow key={route.id} route={route} parts={bars.get(route.id) ?? []} longest={longest} />
        ))}
      </ol>
      <CostTable routes={ordered} bars={bars} kinds={kinds} />
    </section>
  )
}

function sortRoutes(routes: readonly Route[], sort: (typeof sorts)[number]): readonly Route[] {
  if (sort === 'cost') return byCost(routes)
  if (sort === 'speed') {
    return byCost(routes).toSorted((a, b) => a.estimatedDurationSeconds - b.estimatedDurationSeconds)
  }
  return routes
}

function SortChoice({ query, chosen }: { query: URLSearchParams; chosen: string }) {
  const choose = (name: string) => {
    const next = new URLSearchParams(query)
    if (name === 'best') next.delete('sort')
    else next.set('sort', name)
    navigate(`/why${searchOf(next)}`, { replace: true })
  }
  return (
    <div className="why-sort" role="group" aria-label={texts.sortBy}>
      {sorts.map((name) => (
        <button key={name} type="button" className="button" aria-pressed={name === chosen} onClick={() => choose(name)}>
          {texts.sorts[name]}
        </button>
      ))}
    </div>
  )
}

function Legend({ kinds }: { kinds: readonly CostKind[] }) {
  return (
    <ul className="why-legend row" aria-hidden="true">
      {kinds.map((kind) => (
        <li key={kind}>
          <span className="why-swatch" style={{ background: colourOf(kind) }} />
          {texts.kinds[kind]}
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
  const fee = splitCurrency(route.feeCurrency).symbol
  return (
    <li className="why-route">
      <div className="why-way row">
        <h3>{whyTexts.on(route.token, route.chain)}</h3>
        {route.tags.includes(Route_Tag.CHEAPEST) && <Badge tone="good">{texts.cheapest}</Badge>}
        {route.tags.includes(Route_Tag.FASTEST) && <Badge tone="busy">{texts.fastest}</Badge>}
        <span className="quiet small why-how">{sayHow(route)}</span>
      </div>
      <div>
        <span className="why-label">{texts.leaves}</span>
        <Amount value={route.sourceAmount} currency={route.token} />
      </div>
      <div className="why-cost">
        <span className="why-label">{texts.cost}</span>
        <span>
          {!route.feeIsComplete && `${texts.atLeast} `}
          <strong className="number">{formatFraction(route.totalCost)}</strong>{' '}
          <span className="quiet small">
            <Amount value={route.feeAmount} currency={fee} /> · <Usd value={route.feeInUsd} />
          </span>
        </span>
        <Bar parts={parts} longest={longest} isComplete={route.feeIsComplete} />
      </div>
      <div>
        <span className="why-label">{texts.time}</span>
        <span className="number">{formatSpan(route.estimatedDurationSeconds)}</span>
      </div>
      <ReadyCell route={route} />
      <RouteDetails route={route} />
    </li>
  )
}

function Bar({ parts, longest, isComplete }: { parts: readonly CostPart[]; longest: number; isComplete: boolean }) {
  return (
    <span className="why-bar" aria-hidden="true">
      {parts
        .filter(({ rate }) => rate > 0)
        .map(({ kind, rate }) => (
          <span
            key={kind}
            className="why-swatch"
            title={`${texts.kinds[kind]} ${formatFraction(rate)}`}
            style={{ width: `${(100 * rate) / longest}%`, background: colourOf(kind) }}
          />
        ))}
      {!isComplete && <span className="why-open-end" />}
    </span>
  )
}

function ReadyCell({ route: { readiness } }: { route: Route }) {
  const { enough, missing, unknown } = texts.gas
  const steps = readiness?.steps ?? []
  const kinds = steps.map((step) => texts.steps[Route_StepKind[step] as keyof typeof texts.steps])
  return (
    <div>
      <span className="why-label">{texts.ready}</span>
      {readiness?.hasEnoughGas === false ? (
        <Badge tone="bad">{missing}</Badge>
      ) : (
        <Badge tone={readiness?.hasEnoughGas ? 'good' : 'warn'}>{readiness?.hasEnoughGas ? enough : unknown}</Badge>
      )}
      <span className="quiet small why-line">{texts.signs(steps.length, kinds.join(texts.then))}</span>
    </div>
  )
}

function RouteDetails({ route }: { route: Route }) {
  return (
    <div className="why-more stack">
      {route.warnings.map(({ reason, message }) => (
        <p key={reason} className="why-warning small">
          {sentence(message)}
        </p>
      ))}
      <details>
        <summary>{texts.details}</summary>
        <div className="stack">
          <FeeTable route={route} />
          <p className="small quiet">
            {route.atomic ? texts.atomic : texts.notAtomic} {texts.id}: <span className="mono">{route.id}</span>
          </p>
        </div>
      </details>
    </div>
  )
}

function FeeTable({ route }: { route: Route }) {
  const fee = splitCurrency(route.feeCurrency).symbol
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={texts.costsOf(sayWay(route))}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{texts.for}</th>
            <th scope="col" className="right">
              {texts.amount}
            </th>
            <th scope="col" className="right">
              {fee}
            </th>
            <th scope="col" className="right">
              {texts.inDollars}
            </th>
          </tr>
        </thead>
        <tbody>
          {route.feeBreakdown.map((line, index) => (
            <FeeRow key={index} line={line} fee={fee} />
          ))}
          <tr>
            <th scope="row">{texts.allFees}</th>
            <td />
            <td className="right">
              <Amount value={route.feeAmount} currency={fee} />
            </td>
            <td className="right">
              <Usd value={route.feeInUsd} />
            </td>
          </tr>
          <tr>
            <th scope="row">{texts.kinds.PRICE_IMPACT}</th>
            <td colSpan={3} className="right">
              {formatFraction(route.priceImpact)}
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  )
}

function FeeRow({ line, fee }: { line: FeeLine; fee: string }) {
  const kind = texts.kinds[FeeLine_Type[line.type] as CostKind]
  const stage = texts.stages[FeeLine_Stage[line.stage] as keyof typeof texts.stages]
  return (
    <tr>
      <th scope="row">
        {kind} <span className="quiet">{[stage, line.provider].filter(Boolean).join(', ')}</span>
      </th>
      <td className="right">
        <Amount value={line.amount} currency={splitCurrency(line.currency).symbol} />
      </td>
      <td className="right">
        {line.amountInFeeCurrency === undefined ? (
          <Unknown />
        ) : (
          <Amount value={line.amountInFeeCurrency} currency={fee} />
        )}
      </td>
      <td className="right">
        <Usd value={line.amountInUsd} />
      </td>
    </tr>
  )
}

interface CostTableProps {
  readonly routes: readonly Route[]
  readonly bars: ReadonlyMap<string, readonly CostPart[]>
  readonly kinds: readonly CostKind[]
}

/** What the bars draw, for those who do not see them. */
function CostTable({ routes, bars, kinds }: CostTableProps) {
  return (
    <details>
      <summary>{texts.table}</summary>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={texts.tableSays}>
        <table className="table">
          <caption className="unseen">{texts.tableSays}</caption>
          <thead>
            <tr>
              <th scope="col">{texts.way}</th>
              {kinds.map((kind) => (
                <th key={kind} scope="col" className="right">
                  {texts.kinds[kind]}
                </th>
              ))}
              <th scope="col" className="right">
                {texts.total}
              </th>
            </tr>
          </thead>
          <tbody>
            {routes.map((route) => (
              <tr key={route.id}>
                <th scope="row">{whyTexts.on(route.token, route.chain)}</th>
                {kinds.map((kind) => (
                  <td key={kind} className="right">
                    {formatFraction(bars.get(route.id)?.find((part) => part.kind === kind)?.rate ?? 0)}
                  </td>
                ))}
                <td className="right">{formatFraction(route.totalCost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
