import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a benchmark found out. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** What would be good; absent where a figure is for information. */
  readonly target?: { readonly atMost: number } | { readonly atLeast: number }
}

const OUT = join(import.meta.dirname, 'out')

/**
 * Prints the figures as a table and writes them to `bench/out/NAME.json`. How good they are changes no exit code: a benchmark measures.
 */
export async function report(name: string, figures: readonly Figure[]): Promise<void> {
  const judged = figures.map(judge)
  console.table(Object.fromEntries(judged.map(({ name: figure, ...rest }) => [figure, rest])))
  await mkdir(OUT, { recursive: true })
  await writeFile(join(OUT, `${name}.json`), `${JSON.stringify({ figures: judged }, null, 2)}\n`)
}

function judge({ target, ...figure }: Figure) {
  const value = Number(figure.value.toPrecision(4))
  if (target === undefined) return { ...figure, value }
  return 'atMost' in target
    ? { ...figure, value, target: target.atMost, ok: figure.value <= target.atMost }
    : { ...figure, value, target: target.atLeast, ok: figure.value >= target.atLeast }
}

/** The middle of what was measured; of an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  if (low === undefined || high === undefined) throw new RangeError('nothing was measured')
  return (low + high) / 2
}
