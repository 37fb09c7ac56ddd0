/** Names longer than this are never suggested for, which bounds what a hostile name costs. */
const longestName = 64

/**
 * Finds the known name that was most likely meant: the one with the fewest edits (insertion, deletion, replacement,
 * swap of neighbours), letter case apart, at most a third of the longer name but at least one.
 *
 * @returns undefined when none is near; of equally near ones the first
 */
export function findNearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > longestName) return undefined
  let nearest: string | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(Math.max(name.length, candidate.length) / 3))
    if (candidate.length > longestName || Math.abs(candidate.length - name.length) > allowed) continue
    const edits = countEdits(name.toLowerCase(), candidate.toLowerCase())
    // A name of one letter is one edit from any other: something of it must be left.
    if (edits <= allowed && edits < fewest && edits < Math.max(name.length, candidate.length)) {
      nearest = candidate
      fewest = edits
    }
  }
  return nearest
}

/** Optimal string alignment distance, by three rows of its table. */
function countEdits(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const edits = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (same ? 0 : 1),
        swapped ? at(beforePrevious, column - 2) + 1 : Number.POSITIVE_INFINITY,
      )
      current.push(edits)
    }
    beforePrevious = previous
    previous = current
  }
  return at(previous, b.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
