import { type Chain_Node, Chain_Node_State, Chain_Rate_Unit } from '@waybill/client'
import { formatAmount } from '../../shared/format-amount.ts'
import { chainsTexts } from '../../shared/texts.ts'
import { Table } from '../parts/blocks.tsx'
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
  const sum = (node: Chain_Node, field: 'calls' | 'errors') =>
    formatAmount(String(node.calls.reduce((total, calls) => total + calls[field], 0)))
  const rows = nodes.map((node) => [
    <span className="mono">{node.host}</span>,
    <NodeState node={node} />,
    sayLimit(node),
    formatAmount(String(node.requests)),
    sum(node, 'calls'),
    sum(node, 'errors'),
  ])
  return (
    <div className="chain-nodes">
      <Table label={texts.of(network)} columns={texts.columns} rows={rows} numbers={[3, 5]} name={0} />
      <CallTable network={network} nodes={nodes} />
    </div>
  )
}

function NodeState({ node: { state, pausedUntil } }: { node: Chain_Node }) {
  return (
    <>
      <Badge tone={tones[state]}>{texts.states[Chain_Node_State[state] as keyof typeof texts.states]}</Badge>
      {pausedUntil !== undefined && (
        <span className="quiet small">
          {' '}
          {texts.again} <Time at={pausedUntil} distance />
        </span>
      )}
    </>
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
  const rows = nodes.flatMap(({ host, calls: ofNode }) =>
    ofNode.map(({ method, calls, errors }) => [
      <span className="mono">{host}</span>,
      <span className="mono">{method}</span>,
      formatAmount(String(calls)),
      formatAmount(String(errors)),
    ]),
  )
  return (
    <details>
      <summary>{texts.byMethod}</summary>
      <Table
        label={`${texts.byMethod}, ${network}`}
        columns={texts.callColumns}
        rows={rows}
        numbers={[2, 3]}
        name={1}
      />
      <ul className="bullets quiet small">
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
