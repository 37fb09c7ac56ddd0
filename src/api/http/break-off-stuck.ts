import type { Exchange } from './exchange.ts'

/**
 * Breaks an answer off whose call has ended while its reader takes nothing any more: the writer waits for room, and would
 * wait for ever.
 *
 * @param ended - fires when the call ends before its answer is out
 * @param drainMs - how long the reader has then to make room for the end
 * @returns what is to be called once the answer is out
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
