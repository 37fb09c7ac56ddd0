import type { Exchange } from './exchange.ts'

/**
 * Breaks off an answer when its call has ended and its reader takes nothing: the writer would wait for space for ever.
 *
 * @param ended - aborts when the call ends before its answer is complete
 * @param drainMs - how long the reader then has to make space for the end
 * @returns to be called when the answer is complete
 */
export function breakOffStuck(exchange: Exchange, ended: AbortSignal, drainMs: number): () => void {
  let timer: NodeJS.Timeout | undefined
  const onEnded = () => {
    timer = setTimeout(exchange.abandon, drainMs)
  }
  if (ended.aborted) onEnded()
  else ended.addEventListener('abort', onEnded, { once: true })
  return () => {
    ended.removeEventListener('abort', onEnded)
    clearTimeout(timer)
  }
}
