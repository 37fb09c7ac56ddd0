/** Deliveries of a process at once. Each holds a connection. */
const MAX_AT_ONCE = 256

/** Deliveries to one endpoint at once. */
const MAX_OF_ENDPOINT = 8

export type Slots = ReturnType<typeof createSlots>

/** Shares the deliveries that a process makes at once among its endpoints, so that slow ones never take all. */
export function createSlots() {
  const waiting: (() => void)[] = []
  let free = MAX_AT_ONCE
  let endpoints = 0
  return {
    /** Takes part. @returns leaves */
    join(): () => void {
      endpoints += 1
      return () => {
        endpoints -= 1
      }
    },
    /** How many deliveries an endpoint may have under way. */
    limit: (): number => Math.max(1, Math.min(MAX_OF_ENDPOINT, Math.floor(MAX_AT_ONCE / Math.max(1, endpoints)))),
    /** Does a delivery when a slot is free. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) free += 1
        else next()
      }
    },
  }
}
