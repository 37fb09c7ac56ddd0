/** How long words stay; the same words said again after that are read out again. */
const SAID_MS = 1_500

let ending: ReturnType<typeof setTimeout> | undefined

/** Has a screen reader say something that the eye sees elsewhere. */
export function announce(said: string): void {
  const status = document.getElementById('said')
  if (status === null) return
  status.textContent = said
  clearTimeout(ending)
  ending = setTimeout(() => status.replaceChildren(), SAID_MS)
}

/** What is announced. One stands in a page: a status of its own beside each of a hundred addresses makes a list slow. */
export const Announcer = () => <span id="said" className="unseen" role="status" />
