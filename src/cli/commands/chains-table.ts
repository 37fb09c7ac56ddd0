import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { describeDuration, describeRate } from '../../detection/backfill/backfill-progress.ts'
import type { ChainState, ListedChain } from '../../detection/report/list-chains.ts'
import type { NodeReport } from '../../detection/sql/chain-reports-repository.ts'
import { counted } from '../shared/command.ts'

type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'bold'

interface Line {
  readonly text: string
  readonly colour?: Colour | undefined
}

const stateWords: Readonly<Record<ChainState, readonly [word: string, colour: Colour]>> = {
  NOT_STARTED: ['not started', 'dim'],
  CATCHING_UP: ['catching up', 'yellow'],
  FOLLOWING: ['following', 'green'],
  FAILING: ['failing', 'red'],
  STOPPED: ['STOPPED', 'red'],
  NOT_FOLLOWED: ['not followed', 'red'],
}

/** Draws the chains as a table: a line for each, and below it what there is to say. @param stream - for whose colours; without it there are none */
export function drawChains(chains: readonly ListedChain[], now: Date, stream?: Writable): string[] {
  const rows = [HEADINGS, ...chains.map(cellsOf)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const [headings = '', ...lines] = rows.map((cells) => joinCells(cells, widths))
  const drawn = chains.flatMap((chain, place): Line[] => [
    { text: lines[place] ?? '', colour: stateWords[chain.state][1] },
    ...detailsOf(chain, now).map(({ text, colour }) => ({ text: `  ${text}`, colour })),
  ])
  return [{ text: headings, colour: 'bold' } as const, ...drawn].map(({ text, colour }) =>
    stream === undefined || colour === undefined ? text : styleText(colour, text, { stream }),
  )
}

const HEADINGS = ['CHAIN', 'STATE', 'LAG', 'READ', 'HEAD', 'FINAL', 'REORGS']
/** Columns of block numbers. */
const NUMBERS: ReadonlySet<number> = new Set([3, 4, 5])
/** Between the parts of a detail. */
const DOT = ' · '

function cellsOf(chain: ListedChain): string[] {
  const { heights, lag, reorgs } = chain
  const age = describeDuration(lag?.seconds ?? 0)
  const isHeadKnown = chain.state === 'FOLLOWING' || chain.state === 'CATCHING_UP'
  const height = (block: number | undefined) => (block === undefined ? '-' : String(block))
  return [
    chain.network,
    stateWords[chain.state][0],
    lag === undefined ? '-' : isHeadKnown ? `${counted(lag.blocks, 'block')}, ${age}` : age,
    height(heights?.scanned),
    height(heights?.head),
    height(heights?.final),
    reorgs === undefined ? '-' : reorgs.count === 0 ? '0' : `${grouped(reorgs.count)}, up to ${reorgs.deepest}`,
  ]
}

function joinCells(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => {
      const width = widths[column] ?? 0
      return NUMBERS.has(column) ? cell.padStart(width) : cell.padEnd(width)
    })
    .join('  ')
    .trimEnd()
}

/** What there is to say of a chain, the most urgent first. */
function detailsOf(chain: ListedChain, now: Date): Line[] {
  const { alarm, trouble, unproven, follower, suspects, nodes, listChangedAt } = chain
  const since = (date: Date) => describeDuration(secondsBetween(date, now))
  const suspected = new Set(suspects.map(({ host }) => host))
  const [backfill, backlog] = [describeBackfill(chain), describeBacklog(chain)]
  const lines: readonly (Line | false | undefined)[] = [
    alarm !== undefined && { text: `stopped: ${alarm}`, colour: 'red' },
    trouble && { text: `failing for ${since(trouble.since)}: ${trouble.reason}`, colour: 'red' },
    unproven && { text: `unproven for ${since(unproven.since)}: ${unproven.reason}`, colour: 'yellow' },
    follower?.isStale === true && { text: `the last report is ${since(follower.reportedAt)} old`, colour: 'yellow' },
    ...suspects.map(({ host, reason }): Line => ({ text: `suspect ${host}: ${reason}`, colour: 'yellow' })),
    backfill !== undefined && { text: backfill },
    ...nodes.map((node) => describeNode(node, suspected.has(node.host), now)),
    listChangedAt && { text: `screening list last changed ${since(listChangedAt)} ago`, colour: 'dim' },
    follower && { text: `followed by ${follower.process} for ${since(follower.since)}`, colour: 'dim' },
    backlog !== undefined && { text: backlog, colour: 'dim' },
  ]
  return lines
    .filter((line) => line !== undefined && line !== false)
    .map((line) => ({ ...line, text: plain(line.text) }))
}

function describeBackfill({ backfill }: ListedChain): string | undefined {
  if (backfill === undefined) return undefined
  const { blocksDone, blocksTotal, blocksPerSecond, secondsLeft } = backfill
  const percent = blocksTotal === 0 ? 100 : Math.floor((blocksDone * 100) / blocksTotal)
  return [
    `back-fill ${percent} %`,
    blocksPerSecond === undefined
      ? `${grouped(blocksTotal - blocksDone)} blocks left`
      : `${describeRate(blocksPerSecond)} blocks/s`,
    ...(secondsLeft === undefined ? [] : [`${describeDuration(secondsLeft)} left`]),
  ].join(DOT)
}

function describeNode(node: NodeReport, isSuspected: boolean, now: Date): Line {
  const { rate, budgetLeft, pausedUntilMs = 0, logRange } = node
  const inUse = isSuspected ? 'asked last' : 'in use'
  const isPaused = pausedUntilMs > now.getTime()
  const state = isPaused ? describePause(node, now) : node.breaker === 'OPEN' ? 'left alone' : inUse
  const counts = Object.values(node.calls)
  const calls = counts.reduce((sum, each) => sum + each.calls, 0)
  const errors = counts.reduce((sum, each) => sum + each.errors, 0)
  const failing = Object.entries(node.calls).filter(([, each]) => each.errors > 0)
  const text = [
    `${node.host}: ${state}`,
    counted(calls, 'call'),
    ...(errors === 0 ? [] : [`${counted(errors, 'error')} (${failing.map(([method]) => method).join(', ')})`]),
    ...(rate === undefined
      ? []
      : [`${rate.isDeclared ? '' : 'learned '}${rate.perSecond} ${rate.unit.toLowerCase()}/s`]),
    ...(budgetLeft === undefined || budgetLeft === 0 ? [] : [`${grouped(budgetLeft)} left today`]),
    ...(logRange === undefined ? [] : [`${counted(logRange, 'block')} a call`]),
  ].join(DOT)
  return { text, colour: state === 'in use' ? undefined : 'yellow' }
}

/** Why nothing is sent to a node, and until when. */
function describePause({ budgetLeft, pausedUntilMs = 0 }: NodeReport, now: Date): string {
  const left = describeDuration((pausedUntilMs - now.getTime()) / 1_000)
  if (budgetLeft !== 0) return `paused for ${left}`
  const until = new Date(pausedUntilMs).toISOString().slice(11, 16)
  return `daily budget used up, waits until ${until} UTC (${left})`
}

function describeBacklog({ unmatched, unpricedPayments = 0 }: ListedChain): string | undefined {
  const events = unmatched.reduce((sum, each) => sum + each.events, 0)
  const reasons = unmatched
    .toSorted((a, b) => b.events - a.events)
    .map((each) => `${grouped(each.events)} ${each.reason}`)
    .join(', ')
  const parts = [
    ...(events === 0 ? [] : [`unmatched: ${reasons}`]),
    ...(unpricedPayments === 0 ? [] : [`${counted(unpricedPayments, 'payment')} without a price`]),
  ]
  return parts.length === 0 ? undefined : parts.join(DOT)
}

/** Texts of nodes may hold control characters, which would move the cursor. */
function plain(text: string): string {
  return text.replaceAll(/\p{C}+/gu, ' ')
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, Math.floor((to.getTime() - from.getTime()) / 1_000))
}

/** `12,300` */
const grouped = (count: number) => count.toLocaleString('en')
