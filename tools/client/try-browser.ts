/**
 * Tries the packed client in a real browser: a fresh project of a bundler installs it, a page of another origin than the service's pays a
 * request of the demo with a publishable key and a wallet of the demo, and follows it until it is paid. Fails on any error of the console.
 *
 *   npm run try:browser            CHROMIUM=/path/to/chromium uses that browser
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { chromium, type Page } from 'playwright-core'
import { root } from '../run-command.ts'

/** One of the ports of development servers whose pages may use the demo's publishable key. */
const PAGE_PORT = 5173
const SERVICE_PORT = 18_080
const MAX_KB = 60

interface Demo {
  readonly baseUrl: string
  readonly apiKey: string
  readonly publishableKey: string
  readonly chains: readonly { readonly name: string; readonly rpcUrl: string; readonly chainId: number }[]
  readonly wallets: Readonly<Record<string, { readonly address: string }>>
}

function findBrowser(): string | undefined {
  const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  return [process.env.CHROMIUM, ...usual].find((path) => path !== undefined && existsSync(path))
}

/** @returns the folder of the bundle */
function buildPage(folder: string): string {
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  mkdirSync(folder)
  execFileSync('npm', ['pack', '--workspace', '@waybill/client', '--pack-destination', folder], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cpSync(join(import.meta.dirname, 'page'), folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const [tarball = ''] = globSync('waybill-client-*.tgz', { cwd: folder })
  npm('install', '--no-audit', '--no-fund', `./${tarball}`, 'vite@8')
  npm('exec', 'vite', 'build', '--', '--target', 'es2022', '--log-level', 'warn')
  return join(folder, 'dist')
}

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' }

async function servePage(dist: string): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const path = join(dist, pathname === '/' ? 'index.html' : pathname)
    if (!existsSync(path)) response.writeHead(404).end()
    else response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain').end(readFileSync(path))
  }).listen(PAGE_PORT, 'localhost')
  await once(server, 'listening')
  return server
}

function startDemo(dataDir: string) {
  const env = { PATH: process.env.PATH, PORT: `${SERVICE_PORT}`, DATA_DIR: dataDir, DEMO_DAYS: '2' }
  const demo = spawn(process.execPath, [join(root, 'src/main.ts'), 'serve'], { env, stdio: 'ignore' })
  return { demo, ended: once(demo, 'exit') }
}

async function readDemo(dataDir: string): Promise<Demo> {
  const path = join(dataDir, 'demo.json')
  for (let tries = 0; tries < 240; tries++) {
    if (existsSync(path)) {
      const demo = JSON.parse(readFileSync(path, 'utf8')) as Demo
      if ((await fetch(`${demo.baseUrl}/readyz`).catch(() => undefined))?.ok === true) return demo
    }
    await sleep(500)
  }
  throw new Error('the demo has not started within two minutes')
}

async function createRequest({ baseUrl, apiKey, chains, wallets }: Demo): Promise<string> {
  const currency = `USDC-${chains[0]?.name}`
  const payee = Object.values(wallets).at(-1)?.address
  const body = JSON.stringify({ payee, amount: '3', invoiceCurrency: currency, paymentCurrency: currency })
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
  const answer = await fetch(`${baseUrl}/v1/request`, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(await answer.text())
  return ((await answer.json()) as { paymentReference: string }).paymentReference
}

/** Gives the page a wallet, `window.ethereum`, that sends from an account of the demo. */
async function installWallet(page: Page, { chains, wallets }: Demo): Promise<void> {
  const [wallet] = Object.values(wallets)
  let current = chains[0]
  await page.exposeFunction('askWallet', async (method: string, params: readonly unknown[]) => {
    if (method === 'eth_accounts' || method === 'eth_requestAccounts') return { result: [wallet?.address] }
    if (method === 'wallet_switchEthereumChain') {
      const wanted = Number((params[0] as { chainId: string }).chainId)
      current = chains.find(({ chainId }) => chainId === wanted) ?? current
      return { result: null }
    }
    if (method.startsWith('wallet_')) return { error: { code: -32601, message: `no method ${method}` } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    return (await fetch(current?.rpcUrl ?? '', { method: 'POST', headers, body })).json()
  })
  await page.addInitScript({
    content: `window.ethereum = { async request({ method, params = [] }) {
      const { result, error } = await window.askWallet(method, params)
      if (error) throw Object.assign(new Error(error.message), { code: error.code })
      return result
    } }`,
  })
}

/** @returns what went wrong; empty if the request was paid and the console is clean */
async function tryPage(browserPath: string, demo: Demo, paymentReference: string): Promise<string[]> {
  const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] })
  const faults: string[] = []
  try {
    const page = await browser.newPage()
    page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`))
    page.on('pageerror', (error) => faults.push(`page: ${error.message}`))
    await installWallet(page, demo)
    const query = new URLSearchParams({ baseUrl: demo.baseUrl, apiKey: demo.publishableKey, paymentReference })
    await page.goto(`http://localhost:${PAGE_PORT}/?${query}`)
    const ends = ['done', 'failed']
    for (let tries = 0; tries < 240 && !ends.includes(await page.title()); tries++) await sleep(500)
    const lines = await page.locator('#log li').allTextContents()
    console.log(lines.map((line) => `  ${line}`).join('\n'))
    if ((await page.title()) !== 'done') faults.push('the page did not get to the end')
    if (lines.every((line) => line !== 'request PAID')) faults.push('the page has not seen the request PAID')
  } finally {
    await browser.close()
  }
  return faults
}

const browserPath = findBrowser()
if (browserPath === undefined) {
  console.log('not tried: there is no Chromium here; install one or name it in CHROMIUM')
  process.exit()
}
const folder = mkdtempSync(join(tmpdir(), 'waybill-browser-'))
const { demo, ended } = startDemo(join(folder, 'data'))
let server: Server | undefined
try {
  const dist = buildPage(join(folder, 'page'))
  const scripts = globSync('assets/*.js', { cwd: dist }).map((name) => readFileSync(join(dist, name)))
  const kB = scripts.reduce((sum, script) => sum + gzipSync(script, { level: 9 }).length, 0) / 1_000
  server = await servePage(dist)
  const described = await readDemo(join(folder, 'data'))
  const faults = await tryPage(browserPath, described, await createRequest(described))
  if (kB > MAX_KB) faults.push(`the script of the page is ${kB.toFixed(1)} kB, at most ${MAX_KB}`)
  console.log(faults.length === 0 ? `paid from the page; script ${kB.toFixed(1)} kB gzipped` : faults.join('\n'))
  process.exitCode = faults.length === 0 ? 0 : 1
} finally {
  server?.close()
  demo.kill('SIGTERM')
  await ended
  rmSync(folder, { recursive: true, force: true })
}
