import { enableCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { ownCacheFolder } from './cli/compile-cache.ts'
import { endByForce, STOP_GRACE_MS } from './cli/end-by-force.ts'

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
