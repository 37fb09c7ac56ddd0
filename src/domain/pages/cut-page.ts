/** Where a page of a list that is ordered by time begins: at an entry, and on which side of it. */
export interface CutPosition {
  readonly direction: 'OLDER' | 'NEWER'
  /** Whether the entry itself belongs to the page. */
  readonly inclusive: boolean
}

/** A page, and the positions of the pages beside it; undefined where there is none. */
export interface CutPage<T, P> {
  /** Newest first. */
  readonly entries: readonly T[]
  readonly next: P | undefined
  readonly previous: P | undefined
}

/**
 * Makes a page of the entries that were found: in reading order from the position on, with up to one more than the page holds.
 *
 * @param position - where the page begins; undefined for the first page
 * @param positionOf - the position beside an entry
 */
export function cutPage<T, P extends CutPosition>(
  found: readonly T[],
  limit: number,
  position: P | undefined,
  positionOf: (entry: T, direction: P['direction']) => P,
): CutPage<T, P> {
  const hasMore = found.length > limit
  const backward = position?.direction === 'NEWER'
  const kept = found.slice(0, limit)
  const entries = backward ? kept.toReversed() : kept
  const [first, last] = [entries.at(0), entries.at(-1)]
  if (first === undefined || last === undefined) return emptyPage(position)
  return {
    entries,
    // Going backward, the page that the caller came from follows.
    next: hasMore || backward ? positionOf(last, 'OLDER') : undefined,
    previous: (backward ? hasMore : position !== undefined) ? positionOf(first, 'NEWER') : undefined,
  }
}

/** Nothing is left on this side of the position: the only cursor leads back, and includes the entry that the position is at. */
function emptyPage<T, P extends CutPosition>(position: P | undefined): CutPage<T, P> {
  if (position === undefined) return { entries: [], next: undefined, previous: undefined }
  const back = { ...position, inclusive: !position.inclusive }
  return position.direction === 'OLDER'
    ? { entries: [], next: undefined, previous: { ...back, direction: 'NEWER' } }
    : { entries: [], next: { ...back, direction: 'OLDER' }, previous: undefined }
}
