import { afterAll, beforeAll, expect, it } from 'vitest'
import type { OpenFile, OpenFiles } from '../../src/api/http/open-files.ts'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { authenticateGood, recordingLogger } from '../support/clients/echo-service.ts'

const page: OpenFile = {
  contentType: 'text/html; charset=utf-8',
  body: '<p>text</p>'.repeat(200),
  etag: 'W/"a"',
  policy: "default-src 'none'",
}
const style: OpenFile = { contentType: 'text/css; charset=utf-8', body: 'p{}', etag: 'W/"b"', isImmutable: true }
const known: Readonly<Record<string, OpenFile | { readonly location: string }>> = {
  '/docs': page,
  '/docs/style.css': style,
  '/docs/': { location: '/docs' },
}
const openFiles: OpenFiles = {
  paths: ['/docs'],
  covers: (path) => path.startsWith('/docs'),
  read: async (path) => known[path],
}

let listener: Listener
let counted = 0
let isLimited = false

beforeAll(async () => {
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    openFiles,
    countOpen: () => {
      counted += 1
      if (isLimited) throw waybillError('RATE_LIMITED', { limit: 1, retryAfterSeconds: 1 })
    },
  })
})

afterAll(() => listener.stop({ graceMs: 1000 }))

function ask(path: string, method = 'GET', headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(listener.url + path, { method, headers, redirect: 'manual' })
}

it('is sent without a key, compressed, to pages of every origin, with its policy', async () => {
  const answer = await ask('/docs', 'GET', { origin: 'https://any.example', 'accept-encoding': 'br' })
  expect(answer.status).toBe(200)
  expect(await answer.text()).toBe(page.body)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-encoding': 'br',
    'cache-control': 'public, no-cache',
    'content-security-policy': "default-src 'none'",
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': '*',
    vary: 'accept-encoding',
    etag: 'W/"a"',
  })
})

it.each([
  ['a tag that still holds', 'GET', '/docs', { 'if-none-match': 'W/"a"' }, 304],
  ['a tag of before', 'GET', '/docs', { 'if-none-match': 'W/"z"' }, 200],
  ['HEAD', 'HEAD', '/docs', {}, 200],
  ['a slash at the end', 'GET', '/docs/', {}, 308],
  ['POST', 'POST', '/docs', {}, 405],
  ['OPTIONS', 'OPTIONS', '/docs', {}, 204],
  ['no such page', 'GET', '/docs/nothing', {}, 404],
])('%s is answered as HTTP says', async (_, method, path, headers, status) => {
  counted = 0
  const answer = await ask(path, method, headers)
  expect(answer.status).toBe(status)
  expect(counted).toBe(1)
  if (status === 405 || status === 204) expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
  if (status === 308) expect(answer.headers.get('location')).toBe('/docs')
  if (status === 404) expect(await answer.text()).toContain('begin at /docs')
  if (method === 'HEAD' || status === 304) expect(await answer.text()).toBe('')
})

it('is where the root leads', async () => {
  const answer = await ask('/')
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('at /; begin at /docs"')])
})

it('may be kept for ever where its path changes with its content', async () => {
  const answer = await ask('/docs/style.css')
  expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
})

it('is suggested for a path that is nearly its own', async () => {
  expect(await (await ask('/doc')).text()).toContain('did you mean /docs?')
})

it('counts against the address, which may have asked too often', async () => {
  isLimited = true
  expect((await ask('/docs')).status).toBe(429)
  isLimited = false
})
