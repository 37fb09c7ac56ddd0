/** The checkout page with a wallet of the browser, which announces itself (EIP-6963) and whose person changes the account in it. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type { Screens } from './open-screens.ts'
import { answerAll, connect, createRequest, heading, linkOf } from './try-pay.ts'

/** @param screens - read when a test runs */
export function tryBrowserWallet(screens: () => Screens): void {
  it('follows a wallet of the browser to another account, and to none', async () => {
    const link = linkOf(screens(), await createRequest(screens()))
    const page = await screens().open(link, {}, (opened) => opened.addInitScript(announceWallet, 'empty'))
    await connect(page, 'Browser wallet of a test')
    await page.getByRole('heading', { name: /cannot pay/ }).waitFor()
    await page.evaluate(() => changeAccount('direct'))
    const pay = page.locator('.pay-button:enabled')
    await pay.waitFor()
    await page.evaluate(() => changeAccount())
    await page.getByRole('button', { name: /^Browser wallet of a test/ }).waitFor()
    expect(await pay.count()).toBe(0)
    await page.evaluate(() => changeAccount('direct'))
    await connect(page, 'Browser wallet of a test')
    await pay.click()
    // This wallet signs without a question.
    expect(await answerAll(page)).toBe(0)
    expect(await heading(page).textContent()).toMatch(/on the chain|not final/)
    await close(page)
  })
}

const close = (page: Page) => page.context().close()

/** In the page: changes the account of the wallet; none closes the wallet to the page. */
declare function changeAccount(name?: string): Promise<void>

/** In the page: a wallet whose accounts are wallets of the demo. */
function announceWallet(first: string): void {
  const listeners: ((accounts: readonly string[]) => void)[] = []
  let account: string | undefined = first
  let chainId: string | undefined
  const ask = async (method: string, params: readonly unknown[] = []) => {
    const body = JSON.stringify({ method, params, ...(chainId !== undefined && { chainId }) })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`/demo/wallets/${account}`, { method: 'POST', headers, body })
    const { result, error } = (await answer.json()) as { result?: unknown; error?: { code: number; message: string } }
    if (error !== undefined) throw Object.assign(new Error(error.message), error)
    return result
  }
  const provider = {
    async request({ method, params = [] }: { method: string; params?: readonly unknown[] }) {
      const result = await ask(method, params)
      if (method === 'wallet_switchEthereumChain') chainId = (params[0] as { chainId: string }).chainId
      return result
    },
    on: (_: string, listener: (accounts: readonly string[]) => void) => void listeners.push(listener),
    removeListener: (_: string, listener: (accounts: readonly string[]) => void) =>
      void listeners.splice(listeners.indexOf(listener), 1),
  }
  const info = { uuid: crypto.randomUUID(), name: 'Browser wallet of a test', icon: '', rdns: 'test.wallet' }
  const announce = () =>
    dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  addEventListener('eip6963:requestProvider', announce)
  Object.assign(globalThis, {
    changeAccount: async (name?: string) => {
      account = name ?? account
      const accounts = name === undefined ? [] : ((await ask('eth_accounts')) as readonly string[])
      for (const listener of listeners) listener(accounts)
    },
  })
}
