import { readdirSync, readFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { ownCacheFolder } from './cli/compile-cache.ts'

// V8 lets old objects grow to several times what is in use before it collects them; this keeps a long export from growing the process.
setFlagsFromString('--heap-growing-percent=50')

const stopping = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // The second signal ends the process at once.
    if (stopping.signal.aborted) endByForce(130)
    stopping.abort(new Error(`stopped by ${signal}`))
    setTimeout(() => {
      process.stderr.write(
        `waybill: the stop took longer than ${STOP_GRACE_MS / 1000} s: ending what is left by force\n`,
      )
      endByForce(1)
    }, STOP_GRACE_MS).unref()
  })
}

// A closed output must not end the service.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const compileCache = ownCacheFolder()
if (compileCache !== undefined) enableCompileCache(compileCache)

// Imported only now, since modules that were loaded before do not come from the cache.
const words = process.argv.slice(2)
const [commands, { currentActor, runCommandLine }] = await Promise.all([
  import('./cli/commands.ts').then(({ loadCommands }) => loadCommands(words)),
  import('./cli/run-command-line.ts'),
])

process.exitCode = await runCommandLine(commands, words, {
  environment: process.env,
  workingFolder: process.cwd(),
  // A getter, since an open standard input would keep the process alive.
  get stdin() {
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  actor: currentActor(),
  signal: stopping.signal,
})

/** How long a stop may take in all, in milliseconds: calls in flight have half of it. Less than the 30 s after which most supervisors kill. */
const STOP_GRACE_MS = 20_000

/**
 * Ends this process and those that it started at once. A database server recovers at its next start; a chain of the demo continues from its last
 * saved block.
 */
function endByForce(exitCode: number): never {
  for (const pid of descendantsOf(process.pid)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
  process.exit(exitCode)
}

/** Empty where there is no /proc: servers are started on Linux alone. */
function descendantsOf(pid: number): readonly number[] {
  try {
    const tasks = `/proc/${pid}/task`
    const children = readdirSync(tasks).flatMap((task) => numbersIn(readFileSync(`${tasks}/${task}/children`, 'utf8')))
    return children.flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return []
  }
}

function numbersIn(text: string): readonly number[] {
  return text.split(' ').filter(Boolean).map(Number)
}
