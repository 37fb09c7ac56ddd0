/** A payer on a phone who has the page's address alone, from the first paint until the page says that the payment has come: in seconds and taps. */
import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type { Screens } from './open-screens.ts'
import { createRequest, linkOf } from './try-pay.ts'

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
/** More than tests before it have left approved: the wallet asks twice. */
const USDC = { amount: '13.75', invoiceCurrency: 'USDC-ETHEREUM', paymentCurrency: 'USDC-ETHEREUM' }

interface Payer {
  readonly page: Page
  /** Touches what is seen, as a finger does. */
  readonly tap: (what: Locator) => Promise<void>
  readonly taps: () => number
}

export function tryStopwatch(screens: () => Screens): void {
  it('a payer on a phone pays by the way with the second lowest fees', async () => {
    const payer = await come(screens())
    await payer.tap(wallet(payer, 'direct'))
    await payButton(payer).waitFor()
    const more = payer.page.locator('.routes').getByRole('button')
    if (await more.isVisible()) await payer.tap(more)
    const fees = (await payer.page.locator('.route').allInnerTexts()).map((text) => {
      const [, sum] = /Fees ≈ \$([\d.]+)/.exec(text) ?? []
      return Number(sum)
    })
    const [, second] = fees.toSorted((one, other) => one - other)
    await payer.tap(payer.page.locator('.route').nth(fees.indexOf(second ?? NaN)))
    await confirm(payer)
    // The wallet, more ways, the way, the button to pay, and two confirmations of the wallet.
    expect(await stop(payer, 'the second cheapest way')).toBe(6)
  })

  it('a payer on a phone whose wallet has no gas learns what it lacks, and pays with another', async () => {
    const payer = await come(screens())
    await payer.tap(wallet(payer, 'noGas'))
    await payer.page
      .getByText(/You need about [\d.]+ ETH more on Ethereum for the network fee/)
      .first()
      .waitFor()
    await payer.tap(payer.page.getByRole('button', { name: 'Choose another wallet' }))
    await payer.tap(wallet(payer, 'direct'))
    await confirm(payer)
    expect(await stop(payer, 'a wallet without gas, then another')).toBe(6)
  })

  it('a payer on a phone whose wallet refuses pays with the next try', async () => {
    const payer = await come(screens())
    await payer.tap(wallet(payer, 'direct'))
    await payer.tap(payButton(payer))
    await payer.tap(payer.page.getByRole('dialog').getByRole('button', { name: 'Decline' }))
    await payer.tap(payer.page.getByRole('button', { name: 'Back to the ways to pay' }))
    await confirm(payer)
    expect(await stop(payer, 'a refusal, then a payment')).toBe(7)
  })
}

async function come(screens: Screens): Promise<Payer> {
  const page = await screens.open(linkOf(screens, await createRequest(screens, USDC)), PHONE)
  let taps = 0
  const tap = async (what: Locator) => {
    await what.tap()
    taps++
  }
  return { page, tap, taps: () => taps }
}

const wallet = ({ page }: Payer, name: string) => page.getByRole('button', { name: new RegExp(`^${name}`) })
const payButton = ({ page }: Payer) => page.locator('.pay-button:enabled')

/** Pays as chosen: approves, then pays, in the wallet. */
async function confirm(payer: Payer): Promise<void> {
  await payer.tap(payButton(payer))
  const dialog = payer.page.getByRole('dialog')
  for (const what of ['take up to', 'Pay']) {
    await dialog.locator('.does', { hasText: what }).waitFor()
    await payer.tap(dialog.getByRole('button', { name: 'Confirm' }))
  }
}

/** @returns how often the payer has touched the page */
async function stop({ page, taps }: Payer, says: string): Promise<number> {
  await page.getByRole('heading', { name: /not final yet|Payment complete/ }).waitFor({ timeout: 60_000 })
  const seconds = await page.evaluate(
    () => (performance.now() - (performance.getEntriesByName('first-paint')[0]?.startTime ?? NaN)) / 1_000,
  )
  console.log(`${says}: ${seconds.toFixed(1)} s from the first paint, ${taps()} taps`)
  await page.context().close()
  return taps()
}
