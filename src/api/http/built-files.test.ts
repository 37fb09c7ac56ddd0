import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBuiltFiles } from './built-files.ts'
import type { OpenFile } from './open-files.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'waybill-built-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const framing = 'https://shop.example'
const open = (demoKey?: string) =>
  createBuiltFiles({ folder, originsOfKey: async (key) => (key === 'known' ? [framing] : undefined), demoKey })

let builds = 0
/** Writes a build as `npm run build` does, the manifest last. */
function build(files: Readonly<Record<string, string>>): void {
  builds += 1
  for (const [path, body] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), body)
  }
  const digests = Object.fromEntries(Object.keys(files).map((path) => [path, `digest${builds}`]))
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ sources: '', files: digests }))
  utimesSync(join(folder, 'manifest.json'), builds, builds)
}

const bodyAt = async (files: ReturnType<typeof open>, path: string) =>
  String(((await files.read(path)) as OpenFile).body)
const page = (name: string) => `<html><head><link rel="icon"></head>${name}</html>`
const whole = {
  'console.html': page('console'),
  'pay.html': page('pay'),
  'docs.html': page('docs'),
  'docs/start.html': page('start'),
  'docs/start.md': '# Start',
  'console/assets/a-1.js': 'a()',
  'console/assets/a-1.js.gz': 'gz',
  'console/assets/a-1.js.br': 'br',
}

describe('files that are built', () => {
  it('are answered with a sentence until there is a build, and then served', async () => {
    const files = open()
    expect(await files.read('/console')).toEqual({ notBuilt: expect.stringMatching(/not built yet/) })
    build(whole)
    expect(await files.read('/console')).toMatchObject({ contentType: 'text/html; charset=utf-8' })
    expect(await bodyAt(files, '/console/payments')).toContain('console')
  })

  it('are those of the newest build', async () => {
    build(whole)
    const files = open()
    await files.read('/docs/start')
    build({ ...whole, 'docs/start.html': page('newer') })
    expect(await bodyAt(files, '/docs/start')).toContain('newer')
  })

  it.each([
    ['/console/assets/a-1.js', 'text/javascript; charset=utf-8', true],
    ['/docs', 'text/html; charset=utf-8', undefined],
    ['/docs/start.md', 'text/markdown; charset=utf-8', undefined],
  ])('%s has its type', async (path, contentType, isImmutable) => {
    build(whole)
    const file = (await open().read(path)) as { contentType: string; isImmutable?: boolean }
    expect([file.contentType, file.isImmutable]).toEqual([contentType, isImmutable])
  })

  it.each([
    '/docs/nothing',
    '/docs/../manifest.json',
    '/docs/manifest.json',
    '/docs/__proto__',
    '/console/assets/none.js',
  ])('there is no %s', async (path) => {
    build(whole)
    expect(await open().read(path)).toBeUndefined()
  })

  it('begin with the key of a demo in a demo alone', async () => {
    build(whole)
    expect(await bodyAt(open('demo'), '/console')).toContain('<meta name="waybill-key" content="demo">')
    expect(await bodyAt(open(), '/console')).not.toContain('waybill-key')
  })

  it.each([
    ['key=known', framing],
    ['key=other', "'none'"],
    ['', "'none'"],
  ])('the checkout page with %j may be framed by %s', async (query, framedBy) => {
    build(whole)
    const { policy } = (await open().read('/pay/0x92a4a5b4a45fd0a1', query)) as { policy: () => Promise<string> }
    expect(await policy()).toMatch(new RegExp(`frame-ancestors ${framedBy}$`))
  })
})
