import {
  type Chain,
  type Chain_Node,
  Chain_Node_State,
  Chain_Rate_Unit,
  Chain_State,
  UnmatchedEvent_Reason,
} from '@waybill/client'
import type { ReactNode } from 'react'
import { formatAmount } from '../../shared/format-amount.ts'
import { formatSpan } from '../../shared/format-time.ts'
import { chainsTexts } from '../../shared/texts.ts'
import { Facts, Table } from '../parts/blocks.tsx'
import { Link } from '../parts/link.tsx'
import { Badge, Time, type Tone, Unknown } from '../parts/shown-values.tsx'
import { judgeChain } from './judge-chain.ts'

/** How following one chain goes. */
export function ChainCard({ chain }: { chain: Chain }) {
  const words = judgeChain(chain)
  const id = `chain-${chain.network}`
  return (
    <section className="card chain stack gap-3" aria-labelledby={id}>
      <header className="row">
        <h2 id={id}>{chain.network}</h2>
        <span className="quiet small">{chain.chainId}</span>
        <Badge tone={words.tone}>{words.title}</Badge>
      </header>
      <p className={words.tone === 'good' ? 'quiet' : ''}>{words.says}</p>
      <Problems chain={chain} />
      <Blocks chain={chain} />
      {chain.backfill !== undefined && <Backfill backfill={chain.backfill} network={chain.network} />}
      <NodeTable network={chain.network} nodes={chain.nodes} />
      <Rest chain={chain} />
    </section>
  )
}

function Problems({ chain }: { chain: Chain }) {
  return (
    <>
      {chain.alarm !== undefined && (
        <div className="notice bad">
          <p>
            <strong>{chain.alarm}</strong>
          </p>
          {chain.state === Chain_State.STOPPED && <p className="mono small">{chainsTexts.restart(chain.network)}</p>}
        </div>
      )}
      <Lasting trouble={chain.trouble} says={chainsTexts.trouble} />
      <Lasting trouble={chain.unproven} says={chainsTexts.unproven} />
      {chain.suspects.map(({ host, reason, at }) => (
        <p key={host + reason} className="notice warn">
          {chainsTexts.suspect(host, reason)} <Time at={at} distance />
        </p>
      ))}
    </>
  )
}

function Lasting({ trouble, says }: { trouble: Chain['trouble']; says: (reason: string) => string }) {
  if (trouble === undefined) return null
  return (
    <p className="notice warn">
      {says(trouble.reason)}
      {', '}
      {chainsTexts.since} <Time at={trouble.since} />
    </p>
  )
}

function Blocks({ chain }: { chain: Chain }) {
  const { headBlock, scannedBlock, finalBlock, lagBlocks, lagSeconds } = chain
  const lag = (
    <>
      {lagBlocks === undefined ? <Unknown /> : chainsTexts.blocks(formatAmount(String(lagBlocks)), lagBlocks === 1)}
      {lagSeconds !== undefined && <span className="quiet small line">{chainsTexts.age(formatSpan(lagSeconds))}</span>}
    </>
  )
  return (
    <Facts
      className="chain-figures columns"
      facts={[
        [chainsTexts.head, blockNumber(headBlock)],
        [chainsTexts.scanned, blockNumber(scannedBlock)],
        [chainsTexts.lag, lag],
        [chainsTexts.final, blockNumber(finalBlock)],
      ]}
    />
  )
}

function blockNumber(block: bigint | undefined): ReactNode {
  return block === undefined ? <Unknown /> : formatAmount(String(block))
}

function Backfill({ backfill, network }: { backfill: NonNullable<Chain['backfill']>; network: string }) {
  const { title, says, rate, left, leftUnknown } = chainsTexts.backfill
  const { blocksDone, blocksTotal, blocksPerSecond, secondsLeft } = backfill
  const percent = blocksTotal === 0n ? 100 : Number((blocksDone * 1_000n) / blocksTotal) / 10
  const parts = [
    says(formatAmount(String(blocksDone)), formatAmount(String(blocksTotal))),
    ...(blocksPerSecond === undefined ? [] : [rate(formatRate(blocksPerSecond))]),
    secondsLeft === undefined ? leftUnknown : left(formatSpan(secondsLeft)),
  ]
  return (
    <div className="chain-backfill">
      <p>
        <strong>{title}</strong> <span className="number">{percent}%</span>
      </p>
      <progress max={100} value={percent} aria-label={`${title}, ${network}`} />
      <p className="quiet small number">{parts.join(' · ')}</p>
    </div>
  )
}

/** Below ten with a decimal: a slow back-fill does not read 0 blocks a second. */
function formatRate(perSecond: number): string {
  return perSecond.toLocaleString(undefined, { maximumFractionDigits: perSecond < 10 ? 1 : 0 })
}

function Rest({ chain: { network, reorgs, follower, backlog } }: { chain: Chain }) {
  return (
    <Facts
      className="facts small"
      facts={[
        [chainsTexts.reorgs, <Reorgs reorgs={reorgs} />],
        follower?.process === undefined ? undefined : [chainsTexts.follower, <Follower follower={follower} />],
        backlog && [chainsTexts.unmatched.title, <Backlog network={network} backlog={backlog} />],
      ]}
    />
  )
}

function Reorgs({ reorgs }: Pick<Chain, 'reorgs'>) {
  if (reorgs === undefined) return <Unknown />
  const { count, deepestBlocks, lastAt } = reorgs
  if (count === 0) return chainsTexts.noReorgs
  return (
    <>
      {chainsTexts.reorgsSeen(count, deepestBlocks)}
      {lastAt !== undefined && (
        <>
          , {chainsTexts.lastAt} <Time at={lastAt} distance />
        </>
      )}
    </>
  )
}

function Follower({ follower: { process, since } }: { follower: NonNullable<Chain['follower']> }) {
  return (
    <>
      <span className="mono">{process}</span> {chainsTexts.since} <Time at={since} />
    </>
  )
}

function Backlog({ network, backlog }: { network: string; backlog: NonNullable<Chain['backlog']> }) {
  const { none, unpriced } = chainsTexts.backlog
  const { reasons } = chainsTexts.unmatched
  const { unmatched, unpricedPayments = 0 } = backlog
  return (
    <>
      {unmatched.length === 0 && none}
      <ul className="row gap-3">
        {unmatched.map(({ reason, events }) => {
          const name = UnmatchedEvent_Reason[reason] as keyof typeof reasons
          return (
            <li key={reason}>
              <Link
                to={`/chains?network=${network}&reason=${name}`}
                onClick={() => document.getElementById('unmatched')?.focus()}
              >
                {reasons[name]}
              </Link>{' '}
              <span className="number">{formatAmount(String(events))}</span>
            </li>
          )
        })}
        {unpricedPayments > 0 && <li>{unpriced(unpricedPayments)}</li>}
      </ul>
    </>
  )
}

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

function NodeTable({ network, nodes }: NodeTableProps) {
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
    <div className="chain-nodes stack gap-2">
      <Table label={texts.of(network)} columns={texts.columns} rows={rows} numbers={[3, 5]} name={0} />
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
