import { useEffect, useRef, useSyncExternalStore } from 'react'

/** Whether the page can be seen: what is kept current rests while it cannot. */
export function useVisible(): boolean {
  return useSyncExternalStore(subscribe, () => document.visibilityState === 'visible')
}

/** Calls back when somebody comes back to the page, or the page back to the network. */
export function useReturn(onReturn: () => void): void {
  const latest = useRef(onReturn)
  useEffect(() => {
    latest.current = onReturn
  })
  useEffect(() => {
    const look = () => {
      if (document.visibilityState === 'visible') latest.current()
    }
    globalThis.addEventListener('online', look)
    const unsubscribe = subscribe(look)
    return () => {
      unsubscribe()
      globalThis.removeEventListener('online', look)
    }
  }, [])
}

function subscribe(onChange: () => void): () => void {
  document.addEventListener('visibilitychange', onChange)
  return () => document.removeEventListener('visibilitychange', onChange)
}
