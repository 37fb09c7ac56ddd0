/** The files of the screens as the process serves them: their sizes, headers and policies. */
import { hash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { weigh } from '../support/built-apps.ts'
import { issuePublishableKey } from '../support/keys.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

let running: TestService
let key: string
beforeAll(async () => {
  running = await startTestService()
  const repository = createApiKeyRepository(running.database.knex)
  const origins = ['https://shop.example', 'https://www.shop.example']
  key = (await issuePublishableKey(repository, { account: 'shop', origins, now: NOW })).key
})
afterAll(() => running?.stop())

const get = (path: string, init: RequestInit = {}) => fetch(running.url + path, init)
const policyOf = (answer: Response) => answer.headers.get('content-security-policy') ?? ''
const PAGE = '/pay/0x92a4a5b4a45fd0a1'

it('weigh as little as DESIGN allows', async () => {
  // Before the first payment is seen: React, the list and its parts. 320 kB are allowed.
  expect((await weigh('console', 'br')).scripts).toBeLessThan(230_000)
  const { page, style, scripts, scriptCount } = await weigh('pay', 'br')
  expect(scriptCount).toBe(2)
  expect(page + style + scripts).toBeLessThan(60_000)
  const answer = await get(PAGE, { headers: { 'accept-encoding': 'br' } })
  expect(answer.headers.get('content-encoding')).toBe('br')
})

it.each([
  ['/console', 200],
  ['/console/payments/1234?status=FAILED', 200],
  ['/console/', 308],
  [PAGE, 200],
  ['/pay', 404],
  ['/pay/', 404],
  ['/pay/a/b', 404],
  ['/console/assets/none.js', 404],
])('%s is answered with %i', async (path, status) => {
  expect((await get(path, { redirect: 'manual' })).status).toBe(status)
})

it('are pages without a script of their own or anything from elsewhere, framed by nobody', async () => {
  const answer = await get('/console')
  const html = await answer.text()
  // The style of the outline alone, by its hash.
  const [, outline = ''] = /<style>([^<]+)<\/style>/.exec(html) ?? []
  const style = `'sha256-${hash('sha256', outline, 'base64')}'`
  expect(policyOf(answer)).toBe(
    `default-src 'none'; script-src 'self'; style-src 'self' ${style}; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
  expect(html).not.toMatch(/<script>|style=|https?:\/\/(?!www\.w3\.org)/)
  // The key of a demo is there in a demo alone.
  expect(html).not.toContain('waybill-key')
})

it.each([
  ['the origins of its key', () => key, 'https://shop.example https://www.shop.example'],
  ['nobody for a key that is not known', () => `wbp_${'x'.repeat(40)}`, "'none'"],
  ['nobody for a secret key', () => running.keys.shop, "'none'"],
  ['nobody without a key', () => '', "'none'"],
])('may be framed by %s', async (_, keyOf, framedBy) => {
  const answer = await get(`${PAGE}?key=${keyOf()}`)
  expect(policyOf(answer)).toMatch(new RegExp(`frame-ancestors ${framedBy}$`))
})

it('keep their scripts for ever, compressed, and ask again for their pages', async () => {
  const page = await get('/console')
  expect(page.headers.get('cache-control')).toBe('public, no-cache')
  const [path = ''] = /\/console\/assets\/console-\w+\.js/.exec(await page.text()) ?? []
  const script = await get(path, { headers: { 'accept-encoding': 'gzip' } })
  expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(script.headers.get('content-encoding')).toBe('gzip')
  const smaller = await get(path, { headers: { 'accept-encoding': 'gzip, br' } })
  expect(smaller.headers.get('content-encoding')).toBe('br')
  expect(await smaller.text()).toBe(await script.text())
  const again = await get(path, { headers: { 'if-none-match': script.headers.get('etag') ?? '' } })
  expect(again.status).toBe(304)
  expect((await get(path, { method: 'HEAD' })).headers.get('content-type')).toBe('text/javascript; charset=utf-8')
})

it('has no demo wallets outside of a demo', async () => {
  for (const path of ['/demo/wallets', '/demo/wallets/direct']) expect((await get(path)).status).toBe(404)
})
