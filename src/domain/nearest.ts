/** Suggestions for mistyped names. What a look costs is bounded, however many names are known and however long they are. */

/** A mistyped name longer than this gets no suggestion. */
const LONGEST_NAME = 64

/** The most names that a list shows. */
const MOST_NAMES = 40

/** How many known names are looked at; what an account imported may be more. */
const MOST_CANDIDATES = 20_000

/** Cells of tables of edit distance that a look may always compute: enough for every table of configured or built-in names. */
const SURE_CELLS = 50_000

/** Beyond them it goes on up to so many, and so many milliseconds from its beginning. */
const MOST_CELLS = 400_000
const MOST_MS = 8

/** How many edits the first pass over all names looks for. Most names are refused after a few letters then. */
const FIRST_LIMIT = 2

/**
 * The known name nearest to a mistyped one, case ignored: one that begins with it or holds it (`from` → `fromDate`), else the one
 * with the fewest characters to change.
 *
 * @returns undefined when none is near: more than a third of the longer name would have to change
 */
export function findNearestName(mistyped: string, known: readonly string[]): string | undefined {
  if (mistyped === '' || mistyped.length > LONGEST_NAME) return undefined
  const endMs = performance.now() + MOST_MS
  const wanted = mistyped.toLowerCase()
  const lower = known.map((name) => name.toLowerCase())
  const at = findHolder(wanted, lower) ?? findFewestChanges(wanted, lower, endMs)
  return at === undefined ? undefined : known[at]
}

/** @returns the place of the first that begins with the wanted name, else of the first that holds it */
function findHolder(wanted: string, names: readonly string[]): number | undefined {
  const begins = wanted.length < 2 ? -1 : names.findIndex((name) => name.startsWith(wanted))
  if (begins >= 0) return begins
  const holds = wanted.length < 4 ? -1 : names.findIndex((name) => name.includes(wanted))
  return holds < 0 ? undefined : holds
}

/**
 * The place of the first name with the fewest changes. All names are looked at for few changes before any is for more: a name that is near
 * is found wherever it stands, and the work runs out, if at all, over names that are far off.
 */
function findFewestChanges(wanted: string, names: readonly string[], endMs: number): number | undefined {
  const countEdits = createCountEdits(wanted, endMs)
  for (let limit = FIRST_LIMIT; ; limit *= 2) {
    let best: number | undefined
    let fewest = limit + 1
    for (let at = 0; at < names.length; at++) {
      const name = names[at] as string
      const allowed = Math.min(mostChanges(wanted, name), fewest - 1)
      const edits = countEdits(name, allowed)
      if (edits === undefined) return best
      if (edits > allowed) continue
      best = at
      fewest = edits
    }
    // No name is half as long again as what is wanted, and near.
    if (best !== undefined || limit > wanted.length / 2) return best
  }
}

/** A third of the longer name may be wrong. */
function mostChanges(wanted: string, name: string): number {
  return Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
}

/**
 * Makes what counts the single characters to insert, drop, change, or swap with their neighbour, to make another text of one (optimal
 * string alignment).
 *
 * @returns the edits; a number above the limit where they are more; undefined when the allowed work is used up
 */
function createCountEdits(wanted: string, endMs: number): (name: string, limit: number) => number | undefined {
  const letters = new Uint16Array(wanted.length)
  for (let j = 0; j < wanted.length; j++) letters[j] = wanted.charCodeAt(j)
  const rows = [0, 1, 2].map(() => new Int32Array(wanted.length + 2)) as [Int32Array, Int32Array, Int32Array]
  let cells = 0
  return (name, limit) => {
    if (limit < 0 || Math.abs(name.length - wanted.length) > limit) return limit + 1
    if (cells > SURE_CELLS && (cells > MOST_CELLS || performance.now() > endMs)) return undefined
    const shorter = Math.min(wanted.length, name.length)
    let start = 0
    while (start < shorter && letters[start] === name.charCodeAt(start)) start += 1
    let same = 0
    while (same < shorter - start && letters[wanted.length - 1 - same] === name.charCodeAt(name.length - 1 - same)) {
      same += 1
    }
    const counted = compare({ letters, name, start, same, limit, rows })
    cells += counted.cells
    return counted.edits
  }
}

interface Compared {
  readonly letters: Uint16Array
  readonly name: string
  /** How many letters are equal at the beginning and, behind those, at the end. */
  readonly start: number
  readonly same: number
  /** At least the difference of the lengths. */
  readonly limit: number
  /** To work in; each with room for two more than the letters. */
  readonly rows: readonly [Int32Array, Int32Array, Int32Array]
}

interface Counted {
  readonly edits: number
  readonly cells: number
}

/** Only cells near the diagonal are computed, and no more rows once the limit is passed. */
function compare({ letters, name, start, same, limit, rows }: Compared): Counted {
  const width = letters.length - start - same
  const height = name.length - start - same
  const beyond = limit + 1
  let [beforePrevious, previous, current] = rows
  let leastOfPrevious = 0
  let cells = 0
  for (let j = 0; j <= width; j++) previous[j] = j
  for (let i = 1; i <= height; i++) {
    const from = Math.max(1, i - limit)
    const to = Math.min(width, i + limit)
    cells += to - from + 1
    // What stands beside the band is read by the next rows.
    let before = from === 1 ? i : beyond
    current[from - 1] = before
    current[to + 1] = beyond
    let least = before
    let diagonal = previous[from - 1] as number
    const letter = name.charCodeAt(start + i - 1)
    const letterBefore = i > 1 ? name.charCodeAt(start + i - 2) : -1
    for (let j = from; j <= to; j++) {
      const above = previous[j] as number
      const wanted = letters[start + j - 1]
      let edits = diagonal
      if (wanted !== letter) {
        edits = Math.min(diagonal, above, before) + 1
        if (wanted === letterBefore && j > 1 && letters[start + j - 2] === letter) {
          edits = Math.min(edits, (beforePrevious[j - 2] as number) + 1)
        }
      }
      current[j] = edits
      diagonal = above
      before = edits
      if (edits < least) least = edits
    }
    // A swap reaches back over one row.
    if (least > limit && leastOfPrevious >= limit) return { edits: beyond, cells }
    leastOfPrevious = least
    ;[beforePrevious, previous, current] = [previous, current, beforePrevious]
  }
  return { edits: previous[width] as number, cells }
}

/**
 * `did you mean "X"?`, or `use one of: …` where no name is near; at most 40 names.
 *
 * @param known - may repeat names; of very many only the first 20,000 are looked at
 * @param otherwise - what to say in the place of a list, where the names are too many for one to help
 */
export function suggestName(mistyped: string, known: Iterable<string>, otherwise?: string): string {
  const names = firstOf(known, MOST_CANDIDATES)
  const nearest = findNearestName(mistyped, names)
  if (nearest !== undefined) return `did you mean "${nearest}"?`
  return otherwise ?? listNames([...new Set(names)])
}

/** `use one of: …`, at most 40 names. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ')
  return `use one of: ${shown}${names.length > MOST_NAMES ? ', …' : ''}`
}

/** Names of several sources, one source after the other and without a copy of them. */
export function* namesOf(...sources: readonly Iterable<string>[]): Generator<string> {
  for (const names of sources) yield* names
}

function firstOf(names: Iterable<string>, count: number): readonly string[] {
  const first: string[] = []
  for (const name of names) {
    if (first.length === count) break
    first.push(name)
  }
  return first
}
