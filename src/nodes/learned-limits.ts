import type { LearnedSize } from './learned-size.ts'
import type { NodeRate } from './node-figures.ts'
import { isObject } from './rpc-error.ts'

/** The limits that were learned of a URL, and their form in the database, where they outlive a restart: values and rules, without I/O. */

/** How many blocks one call for logs spans at a node. `detection/follow/log-range.ts` has its rules. */
export interface LogRange {
  /** The width that the node takes where logs are few. */
  readonly blocks: LearnedSize
  /** The width at which the answers have not too many logs, for the blocks that are read now; Infinity where any width has not. */
  readonly denseBlocks: number
  /** The most logs in one answer: the number that the node named, or the most that it gave. Absent: no range was refused for its logs. */
  readonly mostLogs?: number | undefined
  /** `blocks` as it was before refusals in unknown words. It counts again if narrower ranges show that they were for the number of logs. */
  readonly before?: LearnedSize | undefined
}

/** A rate that was learned from refusals. */
export interface LearnedRate {
  readonly perSecond: number
  readonly unit: NodeRate['unit']
  /** After how long without a refusal a higher rate is tried. */
  readonly growAfterMs: number
}

/** The part of a learned size that is stored. */
export type StoredSize = Pick<LearnedSize, 'size' | 'taken' | 'refused' | 'probeAfter'>

/** The part of a learned range that is stored. */
export interface StoredRange {
  readonly blocks?: StoredSize | undefined
  readonly denseBlocks?: number | undefined
  readonly mostLogs?: number | undefined
}

/** The limits that were learned of a URL, as stored in JSON. Absent: nothing was learned of that limit. */
export interface LearnedLimits {
  readonly rate?: LearnedRate | undefined
  readonly batch?: StoredSize | undefined
  readonly logRange?: StoredRange | undefined
}

/** What to store of a size: not a larger one that is only being tried. @returns undefined where nothing was learned yet */
export function storedSizeOf({ size, taken, refused, probeAfter, isProbing }: LearnedSize): StoredSize | undefined {
  if (taken === 0 && refused === undefined) return undefined
  return { size: isProbing ? taken : size, taken, refused, probeAfter }
}

/** The size to continue with. @param start - as before anything is learned; its `max` holds for the stored size too */
export function sizeFromStored(start: LearnedSize, stored: StoredSize | undefined): LearnedSize {
  if (stored === undefined) return start
  const { max } = start
  return { ...start, ...stored, size: Math.min(max, stored.size), taken: Math.min(max, stored.taken) }
}

/** What to store of a range. After refusals in unknown words, which may have been for the logs, that is the width before them. */
export function storedRangeOf({ blocks, denseBlocks, mostLogs, before }: LogRange): StoredRange {
  const isDense = denseBlocks !== Number.POSITIVE_INFINITY
  return { blocks: storedSizeOf(before ?? blocks), denseBlocks: isDense ? denseBlocks : undefined, mostLogs }
}

/** The range to continue with. @param start - as before anything is learned */
export function rangeFromStored(start: LogRange, stored: StoredRange | undefined): LogRange {
  if (stored === undefined) return start
  const { denseBlocks = Number.POSITIVE_INFINITY, mostLogs } = stored
  return { blocks: sizeFromStored(start.blocks, stored.blocks), denseBlocks, mostLogs }
}

/** Reads stored limits. One that this version would not have written counts as not learned. */
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
