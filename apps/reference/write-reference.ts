import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OpenApiDocument } from '../../src/api/openapi/describe-api.ts'
import { describeApi } from '../../src/api/openapi/describe-api.ts'
import { createPaymentsServices, type PaymentsCalls } from '../../src/api/services/payments-services.ts'
import { type BuiltFile, digestOf } from '../bundle/built-file.ts'
import { bundleAssets } from '../bundle/bundle-app.ts'
import { type ArchivedFile, packTarGz } from '../bundle/tar.ts'
import { markReasons, writeApiPages } from './api-pages.ts'
import { writeChangelogFeed } from './changelog-feed.ts'
import { type MarkdownDocument, readDocuments, type Section } from './read-documents.ts'
import { renderDocument, renderPage } from './render-page.ts'
import type { FoundSection } from './search.ts'

/**
 * Writes the documentation and the reference of the API: a page and its Markdown for each, and /llms.txt.
 *
 * @param root - the project's folder
 */
export async function writeReference(root: string): Promise<readonly BuiltFile[]> {
  const [documents, { files, ...urls }, packageFile] = await Promise.all([
    readDocuments(root),
    bundleAssets('docs', 'apps/reference/assets/reference', 'js'),
    readFile(join(root, 'package.json'), 'utf8'),
  ])
  const { version: release } = JSON.parse(packageFile) as { version: string }
  const services = createPaymentsServices({} as PaymentsCalls)
  const description = describeApi({ services, version: '3.1', release })
  const others = [...writeApiPages(description), ...documents]
  const about = { ...description.info, description: markReasons(description)(description.info.description) }
  const pages = [writeOverview(about, others), ...others]
  const found = JSON.stringify(pages.flatMap((page) => sectionsOf(page, pages)))
  const sections = { path: `docs/assets/sections-${digestOf(found)}.json`, body: found }
  const changelog = documents.find(({ url }) => url === '/docs/changelog')?.markdown ?? ''
  const frame = { pages, ...urls, sections: `/${sections.path}`, release }
  return [
    ...files,
    sections,
    { path: 'docs/changelog.atom', body: writeChangelogFeed(changelog) },
    { path: 'protos.tar.gz', body: packTarGz(await readProtos(root)) },
    ...pages.flatMap((page) => [
      { path: `${page.url.slice(1)}.html`, body: renderPage(frame, page) },
      { path: page.source.slice(1), body: page.markdown },
    ]),
  ]
}

/** The parts of a page, as the search finds them. */
function sectionsOf(page: MarkdownDocument, pages: readonly MarkdownDocument[]): readonly FoundSection[] {
  return renderDocument(page, pages).parts.map(({ depth, heading, id, text }) =>
    depth === 1
      ? { id: page.url, page: page.title, heading: '', text }
      : { id: `${page.url}#${id}`, page: page.title, heading, text },
  )
}

/** The definitions of the API, with all that they import but what every compiler brings. */
async function readProtos(root: string): Promise<readonly ArchivedFile[]> {
  const [own, vendored] = ['proto', 'proto_vendor'].map((folder) => globSync('**/*.proto', { cwd: join(root, folder) }))
  const all = [
    ...(own ?? []).map((path) => ['proto', path] as const),
    ...(vendored ?? []).filter((path) => !path.startsWith('grpc')).map((path) => ['proto_vendor', path] as const),
  ]
  const sorted = all.toSorted(([, one], [, other]) => (one < other ? -1 : 1))
  return Promise.all(sorted.map(async ([folder, path]) => ({ path, body: await readFile(join(root, folder, path)) })))
}

/** Writes the page that leads to all others. It is /llms.txt too, in the form of llmstxt.org: a title, what it is, how to call it, and lists of links. */
function writeOverview(about: OpenApiDocument['info'], pages: readonly MarkdownDocument[]): MarkdownDocument {
  const [summary = '', ...more] = about.description.split('\n\n')
  const within = (...wanted: readonly Section[]) =>
    wanted.flatMap((name) => pages.filter(({ section }) => section === name).flatMap(linesOf)).join('\n')
  const markdown = [
    '# Waybill',
    `> ${summary}`,
    ...more,
    'Send a key in the header `x-api-key`; in the demo it is `demo`. Read the `reason` of an error, not its message. Paths below are of the host that served this file.',
    firstCall,
    '## Start and guides',
    within('Start', 'Guides'),
    '## API',
    `${within('API')}\n${descriptions}`,
    '## Reference',
    within('Reference'),
    '## Optional',
    `${within('Internals', 'Project')}\n`,
  ].join('\n\n')
  return { path: 'llms.txt', url: '/docs', source: '/llms.txt', section: 'Start', title: 'Overview', summary, markdown }
}

const firstCall = `\`\`\`sh
export WAYBILL=http://127.0.0.1:8080 WAYBILL_KEY=demo
curl -s "$WAYBILL/payments?status=CONFIRMED&limit=5" -H "x-api-key: $WAYBILL_KEY"
\`\`\``

const descriptions = `- [OpenAPI 3.1](/openapi.json): every path, parameter, answer and error, with examples
- [OpenAPI 3.2](/openapi-3.2.json): the same, with the messages of streams
- [Definitions](/protos.tar.gz) as .proto files with all that they import, and [descriptors](/descriptors.binpb) of all of them
- gRPC, gRPC-Web and Connect on the same port, with server reflection: [protocols](/docs/reference/protocols.md)
- [\`waybill mcp\`](/docs/reference/commands.md#tools-for-models): read-only tools for models, by the Model Context Protocol`

function linesOf({ source, title, summary, operations = [] }: MarkdownDocument): readonly string[] {
  const first = /^.*?[.](?=\s|$)/.exec(summary)?.[0] ?? summary
  return [
    `- [${title}](${source})${first === '' ? '' : `: ${first}`}`,
    ...operations.map(({ id, call, summary: says }) => `  - [\`${call}\`](${source}#${id}): ${says}.`),
  ]
}
