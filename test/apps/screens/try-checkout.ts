/** What a payer reads on the checkout page: who asks, in their language, what each way costs, what is missing, and what stays of a payment. */
import { decodeQR } from 'qr/decode.js'
import { expect, it } from 'vitest'
import { announceWallet, answerWallet, changeAccount, questionsOf } from '../../support/page-wallets.ts'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'
import { answerAll, connect, createRequest, linkOf } from './try-pay.ts'

const PHONE = { viewport: { width: 320, height: 800 }, hasTouch: true, isMobile: true }
/** Where development servers listen: an origin of the demo's publishable key. */
const RETURN_URL = 'http://127.0.0.1:5173/orders/7'

export function tryCheckout(screens: () => Screens): void {
  speakLanguages(screens)
  showPrices(screens)
  leadToPhones(screens)
  keepReceipts(screens)
  loadSlowly(screens)
}

function speakLanguages(screens: () => Screens): void {
  it.each([
    ['en-GB', '', 'Choose a wallet', 'Choose how to pay', '3.25 USDC'],
    ['de-CH', '', 'Wallet wählen', 'Wie möchten Sie bezahlen?', '3.25 USDC'],
    ['de-DE', '', 'Wallet wählen', 'Wie möchten Sie bezahlen?', '3,25 USDC'],
    ['es-ES', '', 'Elija un monedero', 'Elija cómo pagar', '3,25 USDC'],
    ['de-DE', '&lang=fr', 'Choisissez un portefeuille', 'Choisissez comment payer', '3,25 USDC'],
  ])('is read in %s%s, on a narrow phone as well', async (locale, query, choose, routes, amount) => {
    const reference = await createRequest(screens(), undefined, { title: 'Two books' })
    const page = await screens().open(linkOf(screens(), reference) + query, { ...PHONE, locale })
    await page.getByRole('heading', { name: choose }).waitFor()
    expect(await page.locator('h1').innerText()).toBe(amount)
    expect(await page.locator('.request').innerText()).toMatch(/Bay Books\s+Two books/)
    await page.locator('.option').first().waitFor()
    expect([await isTooWide(page), await findBarriers(page)]).toEqual([false, []])
    await connect(page, 'direct')
    await page.getByRole('heading', { name: routes }).waitFor()
    await page.locator('.pay-button:enabled').waitFor()
    expect([await isTooWide(page), await findBarriers(page)]).toEqual([false, []])
    // A language from right to left would find the page in order.
    await page.evaluate(() => document.documentElement.setAttribute('dir', 'rtl'))
    const [radio, words] = [page.locator('.route input').first(), page.locator('.route-main').first()]
    expect((await radio.boundingBox())?.x).toBeGreaterThan((await words.boundingBox())?.x ?? 0)
    expect(await isTooWide(page)).toBe(false)
    await page.context().close()
  })
}

function showPrices(screens: () => Screens): void {
  it('lists what each way costs before a wallet is chosen', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    const first = page.locator('.option').first()
    await first.waitFor()
    expect(await first.innerText()).toMatch(/3.25 USDC on Ethereum\s+≈ \$3\.\d\d\s+Fees .*\$.* · about \d+ seconds/)
    expect(await page.locator('.request').innerText()).toMatch(/3.25 USDC\s+≈ \$3\.\d\d/)
    await page.context().close()
  })

  it('moves nothing that can be pressed when the prices come', async () => {
    const { promise: held, resolve: answer } = Promise.withResolvers<void>()
    const link = linkOf(screens(), await createRequest(screens()))
    const page = await screens().open(link, {}, (fresh) =>
      fresh.route('**/GetPaymentOptions', async (route) => {
        await held
        await route.continue()
      }),
    )
    const wallet = page.getByRole('button', { name: /^direct/ })
    await wallet.waitFor()
    const before = await wallet.boundingBox()
    answer()
    await page.locator('.option').first().waitFor()
    expect(await wallet.boundingBox()).toEqual(before)
    await page.context().close()
  })

  it('offers no way without gas, and says how much is missing', async () => {
    const page = await screens().open(linkOf(screens(), await createRequest(screens())))
    await connect(page, 'noGas')
    await page.getByRole('heading', { name: 'This wallet cannot pay' }).waitFor()
    const missing = page.locator('.missing li').first()
    expect(await missing.innerText()).toMatch(/You need about [\d.]+ ETH more on Ethereum for the network fee\./)
    expect(await page.locator('.pay-button, .route input').count()).toBe(0)
    await page.getByRole('button', { name: 'Choose another wallet' }).click()
    await connect(page, 'direct')
    await page.locator('.pay-button:enabled').waitFor()
    await page.context().close()
  })
}

/** A phone and a desktop without a wallet. */
function leadToPhones(screens: () => Screens): void {
  const openBare = async (options: object, terms?: Parameters<typeof createRequest>[1]) => {
    const link = linkOf(screens(), await createRequest(screens(), terms))
    const page = await screens().open(link, options, (fresh) =>
      fresh.route('**/demo/wallets', (route) => route.abort()),
    )
    return { page, address: screens().facts.baseUrl + link }
  }

  it('on a desktop without a wallet shows a code that a phone reads as the address of the page, and no link of a phone', async () => {
    const { page, address } = await openBare({})
    const code = page.getByRole('img', { name: 'Pay with your phone' })
    const path = (await code.locator('path[d^="M"]').getAttribute('d')) ?? ''
    const size = Number((await code.getAttribute('viewBox'))?.split(' ')[2])
    expect(decodeQR(imageOf(path, size))).toBe(address)
    expect(await page.locator('a[href*="metamask"], a[href^="ethereum:"]').count()).toBe(0)
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })

  it('on a phone opens in the wallets, and by a payment link only where one can say all of it', async () => {
    const { page, address } = await openBare(PHONE)
    const app = page.getByRole('link', { name: 'Open in MetaMask' })
    expect(await app.getAttribute('href')).toBe(`https://link.metamask.io/dapp/${address.replace('http://', '')}`)
    expect(await page.getByRole('link').count()).toBe(3)
    await page.context().close()
    const coins = { amount: '0.002', invoiceCurrency: 'ETH-ETHEREUM', paymentCurrency: 'ETH-ETHEREUM' }
    const inCoins = (await openBare(PHONE, coins)).page
    const link = inCoins.getByRole('link', { name: 'Pay with the wallet on this phone' })
    expect(await link.getAttribute('href')).toMatch(
      /^ethereum:0x.*@\d+\/transferExactEthWithReferenceAndFee\?.*value=2000000000000000$/,
    )
    expect(await findBarriers(inCoins)).toEqual([])
    await inCoins.context().close()
  })
}

/** An image of 4 pixels a module of the code, as a camera would see it. */
function imageOf(path: string, size: number) {
  const width = size * 4
  const data = new Uint8Array(width * width * 4).fill(255)
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let row = 0; row < 4; row++) {
      for (let column = 0; column < 4; column++) {
        const at = ((Number(y) * 4 + row) * width + Number(x) * 4 + column) * 4
        data.fill(0, at, at + 3)
      }
    }
  }
  return { width, height: width, data }
}

function keepReceipts(screens: () => Screens): void {
  it('keeps a receipt of what was paid, also after a reload, and a way back to the shop', async () => {
    const reference = await createRequest(screens(), undefined, { returnUrl: RETURN_URL })
    const page = await screens().open(`${linkOf(screens(), reference)}&return=https://evil.example/`)
    await connect(page, 'direct')
    await page.locator('.pay-button:enabled').click()
    await answerAll(page)
    const receipt = page.getByRole('region', { name: 'Receipt' })
    await receipt.waitFor({ timeout: 60_000 })
    const words = await receipt.innerText()
    expect(words).toMatch(/Paid\s+3.25 USDC on Ethereum\s+From\s[^]*To\s[^]*Sent\s[^]*Transaction\s+Copy\s+0x/)
    await page.reload()
    await receipt.waitFor()
    expect(await receipt.innerText()).toBe(words)
    expect(await page.title()).toMatch(/^(Payment received, not final yet|Payment complete) · 3.25 USDC$/)
    const back = page.getByRole('link', { name: 'Back to Bay Books' })
    expect(await back.getAttribute('href')).toBe(RETURN_URL)
    expect(await page.content()).not.toContain('evil.example')
    await page.emulateMedia({ media: 'print' })
    expect([await back.isVisible(), await receipt.isVisible()]).toEqual([false, true])
    expect(await findBarriers(page)).toEqual([])
    await page.context().close()
  })

  it('names the wallet that paid, and the most that a swap takes', async () => {
    const { facts } = screens()
    const page = await screens().open(linkOf(screens(), await createRequest(screens())), {}, (fresh) =>
      announceWallet(fresh, { account: 'otherToken', acts: { eth_sendTransaction: 'HOLDS' } }),
    )
    await connect(page, 'Test wallet')
    await page.locator('.pay-button:enabled').click()
    for (const questions of [1, 2]) {
      await expect.poll(async () => (await questionsOf(page)).length, { timeout: 20_000 }).toBe(questions)
      // Its person goes on to another account before they answer.
      if (questions === 2) await changeAccount(page, 'direct')
      await answerWallet(page, true)
    }
    const receipt = page.getByRole('region', { name: 'Receipt' })
    await receipt.waitFor({ timeout: 60_000 })
    expect(await receipt.innerText()).toMatch(/Paid\s+at most 3\.2\d+ DAI on Ethereum/)
    await receipt.getByTitle(facts.wallets.otherToken?.address ?? '').waitFor()
    await page.context().close()
  })

  it('leads back from a request that can no longer be paid', async () => {
    const reference = await createRequest(screens(), undefined, { returnUrl: RETURN_URL })
    await screens().call(`/v1/request/${reference}:cancel`, {})
    const page = await screens().open(linkOf(screens(), reference))
    await page.getByRole('link', { name: 'Back to Bay Books' }).waitFor()
    expect(await page.locator('.screen').innerText()).toContain('The shop has cancelled this request')
    await page.context().close()
  })
}

function loadSlowly(screens: () => Screens): void {
  it('stands as an outline within 3 s of a slow line', async () => {
    const link = linkOf(screens(), await createRequest(screens()))
    const page = await screens().open('/healthz')
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    // "Slow 3G" of Chromium: 400 kbit/s, 2 s for a round trip with all that is asked for at once.
    const slow = { latency: 2_000, downloadThroughput: 50_000, uploadThroughput: 50_000 }
    await session.send('Network.emulateNetworkConditions', { offline: false, ...slow })
    void page.goto(screens().facts.baseUrl + link).catch(() => undefined)
    await page.locator('.bone').first().waitFor()
    const paint = () => page.evaluate(() => performance.getEntriesByName('first-paint')[0]?.startTime ?? Infinity)
    await expect.poll(paint).toBeLessThan(3_000)
    await page.getByRole('heading', { name: 'Choose a wallet' }).waitFor({ timeout: 60_000 })
    expect(await page.locator('.bone').count()).toBe(0)
    await page.context().close()
  })
}
