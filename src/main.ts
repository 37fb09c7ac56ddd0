import { currentActor } from './cli/actor.ts'
import { commands } from './cli/commands.ts'
import { runCommandLine } from './cli/run-command-line.ts'

const stopping = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // A second one means it: the default way, at once.
    if (stopping.signal.aborted) process.exit(130)
    stopping.abort(new Error(`stopped by ${signal}`))
  })
}

// Whoever reads the output may stop reading; that ends no service, and there is nobody left to tell.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exitCode = await runCommandLine(commands, process.argv.slice(2), {
  environment: process.env,
  workingFolder: process.cwd(),
  // Made when it is asked for: an open standard input would keep the process.
  get stdin() {
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  actor: currentActor(),
  signal: stopping.signal,
})
