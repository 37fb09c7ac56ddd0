/** Calls back after a time, and not before somebody looks at the page. */
export function whenSeen(waitMs: number, signal: AbortSignal, callBack: () => void): void {
  const timer = setTimeout(() => {
    if (document.visibilityState === 'visible') callBack()
    else document.addEventListener('visibilitychange', callBack, { once: true, signal })
  }, waitMs)
  signal.addEventListener('abort', () => clearTimeout(timer))
}
