import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OpenFile } from '../../api/http/open-files.ts'
import type { OpenApiDocument } from '../../api/openapi/openapi-document.ts'
import { markReasons, writeApiPages } from './api-pages.ts'
import { writeOverview } from './overview.ts'
import { readDocuments } from './read-documents.ts'
import { renderPage } from './render-page.ts'

/** Makes the description of the API, for a release of this program. */
export type DescribeApi = (version: '3.1' | '3.2', release: string) => OpenApiDocument

/** Files by path, each made when it is first asked for. */
export type Pages = ReadonlyMap<string, () => OpenFile>

const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Makes the reference, the documentation and what programs read of them.
 *
 * @param root - the project's folder
 */
export async function makePages(root: string, describe: DescribeApi): Promise<Pages> {
  const assets = join(import.meta.dirname, 'assets')
  const [documents, tokens, rules, code, packageFile] = await Promise.all([
    readDocuments(root),
    readFile(join(import.meta.dirname, '../look/tokens.css'), 'utf8'),
    readFile(join(assets, 'reference.css'), 'utf8'),
    readFile(join(assets, 'reference.js'), 'utf8'),
    readFile(join(root, 'package.json'), 'utf8'),
  ])
  const { version: release } = JSON.parse(packageFile) as { version: string }
  const description = describe('3.1', release)
  const others = [...writeApiPages(description), ...documents]
  const about = { ...description.info, description: markReasons(description)(description.info.description) }
  const pages = [writeOverview(about, others), ...others]
  const rulesOfAll = tokens + rules
  const [style, script] = [
    `/docs/assets/reference-${digest(rulesOfAll)}.css`,
    `/docs/assets/reference-${digest(code)}.js`,
  ]
  const frame = { pages, style, script, release }
  return new Map<string, () => OpenFile>([
    ['/openapi.json', () => fileOf('application/json', JSON.stringify(description))],
    ['/openapi-3.2.json', () => fileOf('application/json', JSON.stringify(describe('3.2', release)))],
    [style, () => fileOf('text/css', rulesOfAll, { isImmutable: true })],
    [script, () => fileOf('text/javascript', code, { isImmutable: true })],
    ...pages.flatMap((page): [string, () => OpenFile][] => [
      [page.url, () => fileOf('text/html', renderPage(frame, page), { policy: POLICY })],
      [page.source, () => fileOf(page.source.endsWith('.md') ? 'text/markdown' : 'text/plain', page.markdown)],
    ]),
  ])
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 12)
}

function fileOf(type: string, body: string, more: Pick<OpenFile, 'policy' | 'isImmutable'> = {}): OpenFile {
  const contentType = type.startsWith('text/') ? `${type}; charset=utf-8` : type
  return { contentType, body, etag: `W/"${digest(body)}"`, ...more }
}
