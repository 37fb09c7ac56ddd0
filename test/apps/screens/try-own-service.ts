/** What people see of a service that is no demo: it asks for a key, keys have scopes, chains have explorers and a past to read. */

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findBarriers, type Screens } from './open-screens.ts'
import { type OwnService, startOwnService } from './own-service.ts'

const ALL = 'payments:read,requests:read,requests:write,routes:read,chains:read'

interface StoredRequest {
  readonly paymentReference: string
  readonly requestId: string
}

const TERMS = ['requestId', 'salt', 'payee', 'amount', 'invoiceCurrency', 'paymentCurrency', 'network', 'reference']

/** What the tests share, made before them. */
interface Scene {
  service: OwnService
  /** With all scopes of an account. */
  key: string
  paid: StoredRequest
}

/** @param screens - read when a test runs */
export function tryOwnService(screens: () => Screens): void {
  const scene = {} as Scene
  beforeAll(async () => {
    scene.service = await startOwnService(screens())
    scene.key = await scene.service.keyWith(ALL)
    scene.paid = await takeOverPaidRequest(screens(), scene.service.baseUrl, scene.key)
  })
  afterAll(() => scene.service?.stop())
  // First: the past is read within a minute.
  tryPast(screens, scene)
  tryKeys(screens, scene)
  tryExplorers(screens, scene)
  tryScopes(screens, scene)
  tryWatch(screens, scene)
}

async function openWith(screens: Screens, { service, key }: Scene, path: string, typed = key): Promise<Page> {
  const page = await screens.open(service.baseUrl + path)
  await page.getByLabel('API key').fill(typed)
  await page.getByRole('button', { name: 'Open' }).click()
  return page
}

const close = (page: Page) => page.context().close()

/** Detection finds the payment within seconds of the request. */
async function untilPaymentIsFound({ service, key, paid }: Scene): Promise<void> {
  const count = async () => {
    const search = `${service.baseUrl}/payments?paymentReference=${paid.paymentReference}`
    const answer = await fetch(search, { headers: { 'x-api-key': key } })
    return ((await answer.json()) as { payments: unknown[] }).payments.length
  }
  await expect.poll(count, { timeout: 30_000 }).toBeGreaterThan(0)
}

function tryPast(screens: () => Screens, scene: Scene): void {
  it('shows how far the past of a chain has been read', async () => {
    const page = await openWith(screens(), scene, '/console/chains')
    const bar = page.getByRole('progressbar', { name: /POLYGON/ })
    await bar.waitFor()
    const before = await bar.evaluate((element) => (element as HTMLProgressElement).value)
    await expect
      .poll(() => bar.evaluate((element) => (element as HTMLProgressElement).value), { timeout: 30_000 })
      .toBeGreaterThan(before)
    expect(await findBarriers(page)).toEqual([])
    await close(page)
  })
}

function tryKeys(screens: () => Screens, scene: Scene): void {
  it('asks for a key, says which one does not do, and forgets it', async () => {
    const page = await openWith(screens(), scene, '/console', await scene.service.publishableKey())
    await page.getByRole('alert').getByText('This is a publishable key').waitFor()
    await page.getByLabel('API key').fill(`wb_${'0'.repeat(40)}`)
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('This key is invalid').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await page.getByLabel('API key').fill(scene.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Payments' }).first().waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Forget key' }).click()
    await page.getByLabel('API key').waitFor()
    const kept = await page.evaluate(() => [sessionStorage, localStorage].flatMap((storage) => Object.values(storage)))
    expect(kept).not.toContain(scene.key)
    await close(page)
  })

  it('makes a link to pay with a publishable key, and takes no secret one', async () => {
    const page = await openWith(screens(), scene, `/console/requests/${scene.paid.paymentReference}`)
    await page.getByLabel('Publishable key').fill(scene.key)
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByRole('alert').getByText('This is a secret key').waitFor()
    const publishable = await scene.service.publishableKey()
    await page.getByLabel('Publishable key').fill(publishable)
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = await page.locator('.pay-link').innerText()
    expect(link).toBe(`${scene.service.baseUrl}/pay/${scene.paid.paymentReference}?key=${publishable}`)
    await page.goto(link)
    await page.getByText('Payment complete').first().waitFor()
    await close(page)
  })
}

function tryExplorers(screens: () => Screens, scene: Scene): void {
  it('links a payment to the explorer of its chain', async () => {
    await untilPaymentIsFound(scene)
    const page = await openWith(screens(), scene, `/console/payments?q=${scene.paid.paymentReference}`)
    const row = page.locator('table.payments tbody tr').first()
    await row.waitFor()
    await row.getByRole('link').first().click()
    const links = page.locator('a[href^="https://explorer.test/"]')
    await links.first().waitFor()
    const targets = await links.evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
    expect(targets.filter((url) => /\/tx\/0x[0-9a-f]{64}$/.test(url)).length).toBeGreaterThan(0)
    expect(targets.filter((url) => /\/address\/0x[0-9a-fA-F]{40}$/.test(url)).length).toBeGreaterThan(1)
    expect(await links.first().getAttribute('rel')).toBe('noreferrer')
    await close(page)
  })
}

function tryScopes(screens: () => Screens, scene: Scene): void {
  it('says which scope a key lacks, and shows the rest', async () => {
    await untilPaymentIsFound(scene)
    const narrow = await scene.service.keyWith('payments:read')
    const page = await openWith(screens(), scene, '/console/payments', narrow)
    await page.locator('table.payments tbody tr').first().waitFor()
    for (const [place, scope] of [
      ['Requests', 'requests:read'],
      ['Chains', 'chains:read'],
    ] as const) {
      await page.getByRole('navigation').getByRole('link', { name: place }).click()
      const said = page.getByText(`Your key lacks the scope ${scope}`)
      await said.first().waitFor()
      expect([place, await said.count()]).toEqual([place, 1])
    }
    await close(page)
    const other = await openWith(screens(), scene, '/console/payments', await scene.service.keyWith('requests:read'))
    await other.getByText('Your key lacks the scope payments:read').first().waitFor()
    await close(other)
  })
}

function tryWatch(screens: () => Screens, scene: Scene): void {
  it('shows a request as live again after a restart, and asks for a key once that is revoked', async () => {
    const { service, paid } = scene
    const key = await service.keyWith(ALL)
    const page = await openWith(screens(), scene, `/console/requests/${paid.paymentReference}`, key)
    const live = page.getByText('Live', { exact: true })
    await live.waitFor()
    // It is hidden where the frame says that the service is away.
    const cut = page.getByText('Out of date. Reconnecting…').waitFor({ state: 'attached' })
    await Promise.all([cut, service.restart()])
    await live.waitFor({ timeout: 60_000 })
    await service.revoke(key)
    await page.getByRole('alert').getByText('This key is invalid').waitFor({ timeout: 60_000 })
    expect(await page.getByLabel('API key').isVisible()).toBe(true)
    await close(page)
  })
}

/** A request that was paid in the demo, stored here as well. */
async function takeOverPaidRequest({ call }: Screens, baseUrl: string, key: string): Promise<StoredRequest> {
  const { requests } = await call<{ requests: (StoredRequest & Record<string, string>)[] }>(
    '/v1/request?status=PAID&network=ETHEREUM&limit=100',
  )
  const [found] = requests
  if (found === undefined) throw new Error('the demo has no paid request on ETHEREUM')
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const body = JSON.stringify(Object.fromEntries(TERMS.map((name) => [name, found[name]])))
  const answer = await fetch(`${baseUrl}/v1/request`, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(await answer.text())
  return found
}
