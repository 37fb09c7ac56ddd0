/** Suggestions for mistyped names. The cost of a suggestion is bounded, however many names there are and however long they are. */

/** A longer name gets no suggestion. */
const MAX_NAME_LENGTH = 64

/** The most letters between the first and the last edit: those of one number. */
const MAX_LETTERS = 32

/** The most names in a list. */
const MAX_LISTED_NAMES = 40

/** How many known names are compared. An account may have imported more. */
const MAX_CANDIDATES = 10_000

/**
 * The known name nearest to a mistyped one, case ignored: a name that begins with it or contains it (`from` → `fromDate`), else the name
 * with the fewest edits.
 *
 * @returns undefined when more than a third of the longer name would have to change
 */
export function findNearestName(mistyped: string, known: readonly string[]): string | undefined {
  if (mistyped === '' || mistyped.length > MAX_NAME_LENGTH) return undefined
  const wanted = mistyped.toLowerCase()
  const lower = known.map((name) => name.toLowerCase())
  const at = findContaining(wanted, lower) ?? findFewestEdits(wanted, lower)
  return at === undefined ? undefined : known[at]
}

/** @returns the place of the first name that begins with the wanted one, else of the first that contains it */
function findContaining(wanted: string, names: readonly string[]): number | undefined {
  const begins = wanted.length < 2 ? -1 : names.findIndex((name) => name.startsWith(wanted))
  if (begins >= 0) return begins
  const holds = wanted.length < 4 ? -1 : names.findIndex((name) => name.includes(wanted))
  return holds < 0 ? undefined : holds
}

/** @returns the place of the first name with the fewest edits */
function findFewestEdits(wanted: string, names: readonly string[]): number | undefined {
  let best: number | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const [at, name] of names.entries()) {
    const allowed = Math.min(maxEdits(wanted, name), fewest - 1)
    if (Math.abs(name.length - wanted.length) > allowed) continue
    const edits = countEdits(wanted, name)
    if (edits > allowed) continue
    best = at
    fewest = edits
  }
  return best
}

/** At most a third of the longer name may be wrong. */
function maxEdits(wanted: string, name: string): number {
  return Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3))
}

/**
 * Counts the edits between two names: letters to insert, delete, change, or swap with their neighbour (optimal string alignment). A letter of the
 * name is compared with all wanted ones at once, as the bits of a number.
 *
 * @returns infinity where the edits are too far apart
 * @see Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances"
 */
function countEdits(wanted: string, name: string): number {
  const shorter = Math.min(wanted.length, name.length)
  let start = 0
  while (start < shorter && wanted[start] === name[start]) start += 1
  let same = 0
  while (same < shorter - start && wanted.at(-1 - same) === name.at(-1 - same)) same += 1
  const count = wanted.length - start - same
  if (count > MAX_LETTERS) return Number.POSITIVE_INFINITY
  if (count === 0) return name.length - start - same
  const places = new Map<string, number>()
  for (let i = 0; i < count; i++) {
    const letter = wanted.charAt(start + i)
    places.set(letter, (places.get(letter) ?? 0) | (1 << i))
  }
  const last = 1 << (count - 1)
  let edits = count
  // Of the table's column: where it is one more, and one less, than the place above; where the diagonal costs nothing; where the letters are equal.
  let [more, less, free, before] = [-1, 0, 0, 0]
  for (let j = start; j < name.length - same; j++) {
    const equal = places.get(name.charAt(j)) ?? 0
    const swapped = ((~free & equal) << 1) & before
    free = (((equal & more) + more) ^ more) | equal | less | swapped
    const dearer = less | ~(free | more)
    const cheaper = free & more
    if (dearer & last) edits += 1
    if (cheaper & last) edits -= 1
    const shifted = (dearer << 1) | 1
    more = (cheaper << 1) | ~(free | shifted)
    less = shifted & free
    before = equal
  }
  return edits
}

/**
 * `did you mean "X"?`, or `use one of: …` where no name is near; at most 40 names.
 *
 * @param known - may repeat names; only the first 10,000 are compared
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
