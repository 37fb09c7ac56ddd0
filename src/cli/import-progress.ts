import type { Writable } from 'node:stream'
import type { BadLine, ImportCounts } from '../imports/import-lines.ts'
import { writeFully } from './write-fully.ts'

/** Tells people how an import goes. */
export interface ImportProgress {
  onBatch(counts: ImportCounts, bad: readonly BadLine[]): Promise<void>
  /** Says how it ended, and the sums. */
  end(how: string): Promise<void>
}

const EVERY_MS = 1_000

/**
 * Writes every bad line as `line 17: REASON: message`, and once a second how far it is.
 *
 * @param nowMs - a clock that never goes back, in milliseconds
 */
export function reportImport(stderr: Writable, nowMs: () => number): ImportProgress {
  const startedMs = nowMs()
  // The first batch is told of at once.
  let saidMs = Number.NEGATIVE_INFINITY
  let latest: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  // Whoever reads slowly slows the import, and fills no memory; whoever has gone does not end it.
  const say = (text: string) => writeFully(stderr, text).catch(() => {})
  const sums = () => {
    const { lines, written, unchanged, bad } = latest
    const seconds = Math.max(nowMs() - startedMs, 1) / 1_000
    const figures = [lines, written, unchanged, bad, Math.round(lines / seconds)].map((n) => n.toLocaleString('en'))
    const [read, wrote, same, wrong, rate] = figures
    return `${read} lines read: ${wrote} written, ${same} unchanged, ${wrong} bad; ${rate} lines/s`
  }
  return {
    async onBatch(counts, bad) {
      latest = counts
      if (bad.length > 0)
        await say(bad.map(({ number, error }) => `line ${number}: ${error.reason}: ${error.message}\n`).join(''))
      if (nowMs() - saidMs < EVERY_MS) return
      saidMs = nowMs()
      await say(`${sums()}\n`)
    },
    end: (how) => say(`${how}: ${sums()}\n`),
  }
}
