import { type Chain_Node, Chain_Node_State, Chain_Rate_Unit } from '@waybill/client'
import { formatAmount } from '../../look/format-amount.ts'
import { chainsTexts } from '../../look/texts.ts'
import { Badge, Time, type Tone } from '../parts/shown-values.tsx'

const texts = chainsTexts.nodes
const tones: Readonly<Record<Chain_Node_State, Tone>> = {
  [Chain_Node_State.STATE_UNSPECIFIED]: 'quiet',
  [Chain_Node_State.IN_USE]: 'good',
  [Chain_Node_State.PAUSED]: 'warn',
  [Chain_Node_State.LEFT_ALONE]: 'bad',
}

interface NodeTableProps {
  readonly network: string
  readonly nodes: readonly Chain_Node[]
}

export function NodeTable({ network, nodes }: NodeTableProps) {
  if (nodes.length === 0) return <p className="quiet small">{texts.none}</p>
  return (
    <div className="chain-nodes">
      <div className="table-scroll" tabIndex={0} role="region" aria-label={texts.of(network)}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{texts.host}</th>
              <th scope="col">{texts.state}</th>
              <th scope="col">{texts.limit}</th>
              <th scope="col" className="right">
                {texts.requests}
              </th>
              <th scope="col" className="right">
                {texts.calls}
              </th>
              <th scope="col" className="right">
                {texts.errors}
              </th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node, index) => (
              <NodeRow key={`${node.host} ${index}`} node={node} />
            ))}
          </tbody>
        </table>
      </div>
      <CallTable network={network} nodes={nodes} />
    </div>
  )
}

function NodeRow({ node }: { node: Chain_Node }) {
  const sum = (field: 'calls' | 'errors') => node.calls.reduce((total, calls) => total + calls[field], 0)
  return (
    <tr>
      <th scope="row" className="mono">
        {node.host}
      </th>
      <td>
        <Badge tone={tones[node.state]}>
          {texts.states[Chain_Node_State[node.state] as keyof typeof texts.states]}
        </Badge>
        {node.pausedUntil !== undefined && (
          <span className="quiet small">
            {' '}
            {texts.again} <Time at={node.pausedUntil} distance />
          </span>
        )}
      </td>
      <td>{sayLimit(node)}</td>
      <td className="right">{formatAmount(String(node.requests))}</td>
      <td className="right">{formatAmount(String(sum('calls')))}</td>
      <td className="right">{formatAmount(String(sum('errors')))}</td>
    </tr>
  )
}

function sayLimit({ rate, budgetLeft }: Chain_Node): string {
  const unit = rate?.unit === Chain_Rate_Unit.CALLS ? 'calls' : 'requests'
  const parts = [
    ...(rate === undefined ? [] : [texts.rate(formatAmount(String(rate.perSecond)), unit, !rate.isDeclared)]),
    ...(budgetLeft === undefined ? [] : [texts.budget(formatAmount(String(budgetLeft)))]),
  ]
  return parts.length === 0 ? texts.noLimit : parts.join(', ')
}

/** What was asked of each node. */
function CallTable({ network, nodes }: NodeTableProps) {
  return (
    <details>
      <summary>{texts.byMethod}</summary>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={`${texts.byMethod}, ${network}`}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">{texts.host}</th>
              <th scope="col">{texts.method}</th>
              <th scope="col" className="right">
                {texts.calls}
              </th>
              <th scope="col" className="right">
                {texts.errors}
              </th>
            </tr>
          </thead>
          <tbody>
            {nodes.flatMap((node, index) =>
              node.calls.map(({ method, calls, errors }) => (
                <tr key={`${index} ${method}`}>
                  <td className="mono">{node.host}</td>
                  <th scope="row" className="mono">
                    {method}
                  </th>
                  <td className="right">{formatAmount(String(calls))}</td>
                  <td className="right">{formatAmount(String(errors))}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </div>
      <ul className="quiet small chain-node-limits">
        {nodes.map(({ host, batchSize, logRange }, index) => (
          <li key={`${host} ${index}`}>
            <span className="mono">{host}</span>: {texts.batch(batchSize)}
            {logRange !== undefined && `, ${texts.logRange(formatAmount(String(logRange)))}`}
          </li>
        ))}
      </ul>
    </details>
  )
}
