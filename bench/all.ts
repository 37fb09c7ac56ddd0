/** Runs the benchmarks in their small forms, and prints what differs from `bench/small.json`: `npm run bench -- --help`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findDifferences, isTime, rangesOf, type SeenFigure, type StoredRanges } from './stored-ranges.ts'

const benches: Readonly<Record<string, string>> = {
  size: '--rows 40000',
  import: '--rows 20000',
  transport: '--rounds 6 --calls 200 --warm-up 3000',
  routes: '--rounds 2 --warm-up 500',
  search: '--only classes --rows 100000 --queries 32',
  detection: '--only backfill --only beside --events 5000 --blocks 200000',
  hostile: '--rounds 1 --only garbage',
  start: '--runs 1',
}
/** Of 32 searches, the slowest is chance. */
const LEFT_OUT = /^search: p(99|50\.8)\b/
const STORE_RUNS = 5
const STORED = join(import.meta.dirname, 'small.json')
const LAST_LINES = 30
const USAGE = `npm run bench -- [--store] [BENCH ...]

Runs the benchmarks in their small forms (${Object.keys(benches).join(', ')}) and prints the ratios, sizes and
counts that are not as stored in bench/small.json. The exit code is 1 if a benchmark failed, whatever the figures are.

--store   runs each ${STORE_RUNS} times and stores the least and the greatest value, wider at each end by the distance between them and 2 %`

const { isStoring, names } = readOptions()
const folder = await mkdtemp(join(tmpdir(), 'waybill-bench-'))
const failed = new Set<string>()
let running: ChildProcess | undefined
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt)
try {
  console.error(`load average ${loadavg()[0]?.toFixed(1)}: what else runs here makes the ratios vary`)
  const startedMs = performance.now()
  const runs: SeenFigure[][] = []
  while (runs.length < (isStoring ? STORE_RUNS : 1)) runs.push(await runAll())
  console.error(`all in ${secondsSince(startedMs)}`)
  if (failed.size > 0 && !isInterrupted)
    console.error(`failed: ${[...failed].join(', ')}${isStoring ? '; nothing is stored' : ''}`)
  if (!isStoring && !isInterrupted) await compare(runs.flat())
  if (isStoring && failed.size === 0) await store(runs)
} finally {
  // A database that has lost its process may still be writing.
  await rm(folder, { recursive: true, maxRetries: 20, retryDelay: 250 })
}
process.exitCode = isInterrupted ? 130 : Math.min(failed.size, 1)

function readOptions() {
  try {
    const options = { store: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } as const
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    const unknown = positionals.find((name) => !Object.hasOwn(benches, name))
    if (unknown !== undefined) throw new Error(`there is no benchmark "${unknown}"`)
    if (values.help) {
      console.log(USAGE)
      process.exit(0)
    }
    return { isStoring: values.store, names: positionals.length > 0 ? positionals : Object.keys(benches) }
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exit(2)
  }
}

/** The whole group: some benchmarks have servers. Databases and chains end with the process that started them. */
function interrupt(): void {
  const signal = isInterrupted ? 'SIGKILL' : 'SIGTERM'
  isInterrupted = true
  if (running?.pid !== undefined) process.kill(-running.pid, signal)
}

async function runAll(): Promise<SeenFigure[]> {
  const figures: SeenFigure[] = []
  for (const name of names) figures.push(...(await runBench(name)))
  return figures
}

/** @returns none where the benchmark failed */
async function runBench(name: string): Promise<SeenFigure[]> {
  if (isInterrupted) return []
  const startedMs = performance.now()
  process.stderr.write(`${name} ${benches[name]} … `)
  const file = join(folder, `${name}.json`)
  const args = ['--expose-gc', join(import.meta.dirname, `${name}.ts`), ...(benches[name] ?? '').split(' ')]
  const env = { ...process.env, BENCH_FIGURES: file, TMPDIR: folder }
  running = spawn(process.execPath, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [running.stdout, running.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(running, 'close')
  running = undefined
  console.error(`${code === 0 ? 'done' : 'ended'} in ${secondsSince(startedMs)}`)
  if (code !== 0) {
    failed.add(name)
    if (!isInterrupted) console.error(output.trimEnd().split('\n').slice(-LAST_LINES).join('\n'))
    return []
  }
  const { figures } = JSON.parse(await readFile(file, 'utf8')) as { figures: SeenFigure[] }
  return figures.map((each) => ({ ...each, name: `${name}: ${each.name}` })).filter((each) => !LEFT_OUT.test(each.name))
}

async function compare(figures: readonly SeenFigure[]): Promise<void> {
  const measured = await readStored((bench) => names.includes(bench) && !failed.has(bench))
  const differences = findDifferences(figures, measured)
  for (const { name, value, unit, target } of figures.filter((figure) => isTime(figure) && figure.target !== undefined))
    console.log(`not compared: ${name} ${value} ${unit} (target ${target})`)
  if (differences.length > 0) console.table(differences)
  const seen = figures.filter((figure) => !isTime(figure)).length
  const others = differences.filter((each) => each.seen !== undefined).length
  console.log(`${seen - others} figures as stored, ${differences.length} not`)
}

/** The ranges of benchmarks that were not asked for stay. */
async function store(runs: readonly (readonly SeenFigure[])[]): Promise<void> {
  const others = await readStored((bench) => !names.includes(bench))
  const ranges = { ...others, ...rangesOf(runs, new Date().toISOString().slice(0, 10)) }
  const lines = Object.entries(ranges).map(([name, range]) => `  ${JSON.stringify(name)}: ${JSON.stringify(range)}`)
  await writeFile(STORED, `{\n${lines.join(',\n')}\n}\n`)
  console.log(`${lines.length} ranges are in bench/small.json`)
}

async function readStored(isWanted: (bench: string) => boolean): Promise<StoredRanges> {
  const ranges = Object.entries(JSON.parse(await readFile(STORED, 'utf8')) as StoredRanges)
  return Object.fromEntries(ranges.filter(([name]) => isWanted(name.slice(0, name.indexOf(':')))))
}

function secondsSince(startedMs: number): string {
  return `${((performance.now() - startedMs) / 1_000).toFixed(0)} s`
}
