import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, openScreens, type Screens } from './open-screens.ts'

/**
 * Runs tests with a demo and a browser of their own; skipped, and said so, where there is no browser.
 *
 * @param days - how much history they need, since the demo imports it while they begin
 */
export function describeInBrowser(name: string, days: number, tests: (screens: () => Screens) => void): void {
  const browser = findBrowser()
  if (browser === undefined)
    console.log(`${name} not tried: there is no Chromium here; install one or name it in CHROMIUM`)
  describe.skipIf(browser === undefined)(`${name}, in a browser`, () => {
    let screens: Screens
    let opening: Promise<Screens> | undefined
    beforeAll(async () => {
      opening = openScreens(browser ?? '', days)
      screens = await opening
    })
    // Also what comes up after the time for it.
    afterAll(async () => (await opening?.catch(() => undefined))?.stop())
    tests(() => screens)
    it('logs no error, and nothing that the policy forbids', () => {
      expect(screens.faults).toEqual([])
    })
  })
}
