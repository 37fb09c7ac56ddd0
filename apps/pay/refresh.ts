import { useEffect, useState } from 'preact/hooks'

/** Asks, and says after how many milliseconds to ask again. The signal ends what is no longer wanted. */
type Ask = (signal: AbortSignal, askAgainIn: (waitMs: number) => void) => void

/**
 * Asks when something of `terms` changes, and again when the question says so, but not before somebody looks at the page.
 *
 * @returns asks again at once
 */
export function useAsking(ask: Ask, terms: readonly unknown[]): () => void {
  const [round, setRound] = useState(0)
  const askAgain = () => setRound((before) => before + 1)
  useEffect(() => {
    const left = new AbortController()
    const { signal } = left
    const whenSeen = () => {
      if (document.visibilityState === 'visible') askAgain()
      else document.addEventListener('visibilitychange', askAgain, { once: true, signal })
    }
    ask(signal, (waitMs) => {
      const timer = setTimeout(whenSeen, waitMs)
      signal.addEventListener('abort', () => clearTimeout(timer))
    })
    return () => left.abort()
  }, [...terms, round])
  return askAgain
}
