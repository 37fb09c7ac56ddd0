/** Suggestions for mistyped names. */

/** The number of single characters to insert, drop, change, or swap with their neighbour, to make one text of another. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)]
  const at = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY
      row[j] = Math.min(change, swap, at(i - 1, j) + 1, at(i, j - 1) + 1)
    }
  }
  return at(a.length, b.length)
}

const LONGEST_NAME = 64

/** The most names that a list shows. */
const MOST_NAMES = 40

/**
 * The known name nearest to a mistyped one, case ignored: one that begins with it or holds it (`from` → `fromDate`), else the one
 * with the fewest characters to change.
 *
 * @returns undefined when none is near: more than a third of the longer name would have to change
 */
function nearestName(mistyped: string, known: readonly string[]): string | undefined {
  if (mistyped === '' || mistyped.length > LONGEST_NAME) return undefined
  const wanted = mistyped.toLowerCase()
  return holderOf(wanted, known) ?? fewestChanges(wanted, known)
}

function holderOf(wanted: string, known: readonly string[]): string | undefined {
  const begins = (name: string) => wanted.length >= 2 && name.toLowerCase().startsWith(wanted)
  const holds = (name: string) => wanted.length >= 4 && name.toLowerCase().includes(wanted)
  return known.find(begins) ?? known.find(holds)
}

function fewestChanges(wanted: string, known: readonly string[]): string | undefined {
  let best: { name: string; distance: number } | undefined
  for (const name of known) {
    const distance = editDistance(wanted, name.toLowerCase())
    const most = Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
    if (distance <= most && (best === undefined || distance < best.distance)) best = { name, distance }
  }
  return best?.name
}

/**
 * `did you mean "X"?`, or `use one of: …` where no name is near; at most 40 names.
 *
 * @param otherwise - what to say in the place of a list, where the names are too many for one to help
 */
export function suggestName(mistyped: string, known: Iterable<string>, otherwise?: string): string {
  const names = [...known]
  const nearest = nearestName(mistyped, names)
  if (nearest !== undefined) return `did you mean "${nearest}"?`
  return otherwise ?? listNames(names)
}

/** `use one of: …`, at most 40 names. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ')
  return `use one of: ${shown}${names.length > MOST_NAMES ? ', …' : ''}`
}
