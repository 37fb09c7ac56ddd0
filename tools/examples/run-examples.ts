/**
 * Generates, builds and runs the programs and tests of examples/ against a demo that it starts, and checks what each prints. Each runs in a copy
 * in a temporary folder, with the protos that `npm run protos:export` writes there.
 *
 *   npm run examples                 all
 *   npm run examples -- go python    those named
 *
 * An example whose toolchain is missing is skipped, and the table says what is missing. Exit code 1 when an example fails.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { root } from '../run-command.ts'

type Outcome = { readonly name: string; readonly outcome: 'ok' | 'failed' | 'skipped'; readonly note: string }

/** What every example must print, whatever its language. */
const EXPECTED = [
  /^route REQUEST_NETWORK_PAYMENT costs \d+\.\d+ USDC-ETHEREUM$/m,
  /^found (?!100 )\d{3,} payments$/m, // more than one page of 100
  /^change HEARTBEAT\b[^]*^watched$/m, // the first event says that the watch has begun
  // The watch of a request has reported its state, then a change that came while it was open.
  /^created (0x[0-9a-f]{16})\b[^]*^followed \1 OPEN$\s^followed \1 cancelled$/m,
  /^error \w+ MISSING_FIELD$/m,
  /^violation payee: /m,
]
/** A command that succeeds where the toolchain of an example is installed. */
const TOOLCHAINS: Readonly<Record<string, readonly string[]>> = {
  go: ['go', 'version'],
  python: ['python3', '-m', 'venv', '--help'],
  java: ['mvn', '--version'],
  typescript: ['npm', '--version'],
}

const folder = mkdtempSync(join(tmpdir(), 'waybill-examples-'))
const ready = join(folder, 'data/demo.json')
const known = readdirSync(join(root, 'examples'), { withFileTypes: true })
const all = known.filter((entry) => entry.isDirectory()).map(({ name }) => name)
const named = process.argv.slice(2)
const unknown = named.filter((name) => !all.includes(name))
if (unknown.length > 0) throw new Error(`no example ${unknown.join(', ')}; there are ${all.join(', ')}`)
let demo: ChildProcess | undefined
try {
  demo = await startDemo()
  const outcomes = (named.length > 0 ? named : all).map(tryExample)
  console.table(outcomes)
  if (outcomes.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1
} finally {
  if (demo?.exitCode === null && demo.kill('SIGTERM')) await once(demo, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

function tryExample(name: string): Outcome {
  const [command = '', ...args] = TOOLCHAINS[name] ?? []
  if (spawnSync(command, args).status !== 0) {
    return { name, outcome: 'skipped', note: `'${[command, ...args].join(' ')}' does not run here` }
  }
  const copy = join(folder, name)
  cpSync(join(root, 'examples', name), copy, { recursive: true })
  const exported = spawnSync('npm', ['run', '-s', 'protos:export', '--', join(copy, 'protos')], {
    cwd: root,
    encoding: 'utf8',
  })
  if (exported.status !== 0) return { name, outcome: 'failed', note: exported.stderr }
  const env = {
    ...process.env,
    WAYBILL_HOST: new URL((JSON.parse(readFileSync(ready, 'utf8')) as { baseUrl: string }).baseUrl).host,
    WAYBILL_KEY: 'demo',
    WAYBILL_DEMO: ready,
  }
  const started = Date.now()
  const { status, stdout, stderr } = spawnSync('sh', ['run.sh'], { cwd: copy, env, encoding: 'utf8', timeout: 600_000 })
  // Maven writes codes of colours before the first line.
  const printed = stripVTControlCharacters(stdout)
  const missing = EXPECTED.filter((line) => !line.test(printed))
  if (status === 0 && missing.length === 0) {
    return { name, outcome: 'ok', note: `${Math.round((Date.now() - started) / 1000)} s` }
  }
  console.error(`${name}\n${stdout}\n${stderr}`)
  return { name, outcome: 'failed', note: status === 0 ? `did not print ${missing.join(' ')}` : `exit code ${status}` }
}

/** @returns the demo once it answers */
async function startDemo(): Promise<ChildProcess> {
  const env = { ...process.env, PORT: '0', DATA_DIR: join(folder, 'data') }
  const child = spawn(process.execPath, ['src/main.ts', 'serve', '--quiet'], { cwd: root, env, stdio: 'ignore' })
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`the demo ended with exit code ${child.exitCode}`)
    if (existsSync(ready)) return child
    await new Promise((done) => setTimeout(done, 200))
  }
  child.kill('SIGTERM')
  throw new Error('the demo was not ready after two minutes')
}
