/** The webhooks and keys of an account, as people use them. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findBarriers, isTooWide, type Screens } from './open-screens.ts'

interface Got {
  readonly headers: Record<string, string>
  readonly body: string
}

/** The webhooks, with a receiver over sockets. @param screens - read when a test runs */
export function tryWebhooks(screens: () => Screens): void {
  const received: Got[] = []
  let status = 204
  let server: Server
  let url: string
  beforeAll(async () => {
    const take = async (request: IncomingMessage, response: ServerResponse) => {
      received.push({ headers: request.headers as Record<string, string>, body: await text(request) })
      response.writeHead(status).end()
    }
    server = createServer((request, response) => void take(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it('creates a webhook, shows its secret once, tests it, shows what failed, and replays', async () => {
    const page = await screens().open('/console/webhooks')
    await page.getByRole('button', { name: 'New webhook' }).first().click()
    await page.getByLabel('URL').fill('nowhere')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByText('no URL of at most').waitFor()
    await page.getByLabel('URL').fill(url)
    await page.getByLabel('payment.added').uncheck()
    await page.getByLabel('Note').fill('try')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const secret = await page.locator('.notice.good .copy').innerText()
    expect(secret).toMatch(/^whsec_.{44}$/)
    const card = page.locator('section.card', { hasText: url })
    await card.getByText('Active').waitFor()
    expect(await card.innerText()).not.toContain('payment.added')

    await card.getByRole('button', { name: 'Send test' }).click()
    await card.getByText('The test was answered with 204.').waitFor()
    const [{ headers, body }] = received as [Got]
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'webhook.test' })
    status = 500
    await card.getByRole('button', { name: 'Send test' }).click()
    await card.getByText('The test failed: it answered 500.').waitFor()

    const { paymentReference } = await screens().call<{ paymentReference: string }>('/v1/request', {
      payee: '0x4e794Fd63b0b0c2F318275C744f055678Ff1dc41',
      amount: '1',
      invoiceCurrency: 'USDC',
      paymentCurrency: 'USDC-ETHEREUM',
      reference: `webhook-${randomUUID()}`,
    })
    await screens().call(`/v1/request/${paymentReference}:cancel`, {})
    await card.locator('tr', { hasText: 'request.updated' }).getByText('it answered 500').first().waitFor()
    status = 204
    await card.locator('.badge', { hasText: 'Delivered' }).first().waitFor()

    const before = received.length
    await card.getByRole('button', { name: 'Replay…' }).click()
    await card.getByLabel('Send changes again since').fill(localMinute(new Date(Date.now() - 60_000)))
    await card.getByRole('button', { name: 'Replay', exact: true }).click()
    await card.getByText('Changes since then are being sent again').waitFor()
    await expect.poll(() => received.length, { timeout: 15_000 }).toBeGreaterThan(before)

    expect(await findBarriers(page)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 320, height: 800 })
    expect([await findBarriers(page), await isTooWide(page)]).toEqual([[], false])

    page.on('dialog', (dialog) => void dialog.accept())
    await card.getByRole('button', { name: 'Pause' }).click()
    await card.getByText('by you').waitFor()
    await page.reload()
    await card.waitFor()
    expect(await page.locator('main').innerText()).not.toContain('whsec_')
    await card.getByRole('button', { name: 'Delete' }).click()
    await card.waitFor({ state: 'detached' })
    await page.context().close()
  })
}

/** As a field for a local time has it. */
function localMinute(at: Date): string {
  const pad = (number: number) => String(number).padStart(2, '0')
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`
}

/** An answer of ListKeys. */
interface Listed {
  readonly keys: readonly { readonly origins: readonly string[]; readonly shop?: object; readonly share?: string }[]
}

/** The keys of an account. @param screens - read when a test runs */
export function tryKeys(screens: () => Screens): void {
  const statusWith = async (key: string) =>
    (await fetch(`${screens().facts.baseUrl}/payments?limit=1`, { headers: { 'x-api-key': key } })).status

  it('creates a key, shows it once, rotates and revokes it, and says who did what', async () => {
    const page = await screens().open('/console/keys')
    await page.getByText('No keys yet').waitFor()
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Calls a minute').fill('many')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('use 1 to 1000000 calls a minute').waitFor()
    await page.getByLabel('Share').fill('2')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('"2" is no number above 0 and at most 1').waitFor()
    await page.getByLabel('Calls a minute').fill('60')
    await page.getByLabel('Share').fill('0.05')
    await page.getByLabel('requests:read').uncheck()
    await page.getByLabel('Note').fill('the export')
    await page.getByRole('button', { name: 'Create key' }).click()
    const shown = page.locator('.notice.good .copy')
    const key = await shown.first().innerText()
    expect(key).toMatch(/^wb_[0-9A-Za-z]{40}$/)
    expect(await shown.last().innerText()).toContain(`x-api-key: ${key}`)
    await page.getByRole('button', { name: 'Copy', exact: true }).click()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key)
    expect(await statusWith(key)).toBe(200)
    const row = page.getByRole('group', { name: 'Keys' }).locator('tr', { hasText: key.slice(0, 7) })
    for (const text of ['the export', 'payments:read', '60 a minute', 'never'])
      await row.getByText(text).first().waitFor()
    expect(await row.innerText()).not.toContain('requests:read')

    await row.getByRole('button', { name: 'Rotate' }).click()
    await page.getByLabel('The old key ends').selectOption('in an hour')
    await page.getByRole('button', { name: 'Make the new key' }).click()
    await row.getByText('Replaced').waitFor()
    const second = await shown.first().innerText()
    expect(second).not.toBe(key)
    expect([await statusWith(key), await statusWith(second)]).toEqual([200, 200])

    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('For').selectOption('publishable')
    await page.getByLabel('Pages of these origins').fill('https://shop.example/')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('is no origin: use https://shop.example').waitFor()
    await page.getByLabel('Pages of these origins').fill('https://shop.example, https://www.shop.example')
    const logo = (text: string) => ({ name: 'logo', mimeType: 'image/png', buffer: Buffer.from(text) })
    await page.getByLabel('Logo').setInputFiles(logo('no image'))
    await page.getByLabel('Radius').fill('33')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('it is no PNG, JPEG, GIF, WebP or SVG image').waitFor()
    await page.getByText('it is not a whole number of pixels from 0 to 32').waitFor()
    await page.getByLabel('Logo').setInputFiles(logo(`<svg>${' '.repeat(16_384)}</svg>`))
    await page.getByLabel('Radius').fill('8')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('it has more than 16384 bytes').waitFor()
    await page.setViewportSize({ width: 390, height: 800 })
    expect([await findBarriers(page), await isTooWide(page)]).toEqual([[], false])
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByLabel('Logo').setInputFiles(logo('<svg xmlns="http://www.w3.org/2000/svg"/>'))
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('pages of https://shop.example, https://www.shop.example').waitFor()
    expect(await shown.first().innerText()).toMatch(/^wbp_[0-9A-Za-z]{40}$/)
    const { keys: made } = await screens().call<Listed>('/v1/keys')
    expect(made.find(({ origins }) => origins.length > 0)?.shop).toEqual({
      logo: expect.stringMatching(/^data:image\/svg\+xml;base64,/),
      cornerRadius: 8,
    })
    expect(made.filter(({ share }) => share === '0.05')).toHaveLength(2)
    await page.getByText('What was done').click()
    await page.locator('tr', { hasText: 'Rotated' }).getByText('demo').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 800 })
      expect([await findBarriers(page), await isTooWide(page)]).toEqual([[], false])
    }

    page.on('dialog', (dialog) => void dialog.accept())
    await page.setViewportSize({ width: 1280, height: 900 })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await row.locator('.badge', { hasText: 'Revoked' }).waitFor()
    await expect.poll(() => statusWith(key), { timeout: 10_000 }).toBe(401)
    await page.reload()
    await row.locator('.badge', { hasText: 'Revoked' }).waitFor()
    for (const secret of [key, second]) expect(await page.locator('main').innerText()).not.toContain(secret)
    await page.context().close()
  })

  it('shows more keys than a page holds, page by page', async () => {
    for (let n = 0; n < 100; n++) {
      const { id } = await screens().call<{ id: string }>('/v1/keys', { scopes: ['payments:read'], note: `many ${n}` })
      await screens().call(`/v1/keys/${id}:revoke`, {})
    }
    const page = await screens().open('/console/keys')
    const rows = page.getByRole('group', { name: 'Keys' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(100)
    await page.getByText('many 99', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Next page' }).click()
    await page.getByText('many 0', { exact: true }).waitFor()
    expect(await rows.count()).toBeLessThan(100)
    await page.getByRole('link', { name: 'Previous page' }).click()
    await page.getByText('many 99', { exact: true }).waitFor()

    await page.getByText('What was done').click()
    const changes = page.getByRole('group', { name: 'What was done' }).locator('tbody tr')
    const times = () => changes.locator('time').evaluateAll((all) => all.map((each) => each.getAttribute('datetime')))
    expect(await changes.count()).toBe(100)
    const newest = await times()
    const paging = page.getByRole('navigation', { name: 'Pages of what was done' })
    await paging.getByRole('link', { name: 'Next page' }).click()
    await paging.getByRole('link', { name: 'Previous page' }).waitFor()
    expect((await times())[0]! <= newest.at(-1)!).toBe(true)
    await page.getByText('many 99', { exact: true }).waitFor()
    expect(await findBarriers(page)).toEqual([])
    await paging.getByRole('link', { name: 'Previous page' }).click()
    await expect.poll(times).toEqual(newest)
    await page.context().close()
  })
}
