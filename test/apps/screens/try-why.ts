/** "Why can't they pay?" and "Chains": each kind of answer, bad input, the refresh, and events that count as nothing. */
import type { Page, Request } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, isTooWide, payPending, picture, type Screens } from './open-screens.ts'

/** What the wallets of the demo say fits its oldest open request in this currency. */
const CURRENCY = 'USDC-ETHEREUM'

interface Listed {
  readonly requests: readonly { readonly paymentReference: string }[]
}

async function findRequest({ call }: Screens, query: string): Promise<string> {
  const { requests } = await call<Listed>(`/v1/request?limit=100&${query}`)
  const found = requests.at(-1)?.paymentReference
  if (found === undefined) throw new Error(`the demo has no request with ${query}`)
  return found
}

const ask = ({ facts }: Screens, reference: string, wallet: string) =>
  `/console/why?request=${reference}&wallet=${facts.wallets[wallet]?.address}`

const verdict = (page: Page) => page.locator('.why-verdict')
const heading = (page: Page, name: RegExp) => verdict(page).getByRole('heading', { name })

/** No barrier in light and in dark, and nothing wider than a narrow window. */
async function expectNoBarriers(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect([colorScheme, await findBarriers(page)]).toEqual([colorScheme, []])
  }
  await page.setViewportSize({ width: 320, height: 900 })
  expect(await isTooWide(page)).toBe(false)
}

/** As if the window were covered or uncovered. */
async function show(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'visibilityState', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
  }, state)
}

/** @param screens - read when a test runs */
export function tryWhy(screens: () => Screens): void {
  tryAnswers(screens)
  tryChains(screens)
}

function tryAnswers(screens: () => Screens): void {
  it('says in how many ways a wallet can pay, and the same to the customer', async () => {
    const page = await screens().open('/console/why')
    const request = await findRequest(screens(), `status=OPEN&currency=${CURRENCY}`)
    const wallet = screens().facts.wallets.direct?.address ?? ''
    for (const offered of [request, wallet])
      await page.locator(`datalist option[value="${offered}"]`).waitFor({ state: 'attached' })
    await page.getByLabel('Order number or payment reference').fill(request)
    await page.getByLabel('Wallet', { exact: true }).fill(wallet)
    await page.keyboard.press('Enter')
    await heading(page, /can pay in \d+ ways/).waitFor()
    const said = await heading(page, /can pay in/).textContent()
    const ways = await page.locator('.why-route h3').allTextContents()
    expect(ways).toHaveLength(Number(/\d+/.exec(said ?? '')?.[0]))
    await picture(page, 'why')
    await page.getByRole('button', { name: /Copy this answer/ }).click()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^About the payment of .*\n.*can pay in/)
    await expectNoBarriers(page)
  })

  it('says by keyboard alone what a wallet lacks', async () => {
    const page = await screens().open('/console/why')
    await page.getByLabel('Order number or payment reference').focus()
    await page.keyboard.type(await findRequest(screens(), `status=OPEN&currency=${CURRENCY}`))
    await page.keyboard.press('Tab')
    await page.keyboard.type(screens().facts.wallets.empty?.address ?? '')
    await page.keyboard.press('Enter')
    await heading(page, /This wallet cannot pay .* USDC on ETHEREUM/).waitFor()
    await verdict(page)
      .getByText(/What helps: add .* USDC on ETHEREUM\./)
      .waitFor()
    expect(await page.locator('.why-chain').count()).toBe(4)
    await picture(page, 'why-not')
    await expectNoBarriers(page)
  })

  it.each([
    [`status=OPEN&currency=${CURRENCY}`, 'noGas', /has the funds but no coins for gas/],
    ['status=PAID', 'direct', /already paid/],
    ['status=PENDING', 'direct', /Do not pay again/],
  ])('says of a request with %s to the wallet %s: %s', async (query, wallet, says) => {
    if (query === 'status=PENDING') await payPending(screens())
    const page = await screens().open(ask(screens(), await findRequest(screens(), query), wallet))
    await heading(page, says).waitFor()
    await expectNoBarriers(page)
  })

  it('takes an order number, and says at each field what is wrong with it', async () => {
    const { call, open } = screens()
    // As long as a payment reference.
    const reference = '2026112800000017'
    const terms = { payee: '0x4e794Fd63b0b0c2F318275C744f055678Ff1dc41', amount: '1', invoiceCurrency: CURRENCY }
    const { paymentReference } = await call<{ paymentReference: string }>('/v1/request', {
      ...terms,
      paymentCurrency: CURRENCY,
      reference,
    })
    const page = await open('/console/why')
    const order = page.getByLabel('Order number or payment reference')
    const check = page.getByRole('button', { name: 'Check' })
    await order.fill('order 17')
    await check.click()
    await page.getByText('No request has the number or reference “order 17”').waitFor()
    expect(await order.getAttribute('aria-invalid')).toBe('true')
    await order.fill(reference)
    await check.click()
    await expect.poll(() => page.getByLabel('Wallet', { exact: true }).getAttribute('aria-invalid')).toBe('true')
    expect(new URL(page.url()).searchParams.get('request')).toBe(paymentReference)
    expect(await page.getByText('No request has the number').count()).toBe(0)
    await expectNoBarriers(page)
  })
}

function tryChains(screens: () => Screens): void {
  it('refreshes the chains while somebody sees them, and rests while nobody does', async () => {
    const page = await screens().open('/console/chains')
    const refreshed = () => page.locator('.chains-overall time').getAttribute('datetime')
    await page.getByRole('heading', { name: 'POLYGON', exact: true }).waitFor()
    await picture(page, 'chains')
    const first = await refreshed()
    await expect.poll(refreshed, { timeout: 8_000 }).not.toBe(first)
    await show(page, 'hidden')
    let calls = 0
    const isRefresh = (request: Request) => request.url().includes('/ListChains')
    page.on('request', (request) => {
      if (isRefresh(request)) calls++
    })
    await page.waitForTimeout(3_000)
    expect(calls).toBe(0)
    const asked = page.waitForRequest(isRefresh, { timeout: 2_000 })
    await show(page, 'visible')
    await asked
    await expectNoBarriers(page)
  })

  it('leads from the count of a chain to its events, with what to do about them', async () => {
    const page = await screens().open('/console/chains')
    await page.getByRole('link', { name: 'Wrong recipient' }).first().click()
    const reasons = page.locator('.unmatched li > header h3')
    await expect.poll(async () => [...new Set(await reasons.allTextContents())]).toEqual(['Wrong recipient'])
    expect(new URL(page.url()).searchParams.get('reason')).toBe('WRONG_PAYEE')
    expect(await page.getByRole('combobox', { name: 'Reason' }).inputValue()).toBe('WRONG_PAYEE')
    await page.getByText('If the merchant returned this money').first().waitFor()
    await expectNoBarriers(page)
  })
}
