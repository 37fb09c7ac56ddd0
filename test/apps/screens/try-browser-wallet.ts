/** The checkout page with a wallet of the browser, which announces itself (EIP-6963) and whose person changes the account in it. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { announceWallet, changeAccount } from '../../support/page-wallets.ts'
import type { Screens } from './open-screens.ts'
import { answerAll, connect, createRequest, heading, linkOf } from './try-pay.ts'

/** @param screens - read when a test runs */
export function tryBrowserWallet(screens: () => Screens): void {
  it('follows a wallet of the browser to another account, and to none', async () => {
    const link = linkOf(screens(), await createRequest(screens()))
    const page = await screens().open(link, {}, (opened) => announceWallet(opened, { account: 'empty' }))
    await connect(page, 'Test wallet')
    await page.getByRole('heading', { name: /cannot pay/ }).waitFor()
    await changeAccount(page, 'direct')
    const pay = page.locator('.pay-button:enabled')
    await pay.waitFor()
    await changeAccount(page, undefined)
    await page.getByRole('button', { name: /^Test wallet/ }).waitFor()
    expect(await pay.count()).toBe(0)
    await changeAccount(page, 'direct')
    await connect(page, 'Test wallet')
    await pay.click()
    // This wallet signs without a question.
    expect(await answerAll(page)).toBe(0)
    expect(await heading(page).textContent()).toMatch(/on the chain|not final/)
    await close(page)
  })
}

const close = (page: Page) => page.context().close()
