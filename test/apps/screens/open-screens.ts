/** A demo and a browser, for tests that look at what people see. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { onTestFailed, vi } from 'vitest'
import { startWaybill } from '../../support/process.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'

/** The browser of the machine; undefined if there is none. */
export function findBrowser(): string | undefined {
  const usual = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  return [process.env.CHROMIUM, ...usual].find((path) => path !== undefined && existsSync(path))
}

export interface DemoFacts {
  readonly baseUrl: string
  readonly publishableKey: string
  readonly payUrl: string
  readonly wallets: Readonly<Record<string, { readonly address: string }>>
  readonly chains: readonly {
    readonly name: string
    readonly rpcUrl: string
    readonly tokens: readonly { readonly symbol: string; readonly address: string }[]
  }[]
  readonly requests: readonly { readonly paymentReference: string; readonly says: string; readonly kind?: string }[]
}

export type Screens = Awaited<ReturnType<typeof openScreens>>

/** Where pictures go: `PICTURES=1` renews those of docs/. */
const pictures = process.env.PICTURES === '1' ? join(import.meta.dirname, '../../../docs/pictures') : undefined

/**
 * Parts of Chromium that a test needs no time for. The popups of the address bar are pages of their own in each window, which took two thirds of the
 * processor time of opening one. This list replaces Playwright's, so what it leaves out for a reason stands here too.
 */
const LEFT_OUT = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'MediaRouter',
  'OptimizationHints',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'Translate',
]

/**
 * Starts a demo and a browser.
 *
 * @param days - how long the demo's history is
 */
export async function openScreens(executablePath: string, days: number) {
  // What has started ends also where the rest fails.
  await using starting = new AsyncDisposableStack()
  const folder = await makeTempFolder('screens')
  starting.defer(() => rm(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'data')
  const port = await freePort()
  const environment = {
    PORT: `${port}`,
    DATA_DIR: dataDir,
    DEMO_DAYS: pictures === undefined ? `${days}` : '180',
    TRUSTED_PROXIES: '127.0.0.1',
  }
  const demo = startWaybill(['serve'], environment)
  starting.defer(async () => {
    demo.kill('SIGTERM')
    await demo.ended
  })
  const options = { executablePath, args: ['--no-sandbox', `--disable-features=${LEFT_OUT.join()}`] }
  const [browser] = await Promise.all([
    chromium.launch(options).then((opened) => starting.adopt(opened, (each) => each.close())),
    demo.says(/Console {3}http/),
  ])
  const readFacts = async () => JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')) as DemoFacts
  const facts = await readFacts()
  let people = 0
  // Pages are counted by address: without this, all tests were one payer, who on a quick machine made more calls a minute than one may.
  const nextAddress = () => `198.18.${people >> 8}.${people++ & 255}`
  /** What pages said that they should not have. */
  const faults: string[] = []
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const headers = { 'x-api-key': 'demo', 'content-type': 'application/json' }
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(facts.baseUrl + path, { headers, ...init })
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
    return (await answer.json()) as T
  }
  if (pictures !== undefined) await untilWritten(call, 177)
  const stack = starting.move()
  return {
    facts,
    readFacts,
    environment,
    dataDir,
    faults,
    call,
    /** Opens a page, of the demo or of a whole URL, in a browser of its own, at another address, which knows nothing of the others. */
    open: async (
      path: string,
      options: BrowserContextOptions = {},
      prepare?: (page: Page) => Promise<unknown>,
      /** That of its context, in a test that runs beside others. */
      onFailed: typeof onTestFailed = onTestFailed,
    ): Promise<Page> => {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 900 },
        extraHTTPHeaders: { 'x-forwarded-for': nextAddress() },
        ...options,
      })
      const { href, origin } = new URL(path, facts.baseUrl)
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin })
      const page = await context.newPage()
      page.on('console', (message) => {
        if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
          faults.push(message.text())
      })
      page.on('pageerror', (error) => faults.push(error.message))
      tellWhenFailed(page, onFailed)
      await prepare?.(page)
      await page.goto(href)
      return page
    },
    stop: () => stack.disposeAsync(),
  }
}

/** Prints what stood on a page whose test failed. */
function tellWhenFailed(page: Page, onFailed: typeof onTestFailed): void {
  onFailed(async () => {
    if (!page.isClosed()) console.log(`${page.url()} said:\n${await page.locator('body').innerText()}`)
  })
}

/**
 * Waits until the demo has written the days of its history that somebody looks at; it writes them from the newest to the
 * oldest, behind its first answer.
 *
 * @param daysAgo - the oldest of them
 */
export async function untilWritten(call: Screens['call'], daysAgo: number): Promise<void> {
  const toDate = new Date(Date.now() - (daysAgo + 1) * 86_400_000).toISOString().slice(0, 10)
  await vi.waitFor(
    async () => {
      const { payments } = await call<{ payments: readonly unknown[] }>(`/payments?limit=1&toDate=${toDate}`)
      if (payments.length === 0) throw new Error('the history of the demo is still being written')
    },
    { timeout: 90_000, interval: 500 },
  )
}

/** What axe finds wrong by WCAG 2.2 A and AA, one line each. */
export async function findBarriers(page: Page): Promise<string[]> {
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  // The legacy mode needs no second page, and our pages hold no frames of others. What passes is not described, which takes longest.
  const axe = new AxeBuilder({ page })
    .options({ resultTypes: ['violations'] })
    .withTags(tags)
    .setLegacyMode()
  const { violations } = await axe.analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}

/** Renews a picture of the documents, where that is asked for. */
export async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return
  await mkdir(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`) })
}

/** A page that is wider than its window has to be scrolled sideways. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
}

/** A port of loopback that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Pays a request on the chain whose payments stay pending for twenty minutes. @returns its payment reference and the id of the payment */
export async function payPending({ call, facts }: Pick<Screens, 'call' | 'facts'>) {
  const currency = 'USDC-POLYGON'
  const payee = facts.wallets.shallowPool?.address
  const terms = { payee, amount: '1.25', invoiceCurrency: currency, paymentCurrency: currency }
  const { paymentReference } = await call<{ paymentReference: string }>('/v1/request', terms)
  const asked = { paymentReference, wallet: 'direct', route: 'REQUEST_NETWORK_PAYMENT' }
  const { payments } = await call<{ payments: readonly { id: string }[] }>('/v1/demo/pay', asked)
  return { paymentReference, id: payments[0]?.id ?? '' }
}
