import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeApi } from '../../src/api/openapi/describe-api.ts'
import { createPaymentsServices, type PaymentsCalls } from '../../src/api/services/payments-services.ts'
import { type BuiltFile, digestOf } from '../bundle/built-file.ts'
import { markReasons, writeApiPages } from './api-pages.ts'
import { writeOverview } from './overview.ts'
import { readDocuments } from './read-documents.ts'
import { renderPage } from './render-page.ts'

/**
 * Writes the documentation and the reference of the API: a page and its Markdown for each, and /llms.txt.
 *
 * @param root - the project's folder
 */
export async function writeReference(root: string): Promise<readonly BuiltFile[]> {
  const assets = join(import.meta.dirname, 'assets')
  const [documents, tokens, rules, code, packageFile] = await Promise.all([
    readDocuments(root),
    readFile(join(import.meta.dirname, '../shared/tokens.css'), 'utf8'),
    readFile(join(assets, 'reference.css'), 'utf8'),
    readFile(join(assets, 'reference.js'), 'utf8'),
    readFile(join(root, 'package.json'), 'utf8'),
  ])
  const { version: release } = JSON.parse(packageFile) as { version: string }
  const services = createPaymentsServices({} as PaymentsCalls)
  const description = describeApi({ services, version: '3.1', release })
  const others = [...writeApiPages(description), ...documents]
  const about = { ...description.info, description: markReasons(description)(description.info.description) }
  const pages = [writeOverview(about, others), ...others]
  const style = { path: `docs/assets/reference-${digestOf(tokens + rules)}.css`, body: tokens + rules }
  const script = { path: `docs/assets/reference-${digestOf(code)}.js`, body: code }
  const frame = { pages, style: `/${style.path}`, script: `/${script.path}`, release }
  return [
    style,
    script,
    ...pages.flatMap((page) => [
      { path: `${page.url.slice(1)}.html`, body: renderPage(frame, page) },
      { path: page.source.slice(1), body: page.markdown },
    ]),
  ]
}
