/** Drives the pages "Why can't they pay?" and "Chains" of the console against a running demo. */
import assert from 'node:assert/strict'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

export interface TryWhyOptions {
  readonly page: Page
  /** Of the demo, which has its own wallets and the key "demo". */
  readonly baseUrl: string
}

interface Demo extends TryWhyOptions {
  /** Addresses by name. */
  readonly wallets: Readonly<Record<string, string>>
}

/** The currency of the oldest open request, for which the wallets of the demo are made. */
const CURRENCY = 'USDC-ETHEREUM'

/** @throws AssertionError, or the page's own error, where a page does not do what it says */
export async function tryWhy({ page, baseUrl }: TryWhyOptions): Promise<void> {
  const listed = (await readJson(baseUrl, '/demo/wallets')) as readonly { name: string; address: string }[]
  const demo: Demo = { page, baseUrl, wallets: Object.fromEntries(listed.map(({ name, address }) => [name, address])) }
  await tryExample(demo)
  await tryEachAnswer(demo)
  await tryBadInput(demo)
  await tryChains(demo)
}

async function readJson(baseUrl: string, path: string): Promise<unknown> {
  const answer = await fetch(baseUrl + path, { headers: { 'x-api-key': 'demo' } })
  assert.equal(answer.status, 200, path)
  return await answer.json()
}

async function findRequest(baseUrl: string, status: string, currency?: string): Promise<string> {
  const query = currency === undefined ? '' : `&currency=${currency}`
  const { requests } = (await readJson(baseUrl, `/v1/request?status=${status}&limit=100${query}`)) as {
    requests: readonly { paymentReference: string }[]
  }
  const found = requests.at(-1)?.paymentReference
  assert.ok(found !== undefined, `the demo has no request that is ${status}`)
  return found
}

/** A click on a wallet gives as many ways as the sentence says; sorting is in the link. */
async function tryExample({ page, baseUrl }: Demo): Promise<void> {
  await page.goto(`${baseUrl}/console/why`)
  await page.getByRole('link', { name: 'direct', exact: true }).click()
  const sentence = await answered(page, /This wallet can pay in \d+ ways/)
  const rows = page.locator('.why-route')
  assert.equal(await rows.count(), Number(/\d+/.exec(sentence)?.[0]))
  const ways = () => rows.getByRole('heading').allTextContents()
  const best = await ways()
  await page.getByRole('button', { name: 'Speed', exact: true }).click()
  const fastest = await ways()
  assert.notDeepEqual(fastest, best)
  assert.deepEqual(fastest.toSorted(), best.toSorted())
  await page.reload()
  await answered(page, /can pay in/)
  await page.getByText('The bars as a table').click()
  assert.equal(await page.locator('.why table tbody tr').count(), best.length + (await countFeeLines(page)))
  await look(page)
}

/** Rows of the tables of fees, which are closed. */
async function countFeeLines(page: Page): Promise<number> {
  return await page.locator('.why-route table tbody tr').count()
}

async function tryEachAnswer(demo: Demo): Promise<void> {
  const { page, baseUrl, wallets } = demo
  const open = await findRequest(baseUrl, 'OPEN', CURRENCY)
  // By keyboard alone.
  await page.goto(`${baseUrl}/console/why`)
  await page.getByLabel('Payment reference').focus()
  await page.keyboard.type(open)
  await page.keyboard.press('Tab')
  await page.keyboard.type(wallets.empty ?? '')
  await page.keyboard.press('Enter')
  await answered(page, /This wallet cannot pay .* USDC on ETHEREUM/)
  await page
    .locator('.why-verdict')
    .getByText(/What helps: add .* USDC on ETHEREUM\./)
    .waitFor()
  await page.locator('.why-chain').first().waitFor()
  await look(page)

  await ask(demo, open, 'noGas')
  await answered(page, /has the money, but no coins for gas/)
  await page
    .locator('.why-verdict')
    .getByText(/; add .* ETH on ETHEREUM\./)
    .waitFor()
  await look(page)

  await ask(demo, await findRequest(baseUrl, 'PAID'), 'direct')
  await answered(page, /Nothing is to be paid/)
  await look(page)
}

async function ask({ page, baseUrl, wallets }: Demo, reference: string, wallet: string): Promise<void> {
  await page.goto(`${baseUrl}/console/why?request=${reference}&wallet=${wallets[wallet] ?? ''}`)
}

/** Each field says what is wrong with it, in the service's words. */
async function tryBadInput({ page, baseUrl }: Demo): Promise<void> {
  await page.goto(`${baseUrl}/console/why`)
  await page.getByLabel('Payment reference').fill('zz')
  await page.getByRole('button', { name: 'Find out' }).click()
  await page.getByText('"zz" is not a payment reference').waitFor()
  assert.equal(await page.getByLabel('Payment reference').getAttribute('aria-invalid'), 'true')
  assert.equal(await page.getByLabel('Wallet', { exact: true }).getAttribute('aria-invalid'), 'true')
  await look(page)
}

/** The sentence, once all chains have answered. */
async function answered(page: Page, sentence: RegExp): Promise<string> {
  const heading = page.getByRole('heading', { name: sentence })
  await heading.waitFor()
  return (await heading.textContent()) ?? ''
}

async function tryChains({ page, baseUrl }: Demo): Promise<void> {
  const { chains } = (await readJson(baseUrl, '/v1/chains')) as { chains: readonly { network: string }[] }
  await page.goto(`${baseUrl}/console/chains`)
  for (const { network } of chains) await page.getByRole('heading', { name: network, exact: true }).waitFor()
  // It refreshes by itself.
  const at = page.locator('.chains-overall time')
  const first = await at.getAttribute('datetime')
  await page.waitForFunction(
    (before) => document.querySelector('.chains-overall time')?.getAttribute('datetime') !== before,
    first,
  )
  await look(page)
  await tryHidden(page)
  // From the count of a chain to its events, which the link then names.
  await page.getByRole('link', { name: 'Wrong token' }).first().click()
  await page.getByRole('heading', { name: 'Wrong token' }).first().waitFor()
  assert.equal(new URL(page.url()).searchParams.get('reason'), 'WRONG_TOKEN')
  assert.equal(await page.getByLabel('Reason').inputValue(), 'WRONG_TOKEN')
  await page.waitForFunction(() => document.querySelectorAll('.unmatched li > header h3').length > 0)
  const reasons = await page.locator('.unmatched li > header h3').allTextContents()
  assert.deepEqual([...new Set(reasons)], ['Wrong token'])
  await look(page)
}

/** A page that nobody sees asks for nothing, and asks at once when somebody comes back. */
async function tryHidden(page: Page): Promise<void> {
  let calls = 0
  const count = (request: { url(): string }) => {
    if (request.url().includes('/ListChains')) calls += 1
  }
  await show(page, 'hidden')
  page.on('request', count)
  await page.waitForTimeout(3_000)
  assert.equal(calls, 0, 'a hidden page asked for the chains')
  const asked = page.waitForRequest((request) => request.url().includes('/ListChains'))
  await show(page, 'visible')
  await asked
  page.off('request', count)
}

async function show(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'visibilityState', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, state)
}

/** Axe finds nothing in light and in dark, and nothing is wider than a narrow screen. */
async function look(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const axe = new AxeBuilder({ page })
    // What else axe looks at has no colour.
    const { violations } = await (colorScheme === 'light' ? axe : axe.withRules('color-contrast')).analyze()
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
    assert.deepEqual(found, [], `${page.url()} in ${colorScheme}`)
  }
  await page.emulateMedia({ colorScheme: null })
  const wide = page.viewportSize()
  await page.setViewportSize({ width: 320, height: 800 })
  const width = await page.evaluate(() => document.documentElement.scrollWidth)
  assert.ok(width <= 320, `${page.url()} is ${width} px wide on a screen of 320 px`)
  if (wide !== null) await page.setViewportSize(wide)
}
