type Labels = Readonly<Record<string, string>>

/** A figure as it is now. */
export interface Figure {
  /** As Prometheus names it: `waybill_node_calls_total`. */
  readonly name: string
  /** A counter only grows. */
  readonly kind: 'COUNTER' | 'GAUGE'
  readonly labels: Labels
  readonly value: number
}

/** Keeps figures in memory until somebody reads them. It is the meter of all rooms. */
export interface Figures {
  /** Adds to a counter. @param by - default 1 */
  count(name: string, labels: Labels, by?: number): void
  /** Sets a gauge; undefined removes it. */
  set(name: string, labels: Labels, value: number | undefined): void
  /** All figures, by name and then by labels. */
  read(): Figure[]
}

/** Figures that are left out because there are too many. */
const DROPPED = 'waybill_figures_dropped_total'

/** How many combinations of labels one name may have; beyond it new ones are dropped and counted, so that a fault in a label cannot fill the memory. */
const MAX_SETS = 1_000

export function createFigures(): Figures {
  const names = new Map<string, Map<string, Figure>>()

  function put(kind: Figure['kind'], name: string, labels: Labels, valueOf: (before: number) => number): void {
    const sets = names.get(name) ?? new Map<string, Figure>()
    names.set(name, sets)
    const key = keyOf(labels)
    const before = sets.get(key)
    if (before === undefined && sets.size >= MAX_SETS && name !== DROPPED) {
      put('COUNTER', DROPPED, { name }, (dropped) => dropped + 1)
      return
    }
    sets.set(key, { name, kind, labels, value: valueOf(before?.value ?? 0) })
  }

  return {
    count: (name, labels, by = 1) => put('COUNTER', name, labels, (before) => before + by),
    set(name, labels, value) {
      if (value === undefined) names.get(name)?.delete(keyOf(labels))
      else put('GAUGE', name, labels, () => value)
    },
    read: () => sorted(names).flatMap(([, sets]) => sorted(sets).map(([, figure]) => figure)),
  }
}

/** The same for the same labels in any order. */
function keyOf(labels: Labels): string {
  return JSON.stringify(sorted(new Map(Object.entries(labels))))
}

function sorted<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))
}
