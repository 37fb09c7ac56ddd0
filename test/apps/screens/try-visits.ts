/** Going through the lists: into a row and back, in tabs, on paper and on a phone. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { findBarriers, isTooWide, type Screens, untilWritten } from './open-screens.ts'
import { writtenView } from './written-days.ts'

const rowsOf = (page: Page) => page.locator('table tbody tr.linked')
const close = (page: Page) => page.context().close()

/** Where each row stands in the window, by its link. */
const placesOf = (page: Page) =>
  rowsOf(page).evaluateAll((rows) =>
    rows.map((row) => [row.querySelector('a')?.getAttribute('href'), Math.round(row.getBoundingClientRect().top)]),
  )

/** @param screens - read when a test runs */
export function tryVisits(screens: () => Screens): void {
  it('comes back to the same rows in the same place, by Back and by the link of the page', async () => {
    await untilWritten(screens().call, 8)
    for (const path of ['/console', `${writtenView}&sortBy=amount`]) {
      const page = await screens().open(path)
      await page.locator('.legend li').first().waitFor()
      await rowsOf(page).nth(49).scrollIntoViewIfNeeded()
      // Until the list notices that somebody reads, and the browser has kept the place.
      await page.waitForTimeout(500)
      const before = await placesOf(page)
      const leave = [() => page.goBack(), () => page.locator('main > a').click()]
      for (const goBack of leave) {
        await rowsOf(page).nth(40).locator('a').click()
        await page.getByText('Timeline').waitFor()
        await goBack()
        await expect.poll(() => placesOf(page)).toEqual(before)
      }
      await close(page)
    }
  })

  it.each([
    ['payments', writtenView],
    ['requests', '/console/requests'],
  ])('opens a row of the %s in a tab of its own, by the middle button anywhere in it', async (_, path) => {
    const page = await screens().open(path)
    const row = rowsOf(page).nth(2)
    const href = await row.locator('a').first().getAttribute('href')
    const { width, height } = (await row.boundingBox()) ?? { width: 0, height: 0 }
    // On an amount, and where nothing is written.
    const places = [{ position: { x: width - 4, y: height / 2 } }, {}]
    for (const [index, options] of places.entries()) {
      const target = index === 0 ? row : row.locator('.amount').first()
      const [tab] = await Promise.all([
        page.context().waitForEvent('page'),
        target.click({ button: 'middle', ...options }),
      ])
      await tab.waitForURL((url) => url.pathname === href)
      await tab.close()
    }
    await row.locator('.amount').first().click()
    await expect.poll(() => new URL(page.url()).pathname).toBe(href)
    await close(page)
  })

  it('keeps payer, payee and reference on paper', async () => {
    const page = await screens().open(writtenView, { viewport: { width: 718, height: 1000 } })
    await rowsOf(page).first().waitFor()
    await page.emulateMedia({ media: 'print' })
    for (const name of ['Payer', 'Payee', 'Reference'])
      expect(await page.getByRole('columnheader', { name }).isVisible()).toBe(true)
    for (const cell of [6, 7, 8])
      expect(await rowsOf(page).first().locator(`td:nth-child(${cell})`).isVisible()).toBe(true)
    expect(await page.getByRole('navigation').count()).toBe(0)
    expect(await isTooWide(page)).toBe(false)
    await close(page)
  })

  it('says on a phone whose an address is', async () => {
    const page = await screens().open(writtenView, { viewport: { width: 320, height: 700 } })
    await rowsOf(page).first().waitFor()
    const labels = await rowsOf(page)
      .first()
      .locator('td:has(.copy)')
      .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content.replace(/["\s]/g, '')))
    expect(labels).toEqual(['Payer', 'Payee'])
    expect(await isTooWide(page)).toBe(false)
    expect(await findBarriers(page)).toEqual([])
    await close(page)
  })

  it('hides nothing that has the focus under the head of the page', async () => {
    const page = await screens().open(writtenView, { viewport: { width: 390, height: 500 } })
    await rowsOf(page).nth(30).locator('a').focus()
    for (const _ of Array(12)) await page.keyboard.press('ArrowUp')
    const [head, link] = await Promise.all([page.locator('.top').boundingBox(), page.locator(':focus').boundingBox()])
    expect(link?.y).toBeGreaterThanOrEqual((head?.y ?? 0) + (head?.height ?? 0))
    await close(page)
  })
}
