import type { LearnedSize } from './learned-size.ts'
import type { NodeRate } from './node-figures.ts'
import { isObject } from './rpc-error.ts'

/** What was learned of a URL's limits, so that it can be stored and used again after a restart: values and rules, without I/O. */

/** How many blocks one call for logs spans at a node. `detection/follow/log-range.ts` has its rules. */
export interface LogRange {
  /** What the node takes where there are few logs. */
  readonly blocks: LearnedSize
  /** What the number of logs around here allows; Infinity where it allows anything. */
  readonly denseBlocks: number
  /** The most logs of an answer, as the node said or as it was seen to take. Absent: none was refused for its logs. */
  readonly mostLogs?: number | undefined
  /** `blocks` before refusals whose words were unknown, until it shows whether they were for the logs. */
  readonly before?: LearnedSize | undefined
}

/** A rate that was learned from refusals. */
export interface LearnedRate {
  readonly perSecond: number
  readonly unit: NodeRate['unit']
  /** After how long without a refusal a higher rate is tried. */
  readonly growAfterMs: number
}

/** The part of a learned size that outlives the process. */
export type StoredSize = Pick<LearnedSize, 'size' | 'taken' | 'refused' | 'probeAfter'>

/** The part of a learned range that outlives the process. */
export interface StoredRange {
  readonly blocks?: StoredSize | undefined
  readonly denseBlocks?: number | undefined
  readonly mostLogs?: number | undefined
}

/** What was learned of a URL, as JSON has it. Absent: nothing was learned of that. */
export interface LearnedLimits {
  readonly rate?: LearnedRate | undefined
  readonly batch?: StoredSize | undefined
  readonly logRange?: StoredRange | undefined
}

/** What to keep of a size. A larger size that is only being tried is not kept. @returns undefined where nothing was asked yet */
export function storedSizeOf({ size, taken, refused, probeAfter, isProbing }: LearnedSize): StoredSize | undefined {
  if (taken === 0 && refused === undefined) return undefined
  return { size: isProbing ? taken : size, taken, refused, probeAfter }
}

/** Goes on from a size that was kept. @param start - the size of which nothing is known: its `most` counts */
export function sizeFromStored(start: LearnedSize, kept: StoredSize | undefined): LearnedSize {
  if (kept === undefined) return start
  const { most } = start
  return { ...start, ...kept, size: Math.min(most, kept.size), taken: Math.min(most, kept.taken) }
}

/** What to keep of a range. After refusals in unknown words, which may have been for the logs, the width before them is kept. */
export function storedRangeOf({ blocks, denseBlocks, mostLogs, before }: LogRange): StoredRange {
  const isDense = denseBlocks !== Number.POSITIVE_INFINITY
  return { blocks: storedSizeOf(before ?? blocks), denseBlocks: isDense ? denseBlocks : undefined, mostLogs }
}

/** Goes on from a range that was kept. @param start - the range of which nothing is known */
export function rangeFromStored(start: LogRange, kept: StoredRange | undefined): LogRange {
  if (kept === undefined) return start
  const { denseBlocks = Number.POSITIVE_INFINITY, mostLogs } = kept
  return { blocks: sizeFromStored(start.blocks, kept.blocks), denseBlocks, mostLogs }
}

/** Reads what was stored. What is not as this version writes it counts as not learned. */
export function readLearnedLimits(json: unknown): LearnedLimits {
  if (!isObject(json)) return {}
  const { rate, batch, logRange } = json
  return { rate: readRate(rate), batch: readSize(batch), logRange: readRange(logRange) }
}

function readRate(json: unknown): LearnedRate | undefined {
  if (!isObject(json)) return undefined
  const { perSecond, unit, growAfterMs } = json
  const isUnit = unit === 'REQUESTS' || unit === 'CALLS'
  if (!isUnit || !isPositive(perSecond) || !isPositive(growAfterMs)) return undefined
  return { perSecond, unit, growAfterMs }
}

function readSize(json: unknown): StoredSize | undefined {
  if (!isObject(json)) return undefined
  const { size, taken, refused, probeAfter } = json
  const isSize = isCount(size) && (taken === 0 || isCount(taken)) && isCount(probeAfter)
  if (!isSize || (refused !== undefined && !isCount(refused))) return undefined
  return { size, taken, refused, probeAfter }
}

function readRange(json: unknown): StoredRange | undefined {
  if (!isObject(json)) return undefined
  const { blocks, denseBlocks, mostLogs } = json
  return {
    blocks: readSize(blocks),
    denseBlocks: isCount(denseBlocks) ? denseBlocks : undefined,
    mostLogs: isCount(mostLogs) ? mostLogs : undefined,
  }
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1
}
