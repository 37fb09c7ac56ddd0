import { describeDuration } from '../detection/backfill/backfill-progress.ts'
import type { MigrationPlan, TableSample } from '../postgres/migrations/plan-migrations.ts'

const HEADINGS = ['MIGRATION', 'TABLE', 'LOCK', 'STOPS', 'FOR']

/** The plan as a table, with what the times are estimated from. */
export function drawPlan({ steps, samples }: MigrationPlan): string[] {
  if (steps.length === 0) return ['the schema is up to date']
  const rows = steps.flatMap(({ step, contract, locks, seconds }) => {
    const name = contract ? `${step} (with --contract)` : step
    const time = seconds === 0 ? 'milliseconds' : `about ${describeDuration(Math.ceil(seconds))}`
    const used =
      locks.length === 0 ? [['-', '-', 'nothing']] : locks.map(({ table, mode, stops }) => [table, mode, stops])
    return used.map((cells, n) => [n === 0 ? name : '', ...cells, n === 0 ? time : ''])
  })
  const all = [HEADINGS, ...rows]
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return [
    ...lines,
    '',
    'A migration waits for a lock for 1 s at most; then it lets others pass and tries again.',
    ...samples.map(describeSample),
  ]
}

function describeSample({ table, bytes, rows, sampledRows, sampleMs }: TableSample): string {
  const [all, sampled, ms, mb] = [rows, sampledRows, Math.ceil(sampleMs), Math.ceil(bytes / 2 ** 20)].map((n) =>
    n.toLocaleString('en'),
  )
  return `${table}: about ${all} rows, ${mb} MB; the time is estimated from ${sampled} of them, which were read and sorted in ${ms} ms.`
}
