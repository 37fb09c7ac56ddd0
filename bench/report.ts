import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One result of a benchmark. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** Absent for a figure that is only for information. */
  readonly target?: { readonly atMost: number } | { readonly atLeast: number }
}

const OUT = join(import.meta.dirname, 'out')

/**
 * Prints the figures as a table and writes them to `bench/out/NAME.json`, or to the file that `npm run bench` names, so that its small runs
 * leave the figures of large ones alone. A missed target does not change the exit code.
 */
export async function report(name: string, figures: readonly Figure[]): Promise<void> {
  const judged = figures.map(judge)
  console.table(Object.fromEntries(judged.map(({ name: figure, ...rest }) => [figure, rest])))
  await mkdir(OUT, { recursive: true })
  await writeFile(
    process.env.BENCH_FIGURES ?? join(OUT, `${name}.json`),
    `${JSON.stringify({ figures: judged }, null, 2)}\n`,
  )
}

function judge({ target, ...figure }: Figure) {
  const value = Number(figure.value.toPrecision(4))
  if (target === undefined) return { ...figure, value }
  return 'atMost' in target
    ? { ...figure, value, target: target.atMost, ok: figure.value <= target.atMost }
    : { ...figure, value, target: target.atLeast, ok: figure.value >= target.atLeast }
}

/** The median of values; of an even number of values, the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  if (low === undefined || high === undefined) throw new RangeError('the median of no values is not defined')
  return (low + high) / 2
}
