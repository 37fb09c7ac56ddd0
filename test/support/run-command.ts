import { Readable, Writable } from 'node:stream'
import { loadCommands } from '../../src/cli/commands.ts'
import { runCommandLine } from '../../src/cli/run-command-line.ts'

/** Exit code and output of a command. */
export interface CommandOutcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command in this process, as `ann@host`, with nothing on standard input. */
export async function runCommand(
  environment: Readonly<Record<string, string>>,
  words: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<CommandOutcome> {
  const written = { stdout: '', stderr: '' }
  const into = (name: keyof typeof written) =>
    new Writable({
      write(chunk, _, done) {
        written[name] += String(chunk)
        done()
      },
    })
  const code = await runCommandLine(await loadCommands(words), words, {
    environment,
    workingFolder: '/',
    stdin: Readable.from([]),
    stdout: into('stdout'),
    stderr: into('stderr'),
    actor: 'ann@host',
    signal,
    delayStop: async () => {},
  })
  return { code, ...written }
}

/** Lines of columns separated by tabs. */
export function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t'))
}
