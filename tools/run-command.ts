/** The type of a check, and checks that run a command; used by tools/check.ts. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'

/** The project's root folder, in which every check runs. */
export const root = resolve(import.meta.dirname, '..')

/** `output` is the text to show after a failure, or the reason of a skip. */
export type CheckResult = { readonly outcome: 'ok' | 'failed' | 'skipped'; readonly output: string }

export type Check = { readonly name: string; readonly run: () => Promise<CheckResult> }

/**
 * Runs a command in the project's root or another folder, without input or colours.
 *
 * @returns ok when it ended with exit code 0; its standard output and error as they came. Output above 16 MB is cut
 */
export function runCommand(file: string, args: readonly string[], folder: string = root): Promise<CheckResult> {
  return new Promise((done) => {
    const child = spawn(file, args, {
      cwd: folder,
      env: { ...process.env, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const append = (chunk: string) => {
      if (output.length < 1 << 24) output += chunk
    }
    child.stdout.setEncoding('utf8').on('data', append)
    child.stderr.setEncoding('utf8').on('data', append)
    child.on('error', (error) => done({ outcome: 'failed', output: `${file} does not start: ${error.message}` }))
    child.on('close', (code, signal) => {
      const ended = code === 0 ? '' : `${file} ended with ${signal ?? `exit code ${code}`}\n`
      done({ outcome: code === 0 ? 'ok' : 'failed', output: output + ended })
    })
  })
}

/** @returns what git printed, trimmed, or undefined when it failed */
export async function readGit(folder: string, ...args: string[]): Promise<string | undefined> {
  const { outcome, output } = await runCommand('git', args, folder)
  return outcome === 'ok' ? output.trim() : undefined
}
