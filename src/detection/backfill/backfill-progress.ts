import type { Span } from '../sql/chain-spans-repository.ts'

/** How far a chain's back-fill is. */
export interface BackfillProgress {
  /** Blocks that are read so far. */
  readonly done: number
  /** Blocks that are left to read. */
  readonly left: number
  /** Absent until it was measured. */
  readonly blocksPerSecond?: number | undefined
  /** At that rate; absent where nothing moves. */
  readonly secondsLeft?: number | undefined
}

export type BackfillMeter = ReturnType<typeof createBackfillMeter>

/** The rate is that of the last minute: nodes slow down and recover. */
const WINDOW_MS = 60_000

interface Sample {
  readonly atMs: number
  readonly left: number
}

/** Makes what measures how fast the back-fill of one chain goes. @param nowMs - a monotonic clock */
export function createBackfillMeter(nowMs: () => number) {
  let samples: readonly Sample[] = []
  let latest: BackfillProgress | undefined
  return {
    /** Takes a sample of the spans that are left now. */
    note(spans: readonly Span[]): void {
      const left = countLeft(spans)
      const last = samples.at(-1)
      // More is left than before, since a span was added: earlier samples would make the rate too low.
      if (last !== undefined && left > last.left) samples = []
      const atMs = nowMs()
      samples = [...samples.filter((sample) => atMs - sample.atMs <= WINDOW_MS), { atMs, left }]
      latest = left === 0 ? undefined : progressOf(spans, samples)
    },
    /** As of the last sample; undefined where nothing is left. */
    progress: () => latest,
  }
}

/** Blocks that are read for two contracts at different times count twice. */
function countLeft(spans: readonly Span[]): number {
  return spans.reduce((sum, { next, until }) => sum + until - next + 1, 0)
}

function progressOf(spans: readonly Span[], samples: readonly Sample[]): BackfillProgress {
  const left = countLeft(spans)
  const [first, last] = [samples[0], samples.at(-1)]
  const seconds = first !== undefined && last !== undefined ? (last.atMs - first.atMs) / 1_000 : 0
  const read = first !== undefined && last !== undefined ? first.left - last.left : 0
  const blocksPerSecond = seconds === 0 ? undefined : read / seconds
  return {
    done: spans.reduce((sum, { from, next }) => sum + next - from, 0),
    left,
    blocksPerSecond,
    secondsLeft: blocksPerSecond === undefined || read === 0 ? undefined : Math.ceil(left / blocksPerSecond),
  }
}

/** `5,310`; below ten with a decimal, since a slow back-fill does not read 0 blocks a second. */
export function describeRate(perSecond: number): string {
  return perSecond.toLocaleString('en', { maximumFractionDigits: perSecond < 10 ? 1 : 0 })
}

/** `40 s`, `3 h 10 min`, `2 d 5 h`. */
export function describeDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.ceil(whole / 60)
  if (minutes < 60) return `${minutes} min`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  const hours = Math.ceil(minutes / 60)
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}
