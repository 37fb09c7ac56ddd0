import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a terminal has beside a stream; absent where the output is a file or a pipe. */
export interface Terminal extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const CLEAR = '\x1b[2J'
const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

/**
 * Draws a page in place, again and again, until the signal fires; also at once when the terminal changes its size.
 *
 * @param read - reads what is shown
 * @param draw - makes the lines of it; called again for a new size
 * @throws what `read` throws, with the cursor shown again
 */
export async function redraw<T>(
  terminal: Terminal,
  {
    everyMs,
    signal,
    read,
    draw,
  }: {
    readonly everyMs: number
    readonly signal: AbortSignal
    readonly read: () => Promise<T>
    readonly draw: (shown: T) => readonly string[]
  },
): Promise<void> {
  let shown: T | undefined
  const write = () => {
    if (shown === undefined) return
    // The last line has no line break: at the bottom of the window it would scroll.
    const lines = draw(shown).map((line) => `${line}${CLEAR_LINE}`)
    terminal.write(`${HOME}${lines.join('\r\n')}${CLEAR_BELOW}`)
  }
  const onResize = () => {
    terminal.write(CLEAR)
    write()
  }
  terminal.on('resize', onResize)
  terminal.write(`${HIDE_CURSOR}${CLEAR}`)
  try {
    while (!signal.aborted) {
      shown = await read()
      write()
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  } finally {
    terminal.off('resize', onResize)
    terminal.write(`\r\n${SHOW_CURSOR}`)
  }
}
