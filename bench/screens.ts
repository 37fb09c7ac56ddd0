/**
 * Measures the screens in a real browser on a demo with half a year of payments: sizes, first paint, how long a person waits for each step, and
 * what an hour of live payments does to the memory of the page.
 *
 *   npm run bench:screens                   CHROMIUM=/path/to/chromium uses that browser
 *   npm run bench:screens -- --minutes 60   with the live tail
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { buildApps, weigh } from '../test/support/built-apps.ts'
import { type Figure, median, report } from './report.ts'

const ROOT = resolve(import.meta.dirname, '..')
const RUNS = 7
const KB = 1_000
const PAYMENTS_EACH_TIME = 10
const EVERY_MS = 10_000
/** Who types fast types ten letters a second. */
const BETWEEN_LETTERS_MS = 100
const BETWEEN_SORTS_MS = 500

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '0' } } })
const minutes = Number(values.minutes)
const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find(
  (path) => path !== undefined && existsSync(path),
)
if (executablePath === undefined) {
  console.error('there is no Chromium here; install one or name it in CHROMIUM')
  process.exit(2)
}

const folder = await mkdtemp(join(tmpdir(), 'waybill-screens-'))
const env = {
  ...process.env,
  DATA_DIR: join(folder, 'data'),
  PORT: '18090',
  LOG_LEVEL: 'warn',
  DATABASE_URL: '',
  CHAINS_FILE: '',
}
await buildApps()
const service = spawn(process.execPath, ['--max-semi-space-size=8', 'src/main.ts', 'serve'], {
  cwd: ROOT,
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = once(service, 'exit')
const baseUrl = 'http://127.0.0.1:18090'
let browser: Browser | undefined
try {
  await once(service.stdout, 'data')
  service.stdout.resume()
  await untilImported()
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--js-flags=--expose-gc'] })
  const figures = [...(await measureSizes()), ...(await measurePaint(browser)), ...(await measureSteps(browser))]
  if (minutes > 0) figures.push(...(await measureTail(browser)))
  await report('screens', figures)
} finally {
  await browser?.close()
  service.kill('SIGTERM')
  await ended
  await rm(folder, { recursive: true, force: true })
}

/** The history goes on being written behind the first answer. */
async function untilImported(): Promise<void> {
  for (let before = -1; ; ) {
    const answer = await fetch(`${baseUrl}/v1/payments:summarize`, { headers: { 'x-api-key': 'demo' } })
    const { count } = (await answer.json()) as { count: number }
    if (count === before && count > 10_000) return
    before = count
    await sleep(3_000)
  }
}

async function measureSizes(): Promise<Figure[]> {
  const [list, listGzip] = await Promise.all([weigh('console', 'br'), weigh('console', 'gz')])
  const [pay, payGzip] = await Promise.all([weigh('pay', 'br'), weigh('pay', 'gz')])
  return [
    { name: 'console.script', value: list.scripts / KB, unit: 'kB', target: { atMost: 320 } },
    { name: 'console.script.gzip', value: listGzip.scripts / KB, unit: 'kB' },
    { name: 'console.style', value: list.style / KB, unit: 'kB' },
    { name: 'pay.page', value: (pay.scripts + pay.style) / KB, unit: 'kB', target: { atMost: 60 } },
    { name: 'pay.page.gzip', value: (payGzip.scripts + payGzip.style) / KB, unit: 'kB' },
  ]
}

/** A fresh browser each time: nothing is in its cache. */
async function measurePaint(from: Browser): Promise<Figure[]> {
  const paint: number[] = []
  const firstRow: number[] = []
  const shift: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const page = await (await from.newContext()).newPage()
    await page.addInitScript(() => {
      const seen = { shift: 0 }
      Object.assign(globalThis, { seen })
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.shift += (entry as unknown as { value: number }).value
      }).observe({ type: 'layout-shift', buffered: true })
    })
    await page.goto(`${baseUrl}/console`)
    await page.locator('table.payments tbody tr').first().waitFor()
    firstRow.push(await page.evaluate(() => performance.now()))
    await page.locator('.chart .bar').first().waitFor()
    paint.push(
      await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN),
    )
    shift.push(await page.evaluate(() => (globalThis as unknown as { seen: { shift: number } }).seen.shift))
    await page.context().close()
  }
  return [
    { name: 'paint.first', value: median(paint), unit: 'ms', target: { atMost: 1_000 } },
    { name: 'paint.first-payment', value: median(firstRow), unit: 'ms' },
    { name: 'layout.shift', value: median(shift), unit: 'CLS', target: { atMost: 0.1 } },
  ]
}

/**
 * From what a person does to the next picture: a letter typed, and a column sorted until its rows are there. Between two steps it waits as long as
 * a person does at least, or a step would be charged with what the one before it left to do.
 */
async function measureSteps(from: Browser): Promise<Figure[]> {
  const page = await (await from.newContext()).newPage()
  await page.goto(`${baseUrl}/console`)
  await page.locator('.tail.is-live').waitFor()
  const typed: number[] = []
  const box = page.getByRole('combobox', { name: 'Search payments' })
  await box.focus()
  for (const letter of 'ethereum usdc') {
    await sleep(BETWEEN_LETTERS_MS)
    typed.push(await timed(page, () => page.keyboard.type(letter)))
  }
  await box.fill('')
  await page.keyboard.press('Escape')
  const sorted: Sorted[] = []
  for (let run = 0; run < RUNS; run++) {
    await sleep(BETWEEN_SORTS_MS)
    sorted.push(await timeSort(page))
  }
  await page.context().close()
  return [
    { name: 'step.type', value: Math.max(...typed), unit: 'ms, slowest of 13', target: { atMost: 100 } },
    {
      name: 'step.sort',
      value: median(sorted.map(({ thereMs }) => thereMs)),
      unit: 'ms, answer included',
      target: { atMost: 100 },
    },
    { name: 'step.sort.painted', value: median(sorted.map(({ paintedMs }) => paintedMs)), unit: 'ms' },
  ]
}

/** From the key to the next frame, by the browser's clock. */
async function timed(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const done = new Promise<number>((resolve) => {
      addEventListener(
        'keydown',
        (event) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - event.timeStamp))),
        { once: true, capture: true },
      )
    })
    Object.assign(globalThis, { done })
  })
  await act()
  return page.evaluate(() => (globalThis as unknown as { done: Promise<number> }).done)
}

/** From the click until the rows are in the page, and until they are painted. */
interface Sorted {
  readonly thereMs: number
  readonly paintedMs: number
}

function timeSort(page: Page): Promise<Sorted> {
  return page.evaluate(async () => {
    const button = [...document.querySelectorAll<HTMLElement>('.sort')].find((each) =>
      each.textContent?.startsWith('Amount'),
    )
    const first = () => document.querySelector('table.payments tbody tr')?.textContent
    const before = first()
    const startedMs = performance.now()
    button?.click()
    while (first() === before) await new Promise((resolve) => requestAnimationFrame(resolve))
    const thereMs = performance.now() - startedMs
    await new Promise((resolve) => setTimeout(resolve))
    return { thereMs, paintedMs: performance.now() - startedMs }
  })
}

/** Payments come in for so many minutes; the heap is measured after a collection of garbage, and the longest task between. */
async function measureTail(from: Browser): Promise<Figure[]> {
  const page = await (await from.newContext()).newPage()
  await page.goto(`${baseUrl}/console`)
  await page.locator('.tail.is-live').waitFor()
  await page.evaluate(() => {
    const seen = { longest: 0 }
    Object.assign(globalThis, { seen })
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) seen.longest = Math.max(seen.longest, duration)
    }).observe({ type: 'longtask' })
  })
  const devtools = await page.context().newCDPSession(page)
  const heaps: number[] = []
  const endsAt = Date.now() + minutes * 60_000
  for (let sent = 0; Date.now() < endsAt; sent += PAYMENTS_EACH_TIME) {
    await importSome(sent)
    await sleep(EVERY_MS)
    if ((sent / PAYMENTS_EACH_TIME) % 6 !== 0) continue
    await devtools.send('HeapProfiler.collectGarbage')
    const { usedSize } = (await devtools.send('Runtime.getHeapUsage')) as { usedSize: number }
    heaps.push(usedSize / 1e6)
    console.error(`minute ${heaps.length}: ${heaps.at(-1)?.toFixed(1)} MB`)
  }
  const half = Math.floor(heaps.length / 2)
  // The first minutes warm up, where there are enough of them.
  const [early, late] = [heaps.slice(half > 2 ? 2 : 0, Math.max(half, 1)), heaps.slice(half)]
  const longest = await page.evaluate(() => (globalThis as unknown as { seen: { longest: number } }).seen.longest)
  return [
    {
      name: 'tail.memory.growth',
      value: median(late) / median(early),
      unit: 'second half / first',
      target: { atMost: 1.1 },
    },
    { name: 'tail.memory', value: heaps.at(-1) ?? Number.NaN, unit: 'MB' },
    { name: 'tail.longest-task', value: longest, unit: 'ms', target: { atMost: 100 } },
  ]
}

async function importSome(from: number): Promise<void> {
  const file = join(folder, 'tail.ndjson')
  const timestamp = new Date().toISOString()
  const lines = Array.from({ length: PAYMENTS_EACH_TIME }, (_, n) =>
    JSON.stringify({
      id: randomUUID(),
      timestamp,
      amount: `${from + n + 1}`,
      currency: 'USDC-ETHEREUM',
      network: 'ETHEREUM',
      status: 'CONFIRMED',
    }),
  )
  await writeFile(file, lines.join('\n'))
  const words = ['src/main.ts', 'import', 'payments', file, '--account', 'demo']
  const [code] = await once(spawn(process.execPath, words, { cwd: ROOT, env, stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new Error(`the import ended with ${String(code)}`)
}
