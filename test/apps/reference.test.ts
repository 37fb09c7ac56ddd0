import { execFileSync } from 'node:child_process'
import { posix } from 'node:path'
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { beforeAll, describe, expect, it, test } from 'vitest'
import { headingId, renderMarkdown } from '../../apps/reference/render-page.ts'
import { createSearch, type FoundSection } from '../../apps/reference/search.ts'
import { createBuiltFiles } from '../../src/api/http/built-files.ts'
import { joinOpenFiles, type OpenFile } from '../../src/api/http/open-files.ts'
import { describeApi } from '../../src/api/openapi/describe-api.ts'
import { createOpenApiFiles } from '../../src/api/openapi/openapi-files.ts'
import { createPaymentsServices, type PaymentsCalls } from '../../src/api/services/payments-services.ts'
import { builtFolder } from '../support/built-apps.ts'

const services = createPaymentsServices({} as PaymentsCalls)
const files = joinOpenFiles([
  createOpenApiFiles(services),
  createBuiltFiles({ folder: builtFolder, originsOfKey: async () => undefined, demoKey: undefined }),
])

/** Every file that a reader of /docs can come to, by path. */
const found = new Map<string, OpenFile>()

beforeAll(async () => {
  const waiting = ['/docs', '/llms.txt']
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue
    const file = await files.read(path)
    if (file === undefined || !('body' in file)) throw new Error(`a link leads to ${path}, where nothing is`)
    found.set(path, file)
    waiting.push(...linksOf(path, file).map(({ target }) => target))
  }
})

function linksOf(path: string, { contentType, body }: OpenFile) {
  const pattern = contentType.startsWith('text/html')
    ? /(?:href|src)="([^"]+)"/g
    : path.endsWith('.txt')
      ? /\]\(([^)]+)\)/g
      : undefined
  if (pattern === undefined) return []
  return [...String(body).matchAll(pattern)]
    .map(([, link = '']) => link)
    .filter((link) => !/^(?:https?|data):/.test(link))
    .map((link) => {
      const [target = '', anchor] = link.split('#')
      return { target: target === '' ? path : posix.resolve(posix.dirname(path), target), anchor }
    })
}

const pages = () => [...found].filter(([, { contentType }]) => contentType.startsWith('text/html'))

describe('the definitions', () => {
  const bytesOf = (path: string) => Buffer.from(found.get(path)?.body ?? '')

  it('are served as files that a compiler takes, imports included', () => {
    const list = execFileSync('tar', ['-tzf', '-'], { input: bytesOf('/protos.tar.gz'), encoding: 'utf8' }).split('\n')
    expect(list).toEqual(
      expect.arrayContaining([
        'payments/v1/payment.proto',
        'google/api/annotations.proto',
        'google/rpc/status.proto',
        'buf/validate/validate.proto',
      ]),
    )
    expect(list.filter((path) => path.startsWith('grpc'))).toEqual([])
  })

  it('are served as descriptors, each after its imports', () => {
    const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytesOf('/descriptors.binpb')))
    const search = registry.getService('payments.v1.PaymentSearchService')
    expect(search?.methods.map(({ name }) => name)).toContain('SearchPayments')
    const names = fromBinary(FileDescriptorSetSchema, bytesOf('/descriptors.binpb')).file
    for (const [place, { dependency }] of names.entries()) {
      const before = names.slice(0, place).map(({ name }) => name)
      expect(before).toEqual(expect.arrayContaining(dependency))
    }
  })
})

describe('the pages of /docs', () => {
  it('lead to every operation, guide and schema, and to no anchor that is not there', () => {
    expect([...found.keys()]).toEqual(
      expect.arrayContaining([
        '/docs/api/routes',
        '/docs/api/schemas',
        '/docs/guides/accept-payments',
        '/openapi.json',
      ]),
    )
    const dead = pages().flatMap(([path, file]) =>
      linksOf(path, file)
        .filter(
          ({ target, anchor }) => anchor !== undefined && !String(found.get(target)?.body).includes(`id="${anchor}"`),
        )
        .map(({ target, anchor }) => `${path}: ${target}#${anchor}`),
    )
    expect(dead).toEqual([])
  })

  it.each([
    ['rotate key', '/docs/api/keys'],
    ['keys rotate overlap', '/docs/reference/commands'],
    ['idempotency-key', '/docs/reference/requests'],
    ['NO_CONVERSION_PATH', '/docs/reference/reasons'],
    ['referencePrefix', '/docs/reference/payments'],
    ['pgbounc', '/docs/guides/postgresql'],
    ['refundRefernce', '/docs/guides/refund-a-payment'],
  ])('are found by %j, among others %s, each at a place that is there', async (words, wanted) => {
    const path = /data-sections="([^"]+)"/.exec(String(found.get('/docs')?.body))?.[1] ?? ''
    const file = await files.read(path)
    if (file === undefined || !('body' in file)) throw new Error(`${path} is not served`)
    const results = createSearch(JSON.parse(String(file.body)) as FoundSection[])(words)
    expect(results.slice(0, 12).map(({ url }) => url.split('#')[0])).toContain(wanted)
    const dead = results.filter(({ url }) => {
      const [page = '', anchor] = url.split('#')
      return anchor !== undefined && !String(found.get(page)?.body).includes(`id="${anchor}"`)
    })
    expect(dead).toEqual([])
    expect(results.every(({ excerpt }) => excerpt.length > 0 && excerpt.length < 150)).toBe(true)
  })

  it('hold no script, style or handler of their own, no unescaped text, and nothing from another host', () => {
    for (const [, { body, policy }] of pages()) {
      const text = String(body)
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
      expect(policy).not.toContain('unsafe')
      expect(text.match(/<style|<script(?! src="\/docs\/)|\sstyle=|\son\w+=|javascript:/gi)).toBeNull()
      expect(text.match(/(?:src|<link[^>]*href)="(?:https?:)?\/\//g)).toBeNull()
      expect(text).not.toMatch(/\bundefined\b<|\[object/)
      expect(text.replaceAll(/<(pre|code)\b.*?<\/\1>|<meta[^>]*>/gs, '')).not.toContain('`')
    }
  })

  it('name assets by their content, which may be kept for ever', () => {
    const assets = [...found].filter(([path]) => path.startsWith('/docs/assets/'))
    expect(assets.map(([path]) => path)).toEqual(
      expect.arrayContaining([expect.stringMatching(/-\w{8}\.css$/), expect.stringMatching(/-\w{8}\.js$/)]),
    )
    expect(assets.every(([, { isImmutable }]) => isImmutable)).toBe(true)
  })

  it('show for each operation a call that can be copied', () => {
    const text = pages()
      .map(([, { body }]) => String(body))
      .join('')
    for (const item of Object.values(describeApi({ services, version: '3.1', release: '' }).paths)) {
      for (const { operationId, 'x-alias-of': alias } of Object.values(item)) {
        if (alias === undefined) expect(text).toContain(`id="${operationId}"`)
      }
    }
    expect(text).toContain(
      'curl -s &quot;$WAYBILL/v1/request/0x1122334455667788/routes?wallet=0x70997970C51812dc3A010C7d01b50e0d17dc79C8&quot;',
    )
  })
})

test('/llms.txt has the form of llmstxt.org', () => {
  const text = String(found.get('/llms.txt')?.body)
  expect(text).toMatch(/^# Waybill\n\n> [^\n]+\n\n/)
  expect(text).toContain('\n## Optional\n')
  expect(text).toMatch(/\n- \[Reconcile[^\]]*\]\(\/docs\/guides\/reconcile\.md\)/)
})

test('a path with a slash at its end leads to the one without, and others to nothing', async () => {
  expect(await files.read('/docs/start/')).toEqual({ location: '/docs/start' })
  for (const path of [
    '/docs/nothing',
    '/docs/../package.json',
    '/docs/guides',
    '/docs//',
    '/docs/%2e%2e/package.json',
  ]) {
    expect((await files.read(path)) ?? {}).not.toHaveProperty('body')
  }
})

test.each([
  ['<script>alert(1)</script>', '&#60;script&#62;'],
  ['a <img src=x onerror=alert(1)> b', '&#60;img'],
  ['[x](javascript:alert(1))', '<p>x</p>'],
  ['`<b>`', '<code>&lt;b&gt;</code>'],
  ['## A `code` & more', '<h2 id="a-code--more">'],
])('the Markdown %s is shown as %s', (markdown, shown) => {
  const { body } = renderMarkdown(markdown, (href) => (href.startsWith('/') ? href : undefined))
  expect(body).toContain(shown)
  expect(body).not.toMatch(/<(?:script|img)/)
})

test.each([
  ['Errors', 'errors'],
  ['Calls a minute', 'calls-a-minute'],
  ['`LIFI_URL` and more', 'lifi_url-and-more'],
])('the heading %s has the anchor of GitHub, %s', (heading, id) => {
  expect(headingId(heading)).toBe(id)
})
