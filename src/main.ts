import { enableCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { ownCacheFolder } from './cli/compile-cache.ts'
import { listenForStop } from './cli/stop-signals.ts'

// V8 lets old objects grow to several times what is in use before it collects them; this keeps a long export from growing the process.
setFlagsFromString('--heap-growing-percent=50')

const stop = listenForStop()

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
  ...stop,
})

// The command has ended what it began, and its output has left. What a library has left open, such as the retries of exports over OTLP, keeps the
// process no longer.
const leave = (stream: NodeJS.WriteStream) => new Promise<unknown>((done) => stream.write('', done))
await Promise.all([leave(process.stdout), leave(process.stderr)])
setTimeout(() => process.exit(), 100).unref()
