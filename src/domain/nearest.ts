/** Suggestions for mistyped names. The cost of a suggestion is bounded, however many names there are and however long they are. */

/** A longer name gets no suggestion. */
const MAX_NAME_LENGTH = 64

/** The most names in a list. */
const MAX_LISTED_NAMES = 40

/** How many known names are compared. An account may have imported more. */
const MAX_CANDIDATES = 20_000

/** Cells of edit-distance tables that may be computed without looking at the time: enough for all configured or built-in names. */
const UNTIMED_CELLS = 50_000

/** The most cells, and the most time from the beginning, once the untimed cells are used up. */
const MAX_CELLS = 400_000
const MAX_MS = 8

/** The most edits in the first pass over all names. With so few, most names are rejected after a few letters. */
const FIRST_LIMIT = 2

/**
 * The known name nearest to a mistyped one, case ignored: a name that begins with it or contains it (`from` → `fromDate`), else the name
 * with the fewest edits.
 *
 * @returns undefined when more than a third of the longer name would have to change
 */
export function findNearestName(mistyped: string, known: readonly string[]): string | undefined {
  if (mistyped === '' || mistyped.length > MAX_NAME_LENGTH) return undefined
  const endMs = performance.now() + MAX_MS
  const wanted = mistyped.toLowerCase()
  const lower = known.map((name) => name.toLowerCase())
  const at = findContaining(wanted, lower) ?? findFewestEdits(wanted, lower, endMs)
  return at === undefined ? undefined : known[at]
}

/** @returns the place of the first name that begins with the wanted one, else of the first that contains it */
function findContaining(wanted: string, names: readonly string[]): number | undefined {
  const begins = wanted.length < 2 ? -1 : names.findIndex((name) => name.startsWith(wanted))
  if (begins >= 0) return begins
  const holds = wanted.length < 4 ? -1 : names.findIndex((name) => name.includes(wanted))
  return holds < 0 ? undefined : holds
}

/**
 * The place of the first name with the fewest edits. Each pass compares all names with a higher limit of edits, so a near name is found
 * wherever it is in the list, and the allowed work runs out on distant names only.
 */
function findFewestEdits(wanted: string, names: readonly string[], endMs: number): number | undefined {
  const countEdits = createCountEdits(wanted, endMs)
  for (let limit = FIRST_LIMIT; ; limit *= 2) {
    let best: number | undefined
    let fewest = limit + 1
    for (let at = 0; at < names.length; at++) {
      const name = names[at] as string
      const allowed = Math.min(maxEdits(wanted, name), fewest - 1)
      const edits = countEdits(name, allowed)
      if (edits === undefined) return best
      if (edits > allowed) continue
      best = at
      fewest = edits
    }
    // A near name is at most one and a half times as long as the wanted one, and a third of that is half of the wanted letters.
    if (best !== undefined || limit > wanted.length / 2) return best
  }
}

/** At most a third of the longer name may be wrong. */
function maxEdits(wanted: string, name: string): number {
  return Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
}

/**
 * Creates a function that counts the edits between the wanted name and another: characters to insert, delete, change, or swap with their
 * neighbour (optimal string alignment).
 *
 * @returns a function that returns the edits, or any number above the limit when there are more, or undefined when the allowed work is used up
 */
function createCountEdits(wanted: string, endMs: number): (name: string, limit: number) => number | undefined {
  const letters = new Uint16Array(wanted.length)
  for (let j = 0; j < wanted.length; j++) letters[j] = wanted.charCodeAt(j)
  const rows = [0, 1, 2].map(() => new Int32Array(wanted.length + 2)) as [Int32Array, Int32Array, Int32Array]
  let [beforePrevious, previous, current] = rows
  let cells = 0

  /**
   * Computes only the cells near the diagonal, and stops at the row where the limit is exceeded.
   *
   * @param start - how many letters are equal at the beginning
   * @param same - how many of the others are equal at the end
   * @param limit - at least the difference in length
   */
  function compare(name: string, start: number, same: number, limit: number): number {
    const width = letters.length - start - same
    const height = name.length - start - same
    const beyond = limit + 1
    let leastOfPrevious = 0
    for (let j = 0; j <= width; j++) previous[j] = j
    for (let i = 1; i <= height; i++) {
      const from = Math.max(1, i - limit)
      const to = Math.min(width, i + limit)
      cells += to - from + 1
      // The next rows read the cells beside the band.
      let before = from === 1 ? i : beyond
      current[from - 1] = before
      current[to + 1] = beyond
      let least = before
      let diagonal = previous[from - 1] as number
      const letter = name.charCodeAt(start + i - 1)
      const letterBefore = i > 1 ? name.charCodeAt(start + i - 2) : -1
      for (let j = from; j <= to; j++) {
        const above = previous[j] as number
        const wantedLetter = letters[start + j - 1]
        let edits = diagonal
        if (wantedLetter !== letter) {
          edits = Math.min(diagonal, above, before) + 1
          if (wantedLetter === letterBefore && j > 1 && letters[start + j - 2] === letter) {
            edits = Math.min(edits, (beforePrevious[j - 2] as number) + 1)
          }
        }
        current[j] = edits
        diagonal = above
        before = edits
        if (edits < least) least = edits
      }
      // A swap looks back two rows.
      if (least > limit && leastOfPrevious >= limit) return beyond
      leastOfPrevious = least
      ;[beforePrevious, previous, current] = [previous, current, beforePrevious]
    }
    return previous[width] as number
  }

  return (name, limit) => {
    if (limit < 0 || Math.abs(name.length - wanted.length) > limit) return limit + 1
    if (cells > UNTIMED_CELLS && (cells > MAX_CELLS || performance.now() > endMs)) return undefined
    const shorter = Math.min(wanted.length, name.length)
    let start = 0
    while (start < shorter && letters[start] === name.charCodeAt(start)) start += 1
    let same = 0
    while (same < shorter - start && letters[wanted.length - 1 - same] === name.charCodeAt(name.length - 1 - same)) {
      same += 1
    }
    return compare(name, start, same, limit)
  }
}

/**
 * `did you mean "X"?`, or `use one of: …` where no name is near; at most 40 names.
 *
 * @param known - may repeat names; only the first 20,000 are compared
 * @param otherwise - the text in place of the list, where a list of so many names would not help
 */
export function suggestName(mistyped: string, known: Iterable<string>, otherwise?: string): string {
  const names = firstOf(known, MAX_CANDIDATES)
  const nearest = findNearestName(mistyped, names)
  if (nearest !== undefined) return `did you mean "${nearest}"?`
  return otherwise ?? listNames([...new Set(names)])
}

/** `use one of: …`, at most 40 names; the others are counted. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED_NAMES).join(', ')
  const others = names.length - MAX_LISTED_NAMES
  return `use one of: ${shown}${others > 0 ? ` and ${others} more` : ''}`
}

/** The names of several sources, one source after the other, without copying them. */
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
