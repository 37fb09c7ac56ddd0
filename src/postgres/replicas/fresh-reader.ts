/**
 * Shares one read among callers, but only a read that began after the caller came, so that its result reflects everything the caller did
 * before. Callers that come while a read runs share the next one.
 */
export function createFreshReader<T>(ask: () => Promise<T>): () => Promise<T> {
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
