import { waybillError } from '../../errors/waybill-error.ts'

/** Where a page of a list begins: at an entry, and on which side of it. */
export interface CutPosition {
  /** In the order of the list, or against it. */
  readonly direction: 'forward' | 'backward'
  /** Whether the entry itself belongs to the page. */
  readonly inclusive: boolean
}

/** A page, and the cursors of the pages beside it; undefined where there is none. */
export interface CutPage<T> {
  /** In the order of the list. */
  readonly entries: readonly T[]
  readonly nextCursor: string | undefined
  readonly prevCursor: string | undefined
}

/**
 * Makes a page of the entries that were found: in reading order from the position on, with up to one more than the page holds.
 *
 * @param asked - `position`: where the page begins; undefined for the first page
 * @param positionOf - the position beside an entry
 */
export function cutPage<T, P extends CutPosition>(
  found: readonly T[],
  { limit, position }: { readonly limit: number; readonly position: P | undefined },
  positionOf: (entry: T, direction: P['direction']) => P,
  cursorAt: (position: P) => string,
): CutPage<T> {
  const hasMore = found.length > limit
  const backward = position?.direction === 'backward'
  const kept = found.slice(0, limit)
  const entries = backward ? kept.toReversed() : kept
  const [first, last] = [entries.at(0), entries.at(-1)]
  if (first !== undefined && last !== undefined) {
    return {
      entries,
      // Going backward, the page that the caller came from follows.
      nextCursor: hasMore || backward ? cursorAt(positionOf(last, 'forward')) : undefined,
      prevCursor: (backward ? hasMore : position !== undefined) ? cursorAt(positionOf(first, 'backward')) : undefined,
    }
  }
  // Nothing is left on this side of the position: the only cursor leads back, and includes the entry that the position is at.
  const direction = backward ? 'forward' : 'backward'
  const back = position && cursorAt({ ...position, direction, inclusive: !position.inclusive })
  return { entries, nextCursor: backward ? back : undefined, prevCursor: backward ? undefined : back }
}

/**
 * Checks what was sent beside a cursor against what the cursor carries.
 *
 * @param names - in the order in which they are compared
 * @throws WaybillError CURSOR_MISMATCH with the first field that differs; what was not sent is taken from the cursor
 */
export function requireSame<K extends string>(
  carried: { readonly [N in K]?: unknown },
  sent: { readonly [N in K]?: unknown },
  names: readonly K[],
): void {
  const differs = (name: K) => sent[name] !== undefined && JSON.stringify(sent[name]) !== JSON.stringify(carried[name])
  const field = names.find(differs)
  if (field !== undefined) throw waybillError('CURSOR_MISMATCH', { field })
}
