/**
 * Measures how long a newcomer waits from `npm start` to the answer of the first curl line that it prints, with the time of npm. Each run
 * starts twice on one new folder: first empty, then with the data of the first start.
 *
 *   npm run bench:start -- [--runs N]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { median, report } from './report.ts'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' } } })
const RUNS = Number(values.runs)
const ROOT = resolve(import.meta.dirname, '..')
const CURL_LINE = /^ {2}curl -s -H '(?<name>[^:]+): (?<value>[^']+)' '(?<url>[^']+)'$/m

const first: number[] = []
const again: number[] = []
for (let run = 1; run <= RUNS; run++) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-start-'))
  try {
    first.push(await measureStart(join(folder, 'data')))
    again.push(await measureStart(join(folder, 'data')))
  } finally {
    await rm(folder, { recursive: true })
  }
  console.error(`run ${run} of ${RUNS}: ${first.at(-1)?.toFixed(0)} ms, again ${again.at(-1)?.toFixed(0)} ms`)
}
await report('start', [
  { name: 'start.ms', value: median(first), unit: 'ms', target: { atMost: 5_000 } },
  { name: 'start.again.ms', value: median(again), unit: 'ms' },
])

/** @returns milliseconds */
async function measureStart(dataDir: string): Promise<number> {
  const startedMs = performance.now()
  const environment = { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'error' }
  // With these variables, no demo would start.
  const { DATABASE_URL: _, CHAINS_FILE: __, ...env } = environment as Record<string, string>
  const service = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(service, 'exit')
  let said = ''
  for await (const chunk of service.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += chunk as string
    if (CURL_LINE.test(said)) break
  }
  await ask(said)
  const elapsedMs = performance.now() - startedMs
  service.stdout.resume()
  service.kill('SIGTERM')
  await ended
  return elapsedMs
}

async function ask(said: string): Promise<void> {
  const { name = '', value = '', url = '' } = CURL_LINE.exec(said)?.groups ?? {}
  if (url === '') throw new Error(`the service ended before it was ready:\n${said}`)
  const response = await fetch(url, { headers: { [name]: value } })
  const { routes } = (await response.json()) as { routes?: unknown[] }
  if (!response.ok || routes?.length === 0) throw new Error(`the first answer is ${response.status} without a route`)
}
