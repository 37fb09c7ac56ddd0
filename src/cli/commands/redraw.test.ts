import { Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { redraw, type Terminal } from './chains-command.ts'

/** A terminal that remembers what was written; `columns` is its width. */
function openTerminal() {
  let screen = ''
  const stream = new Writable({
    write(chunk, _, done) {
      screen += String(chunk)
      done()
    },
  })
  const terminal = Object.assign(stream, { isTTY: true, columns: 80, rows: 24 }) satisfies Terminal
  return { terminal, drawn: () => screen.split('\x1b[H').slice(1), screen: () => screen }
}

it('draws over what it drew before, and again at once when the terminal changes its size', async () => {
  const { terminal, drawn, screen } = openTerminal()
  const ending = new AbortController()
  let reads = 0
  await redraw(terminal, {
    everyMs: 1,
    signal: ending.signal,
    async read() {
      reads++
      if (reads === 2) {
        terminal.columns = 40
        terminal.emit('resize')
        ending.abort()
      }
      return reads
    },
    draw: (shown) => [`read ${shown}`, `width ${terminal.columns}`],
  })
  expect(drawn()).toEqual([
    'read 1\x1b[K\r\nwidth 80\x1b[K\x1b[J\x1b[2J',
    'read 1\x1b[K\r\nwidth 40\x1b[K\x1b[J',
    'read 2\x1b[K\r\nwidth 40\x1b[K\x1b[J\r\n\x1b[?25h',
  ])
  expect(screen().startsWith('\x1b[?25l\x1b[2J')).toBe(true)
  expect(terminal.listenerCount('resize')).toBe(0)
})

it('shows the cursor again when reading fails', async () => {
  const { terminal, screen } = openTerminal()
  const failing = redraw(terminal, {
    everyMs: 1,
    signal: new AbortController().signal,
    read: () => Promise.reject(new Error('the database is gone')),
    draw: () => [],
  })
  await expect(failing).rejects.toThrow('the database is gone')
  expect(screen().endsWith('\x1b[?25h')).toBe(true)
})
