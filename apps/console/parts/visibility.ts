import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'

/** Whether the page can be seen: what is kept current rests while it cannot. */
export function useVisible(): boolean {
  return useSyncExternalStore(subscribe, () => document.visibilityState === 'visible')
}

/** Calls back when somebody comes back to the page, or the page back to the network. */
export function useReturn(onReturn: () => void): void {
  const check = useEffectEvent(() => {
    if (document.visibilityState === 'visible') onReturn()
  })
  useEffect(() => {
    const left = new AbortController()
    document.addEventListener('visibilitychange', () => check(), { signal: left.signal })
    globalThis.addEventListener('online', () => check(), { signal: left.signal })
    return () => left.abort()
  }, [])
}

function subscribe(onChange: () => void): () => void {
  document.addEventListener('visibilitychange', onChange)
  return () => document.removeEventListener('visibilitychange', onChange)
}
