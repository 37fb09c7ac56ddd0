/**
 * Finds the last of `low`…`high` for which something holds, by binary search: it must hold up to some number and not above. `low` is not tried: it
 * must hold for that.
 */
export async function findLast(low: number, high: number, holds: (at: number) => Promise<boolean>): Promise<number> {
  let last = low
  let above = high + 1
  while (above - last > 1) {
    const middle = Math.floor((last + above) / 2)
    if (await holds(middle)) last = middle
    else above = middle
  }
  return last
}
