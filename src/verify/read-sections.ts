import type { Knex } from 'knex'
import type { Hex } from '../domain/hex.ts'
import { RpcError } from '../nodes/rpc-error.ts'
import { inParallel } from './read/in-parallel.ts'
import type { RangePlan, Span } from './read/plan-range.ts'
import { type ReadBlocks, type ReadHeaders, readEvents, readSpanHeaders } from './read/read-blocks.ts'
import { completeFacts, type EventFact, type FactTools } from './rules/chain-facts.ts'
import { findAccounts } from './sql/stored-requests.ts'
import type { UnprovenBlock } from './verify-report.ts'

/** What was read of some consecutive blocks. A section is compared before the next one is read, so that memory holds the events of one. */
export interface Section {
  readonly span: Span
  /** Events whose topic belongs to a request of some account. */
  readonly facts: readonly EventFact[]
  /** Events whose topic belongs to none. */
  readonly unknown: readonly Pick<EventFact, 'txHash' | 'blockNumber' | 'timestampSec' | 'event'>[]
  /** Blocks whose events are not certain: nothing is compared with them. */
  readonly uncertain: ReadonlySet<number>
  readonly unproven: readonly UnprovenBlock[]
  /** Blocks of which receipts were read. */
  readonly receiptsRead: number
  /** Of the first and the last block. */
  readonly fromTime: Date
  readonly toTime: Date
}

/** When a section ends, by whichever comes first. */
export interface SectionSize {
  readonly blocks: number
  readonly events: number
  readonly ms: number
}

export interface SectionTerms {
  readonly knex: Knex
  readonly size?: SectionSize | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after each portion of blocks, with the events in it. */
  readonly onPortion?: ((blocks: number, events: number) => void) | undefined
}

/** The time limits what is lost when a slow verification is stopped. */
const DEFAULT_SIZE: SectionSize = { blocks: 50_000, events: 10_000, ms: 60_000 }
/** Blocks whose headers are read in one HTTP request. */
const BLOCKS_A_PORTION = 100
/** Portions of headers that are requested in advance. */
const PORTIONS_AHEAD = 4
const TRANSACTIONS_AT_ONCE = 8

/**
 * Reads all blocks of a plan, section by section, and completes the events of known topics.
 *
 * @throws RpcError when no node answers, or when the pinned block is another; the signal's reason
 */
export async function* readSections(
  tools: FactTools,
  plan: RangePlan,
  terms: SectionTerms,
): AsyncGenerator<Section, void, undefined> {
  const size = terms.size ?? DEFAULT_SIZE
  for (const span of plan.spans) {
    let open = openSection(span.from)
    for await (const headers of headersAhead(tools, span, Math.min(size.blocks, BLOCKS_A_PORTION), terms.signal)) {
      const blocks = await readEvents(tools, headers)
      if (blocks.last.number === plan.pinned.number && blocks.last.hash !== plan.pinned.hash) throw pinnedChanged(plan)
      const sorted = await sortEvents(terms.knex, tools, blocks)
      addTo(open, blocks, sorted)
      terms.onPortion?.(blocks.last.number - blocks.first.number + 1, sorted.facts.length + sorted.unknown.length)
      if (blocks.last.number < span.to && !isFull(open, size)) continue
      yield toSection(open)
      open = openSection(blocks.last.number + 1)
    }
  }
}

/** The error of a verification whose pinned block is no longer on the chain. */
export function pinnedChanged({ pinned }: RangePlan): RpcError {
  return new RpcError('INCONSISTENT', `block ${pinned.number} was final and is now another; run it again`)
}

/** Reads the headers of a span in portions, some of them in advance, since nodes are slow and answer several requests at once. */
async function* headersAhead(
  { nodes }: FactTools,
  span: Span,
  atOnce: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReadHeaders, void, undefined> {
  const asked: { readonly portion: Span; readonly headers: Promise<ReadHeaders> }[] = []
  let next = span.from
  let before: Hex | undefined
  while (next <= span.to || asked.length > 0) {
    signal?.throwIfAborted()
    while (next <= span.to && asked.length < PORTIONS_AHEAD) {
      const portion = { from: next, to: Math.min(span.to, next + atOnce - 1) }
      const headers = readSpanHeaders(nodes, portion)
      // Its error is thrown when its turn comes.
      headers.catch(() => {})
      asked.push({ portion, headers })
      next = portion.to + 1
    }
    const { portion, headers } = asked.shift() as (typeof asked)[number]
    const read = await headers
    const isNext = before === undefined || read.headers[0]?.parentHash === before
    const linked = isNext ? read : await readSpanHeaders(nodes, portion, before)
    before = linked.headers.at(-1)?.hash
    yield linked
  }
}

interface OpenSection {
  readonly from: number
  readonly sinceMs: number
  readonly facts: EventFact[]
  readonly unknown: Section['unknown'][number][]
  readonly uncertain: Set<number>
  readonly unproven: UnprovenBlock[]
  receiptsRead: number
  to: number
  fromTime: Date | undefined
  toTime: Date | undefined
}

function openSection(from: number): OpenSection {
  const lists = { facts: [], unknown: [], uncertain: new Set<number>(), unproven: [] }
  return {
    from,
    sinceMs: performance.now(),
    ...lists,
    receiptsRead: 0,
    to: from - 1,
    fromTime: undefined,
    toTime: undefined,
  }
}

function addTo(open: OpenSection, blocks: ReadBlocks, sorted: Pick<Section, 'facts' | 'unknown'>): void {
  open.facts.push(...sorted.facts)
  open.unknown.push(...sorted.unknown)
  for (const number of blocks.uncertain) open.uncertain.add(number)
  open.unproven.push(...blocks.unproven)
  open.receiptsRead += blocks.receiptsRead
  open.to = blocks.last.number
  open.fromTime ??= new Date(blocks.first.timestampSec * 1_000)
  open.toTime = new Date(blocks.last.timestampSec * 1_000)
}

function isFull({ from, to, facts, unknown, sinceMs }: OpenSection, size: SectionSize): boolean {
  return (
    to - from + 1 >= size.blocks ||
    facts.length + unknown.length >= size.events ||
    performance.now() - sinceMs >= size.ms
  )
}

function toSection({ from, to, fromTime = new Date(0), toTime = new Date(0), ...read }: OpenSection): Section {
  const { facts, unknown, uncertain, unproven, receiptsRead } = read
  return { span: { from, to }, facts, unknown, uncertain, unproven, receiptsRead, fromTime, toTime }
}

/** Separates the events of known topics, and completes those. The others need no payer and no rate. */
export async function sortEvents(
  knex: Knex,
  tools: FactTools,
  { seen }: Pick<ReadBlocks, 'seen'>,
): Promise<Pick<Section, 'facts' | 'unknown'>> {
  const topics = new Set(seen.flatMap(({ logs }) => logs.events.map(({ topic }) => topic)))
  const known = await findAccounts(knex, [...topics])
  const unknown = seen.flatMap(({ header, receipt, logs }) =>
    logs.events
      .filter(({ topic }) => !known.has(topic))
      .map((event) => ({
        txHash: receipt.txHash,
        blockNumber: header.number,
        timestampSec: header.timestampSec,
        event,
      })),
  )
  const wanted = seen.filter(({ logs }) => logs.events.some(({ topic }) => known.has(topic)))
  const completed = await inParallel(wanted, TRANSACTIONS_AT_ONCE, (each) => completeFacts(tools, each))
  return { facts: completed.flat().filter(({ event }) => known.has(event.topic)), unknown }
}
