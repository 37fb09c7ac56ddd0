import { useSyncExternalStore } from 'react'

/** How long words stay; the same words said again after that are read out again. */
const SAID_MS = 1_500

let words = ''
let ending: ReturnType<typeof setTimeout> | undefined
const listeners = new Set<() => void>()

/** Has a screen reader say something that the eye sees elsewhere. */
export function announce(said: string): void {
  clearTimeout(ending)
  say(said)
  ending = setTimeout(() => say(''), SAID_MS)
}

function say(said: string): void {
  words = said
  for (const listener of listeners) listener()
}

function subscribe(onChange: () => void): () => void {
  listeners.add(onChange)
  return () => listeners.delete(onChange)
}

/** What is announced. One stands in a page: a status of its own beside each of a hundred addresses makes a list slow. */
export function Announcer() {
  return (
    <span className="unseen" role="status">
      {useSyncExternalStore(subscribe, () => words)}
    </span>
  )
}
