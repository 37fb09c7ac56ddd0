/**
 * Does work on each item, on at most `atOnce` of them in parallel.
 *
 * @returns the results in the order of the items
 * @throws the first failure; no further work is begun after it
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const done: R[] = []
  const queue = items.entries()
  let hasFailed = false
  const workers = Array.from({ length: atOnce }, async () => {
    for (const [place, item] of queue) {
      if (hasFailed) return
      try {
        done[place] = await work(item)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  })
  await Promise.all(workers)
  return done
}
