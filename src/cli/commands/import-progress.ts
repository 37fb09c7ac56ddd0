import type { Writable } from 'node:stream'
import type { BadLine, ImportCounts } from '../../imports/lines/import-lines.ts'
import { writeFully } from '../shared/write-fully.ts'

const REPORT_INTERVAL_MS = 1_000

/**
 * Writes every bad line as `line 17: REASON: message`, and the totals once a second.
 *
 * @param nowMs - a monotonic clock, in milliseconds
 */
export function reportImport(stderr: Writable, nowMs: () => number) {
  const startedMs = nowMs()
  // The first batch is reported at once.
  let reportedMs = Number.NEGATIVE_INFINITY
  let latest: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  // A slow reader slows the import down instead of filling memory. A reader that is gone does not stop it.
  const write = (text: string) => writeFully(stderr, text).catch(() => {})
  const totals = () => {
    const { lines, written, unchanged, bad } = latest
    const seconds = Math.max(nowMs() - startedMs, 1) / 1_000
    const figures = [lines, written, unchanged, bad, Math.round(lines / seconds)].map((n) => n.toLocaleString('en'))
    const [read, wrote, same, wrong, rate] = figures
    return `${read} lines read: ${wrote} written, ${same} unchanged, ${wrong} bad; ${rate} lines/s`
  }
  return {
    async onBatch(counts: ImportCounts, bad: readonly BadLine[]): Promise<void> {
      latest = counts
      if (bad.length > 0)
        await write(bad.map(({ number, error }) => `line ${number}: ${error.reason}: ${error.message}\n`).join(''))
      if (nowMs() - reportedMs < REPORT_INTERVAL_MS) return
      reportedMs = nowMs()
      await write(`${totals()}\n`)
    },
    /** Writes how the import ended, and the totals. */
    end: (how: string) => write(`${how}: ${totals()}\n`),
  }
}
