/**
 * Shares answers among those who ask at the same time, but only ones that were asked for after they came: what is true then is
 * true of all that they did before.
 */
export function createAskAfresh<T>(ask: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined
  let next: Promise<T> | undefined

  async function begin(after: Promise<unknown> | undefined): Promise<T> {
    await after?.catch(() => {})
    next = undefined
    const asking = ask()
    running = asking
    try {
      return await asking
    } finally {
      if (running === asking) running = undefined
    }
  }

  return () => {
    if (next !== undefined) return next
    if (running === undefined) return begin(undefined)
    next = begin(running)
    return next
  }
}
