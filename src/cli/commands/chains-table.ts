import { styleText } from 'node:util'
import { describeRate } from '../../detection/backfill/backfill-progress.ts'
import type { ChainState, ListedChain } from '../../detection/report/list-chains.ts'
import type { NodeReport } from '../../detection/sql/chain-reports-repository.ts'
import { counted } from '../shared/command.ts'

/** How `chains status` is drawn. */
export interface TableStyle {
  /** Columns of the terminal. */
  readonly width: number
  readonly hasColour: boolean
  readonly now: Date
}

/** From this width on there are columns for who follows a chain. */
const WIDE = 120

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

/** Draws the chains as a table: a line for each, and below it what there is to say. No line is wider than the terminal: columns that do not fit are left out. */
export function drawChains(chains: readonly ListedChain[], style: TableStyle): string[] {
  const rows = [HEADINGS, ...chains.map((chain) => cellsOf(chain, style))]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const columns = columnsWithin(style.width, widths)
  const [headings = '', ...lines] = rows.map((cells) => joinCells(cells.slice(0, columns), widths))
  const drawn = lines.flatMap((text, place): Line[] => {
    const chain = chains[place]
    if (chain === undefined) return []
    const details = detailsOf(chain, style).flatMap((detail) => indent(detail, style.width))
    return [{ text, colour: stateWords[chain.state][1] }, ...details]
  })
  return [{ text: headings, colour: 'bold' } as const, ...drawn].map((line) =>
    paint({ ...line, text: shorten(line.text, style.width) }, style.hasColour),
  )
}

const HEADINGS = ['CHAIN', 'STATE', 'LAG', 'READ', 'HEAD', 'FINAL', 'REORGS', 'FOLLOWED BY', 'SINCE']
const NARROW_COLUMNS = 7
const BETWEEN = '  '
/** Columns of block numbers. */
const NUMBERS: ReadonlySet<number> = new Set([3, 4, 5])
/** Where parts of a detail are distinguished, and where a long one is broken first. */
const DOT = ' · '

/** How many columns fit: one that is cut would show a number that is too small. */
function columnsWithin(width: number, widths: readonly number[]): number {
  const wanted = width < WIDE ? widths.slice(0, NARROW_COLUMNS) : widths
  const ends = wanted.map((_, column) => wanted.slice(0, column + 1).reduce((sum, each) => sum + each + BETWEEN.length))
  return Math.max(1, ends.filter((end) => end <= width).length)
}

function cellsOf(chain: ListedChain, { now }: TableStyle): string[] {
  const { heights, lag, reorgs, follower } = chain
  const age = duration(lag?.seconds ?? 0)
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
    follower?.process ?? '-',
    follower === undefined ? '-' : duration(secondsBetween(follower.since, now)),
  ]
}

function joinCells(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => {
      const width = widths[column] ?? 0
      return NUMBERS.has(column) ? cell.padStart(width) : cell.padEnd(width)
    })
    .join(BETWEEN)
    .trimEnd()
}

/** Puts a detail below its chain, on as many lines as it takes: what is wrong is mostly said at the end. */
function indent({ text, colour }: Line, width: number): Line[] {
  return wrap(text, Math.max(1, width - 4)).map((line, place) => ({
    text: `${place === 0 ? '  ' : '    '}${line}`,
    colour,
  }))
}

/** Breaks a text before its dots, and where there are none between words. */
function wrap(text: string, width: number): string[] {
  const parts = text.split(DOT).flatMap((part) => fill(part.split(' '), ' ', width))
  return fill(parts, DOT, width)
}

/** Joins pieces to lines that are no longer than they must be. */
function fill(pieces: readonly string[], between: string, width: number): string[] {
  const lines: string[] = []
  for (const piece of pieces) {
    const longer = lines.length === 0 ? piece : `${lines.at(-1)}${between}${piece}`
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer
    else lines.push(piece)
  }
  return lines
}

/** What there is to say of a chain, the most urgent first. */
function detailsOf(chain: ListedChain, { now }: TableStyle): Line[] {
  const { alarm, trouble, unproven, follower, suspects, nodes, listChangedAt } = chain
  const lines: Line[] = []
  if (alarm !== undefined) lines.push({ text: `stopped: ${plain(alarm)}`, colour: 'red' })
  if (trouble !== undefined) {
    const lasts = duration(secondsBetween(trouble.since, now))
    lines.push({ text: `failing for ${lasts}: ${plain(trouble.reason)}`, colour: 'red' })
  }
  if (unproven !== undefined) {
    const lasts = duration(secondsBetween(unproven.since, now))
    lines.push({ text: `unproven for ${lasts}: ${plain(unproven.reason)}`, colour: 'yellow' })
  }
  if (follower?.isStale === true) {
    const age = duration(secondsBetween(follower.reportedAt, now))
    lines.push({ text: `the last report is ${age} old`, colour: 'yellow' })
  }
  for (const { host, reason } of suspects) {
    lines.push({ text: `suspect ${plain(host)}: ${plain(reason)}`, colour: 'yellow' })
  }
  const backfill = describeBackfill(chain)
  if (backfill !== undefined) lines.push({ text: backfill })
  const suspected = new Set(suspects.map(({ host }) => host))
  lines.push(...nodes.map((node) => describeNode(node, suspected.has(node.host), now)))
  if (listChangedAt !== undefined) {
    const age = duration(secondsBetween(listChangedAt, now))
    lines.push({ text: `screening list last changed ${age} ago`, colour: 'dim' })
  }
  const backlog = describeBacklog(chain)
  if (backlog !== undefined) lines.push({ text: backlog, colour: 'dim' })
  return lines
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
    ...(secondsLeft === undefined ? [] : [`${duration(secondsLeft)} left`]),
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
    `${plain(node.host)}: ${state}`,
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
  const left = duration(Math.ceil((pausedUntilMs - now.getTime()) / 1_000))
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

function shorten(text: string, width: number): string {
  const characters = Array.from(text)
  return characters.length <= width ? text : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`
}

function paint({ text, colour }: Line, hasColour: boolean): string {
  return hasColour && colour !== undefined ? styleText(colour, text, { validateStream: false }) : text
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, Math.floor((to.getTime() - from.getTime()) / 1_000))
}

/** `12,300` */
const grouped = (count: number) => count.toLocaleString('en')

/** Seconds in the two largest units: `36 s`, `4 min 10 s`, `3 h 10 min`, `2 d 4 h`. */
export function duration(seconds: number): string {
  const units = [
    ['d', Math.floor(seconds / 86_400)],
    ['h', Math.floor(seconds / 3_600) % 24],
    ['min', Math.floor(seconds / 60) % 60],
    ['s', Math.floor(seconds) % 60],
  ] as const
  const first = units.findIndex(([, count]) => count > 0)
  if (first === -1) return '0 s'
  const shown = units.slice(first, first + 2).filter(([, count]) => count > 0)
  return shown.map(([unit, count]) => `${count} ${unit}`).join(' ')
}
