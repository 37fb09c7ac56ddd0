/**
 * Lets a wallet act once at a time, from reading what it holds and has approved to its last block: otherwise the exact approval of one payment would
 * replace that of another, and the node would give two transactions the same nonce.
 */
export function createWalletQueues() {
  const ends = new Map<string, Promise<unknown>>()
  return <T>(sender: string, act: () => Promise<T>): Promise<T> => {
    const name = sender.toLowerCase()
    const acted = (ends.get(name) ?? Promise.resolve()).then(act)
    ends.set(
      name,
      acted.catch(() => undefined),
    )
    return acted
  }
}

export type Enqueue = ReturnType<typeof createWalletQueues>
