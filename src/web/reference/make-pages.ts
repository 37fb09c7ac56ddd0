import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { OpenFile } from '../../api/http/open-files.ts'
import type { OpenApiDocument } from '../../api/openapi/openapi-document.ts'
import { type Html, html } from './html.ts'
import { writeLlmsText } from './llms-text.ts'
import { firstSentenceOf, type MarkdownDocument, readDocuments } from './read-documents.ts'
import { type ResolveLink, renderComment, renderLine, renderMarkdown } from './render-markdown.ts'
import {
  type OperationTerms,
  operationsOf,
  type PlacedOperation,
  renderExample,
  renderOperation,
} from './render-operation.ts'
import { type NavSection, type PageContent, renderPage } from './render-page.ts'
import { fieldsOf, renderFields } from './render-schema.ts'
import { createResolver } from './sample.ts'

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
  const [documents, tokens, rules, script, packageFile] = await Promise.all([
    readDocuments(root),
    readFile(join(import.meta.dirname, '../look/tokens.css'), 'utf8'),
    readFile(join(assets, 'reference.css'), 'utf8'),
    readFile(join(assets, 'reference.js'), 'utf8'),
    readFile(join(root, 'package.json'), 'utf8'),
  ])
  const { version: release } = JSON.parse(packageFile) as { version: string }
  const style = tokens + rules
  const described = describe('3.1', release)
  const stylePath = `/docs/assets/reference-${digest(style)}.css`
  const scriptPath = `/docs/assets/reference-${digest(script)}.js`
  const groups = groupsOf(described)
  const frame = { sections: sectionsOf(groups, documents), style: stylePath, script: scriptPath, release }
  const lazyPage = (make: () => PageContent) => (): OpenFile =>
    fileOf('text/html; charset=utf-8', renderPage(frame, make()), { policy: POLICY })
  return new Map<string, () => OpenFile>([
    ['/openapi.json', () => jsonFile(described)],
    ['/openapi-3.2.json', () => jsonFile(describe('3.2', release))],
    ['/llms.txt', () => fileOf('text/plain; charset=utf-8', writeLlmsText(described, documents))],
    [stylePath, () => fileOf('text/css; charset=utf-8', style, { isImmutable: true })],
    [scriptPath, () => fileOf('text/javascript; charset=utf-8', script, { isImmutable: true })],
    ['/docs', lazyPage(() => overview(described, groups, documents))],
    ['/docs/api/schemas', lazyPage(() => schemasPage(described))],
    ...groups.map((group) => [group.url, lazyPage(() => groupPage(described, group))] as const),
    ...documents.map((document) => [document.url, lazyPage(() => documentPage(document, documents))] as const),
    ...documents.map(
      ({ url, markdown }) => [`${url}.md`, () => fileOf('text/markdown; charset=utf-8', markdown)] as const,
    ),
  ])
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 12)
}

function fileOf(contentType: string, body: string, more: Pick<OpenFile, 'policy' | 'isImmutable'> = {}): OpenFile {
  return { contentType, body, etag: `W/"${digest(body)}"`, ...more }
}

function jsonFile(document: OpenApiDocument): OpenFile {
  return fileOf('application/json', JSON.stringify(document))
}

/** The operations of one service. */
export interface OperationGroup {
  readonly url: string
  readonly title: string
  readonly description: string
  readonly operations: readonly PlacedOperation[]
}

function groupsOf(document: OpenApiDocument): readonly OperationGroup[] {
  const operations = operationsOf(document)
  return document.tags.map(({ name, description }) => {
    const words = name.replace(/Service$/, '').split(/(?=[A-Z])/)
    return {
      url: `/docs/api/${words.join('-').toLowerCase()}`,
      title: words.map((word, index) => (index === 0 ? word : word.toLowerCase())).join(' '),
      description,
      operations: operations.filter(({ operation }) => operation.tags.includes(name)),
    }
  })
}

function isMain({ operation }: PlacedOperation): boolean {
  return operation['x-alias-of'] === undefined
}

function sectionsOf(groups: readonly OperationGroup[], documents: readonly MarkdownDocument[]): readonly NavSection[] {
  const within = (folder: string) =>
    documents.filter(({ path }) => posix.dirname(path) === folder).map(({ url, title }) => ({ url, title }))
  const api = groups.map(({ url, title, operations }) => ({
    url,
    title,
    links: operations
      .filter(isMain)
      .map(({ operation: { operationId } }) => ({ url: `${url}#${operationId}`, title: operationId })),
  }))
  return [
    { title: 'Start', links: [{ url: '/docs', title: 'Overview' }, ...within('docs')] },
    { title: 'API', links: [...api, { url: '/docs/api/schemas', title: 'Schemas' }] },
    { title: 'Guides', links: within('docs/guides') },
    { title: 'Reference', links: within('docs/reference') },
    { title: 'Internals', links: within('docs/internals') },
    { title: 'Project', links: within('.') },
  ]
}

function termsOf(document: OpenApiDocument): OperationTerms {
  const reasons = document['x-reasons']
  return {
    resolve: createResolver(document),
    comment: (text) => renderComment(text, (word) => Object.hasOwn(reasons, word)),
    reasons,
  }
}

function groupPage(document: OpenApiDocument, { url, title, description, operations }: OperationGroup): PageContent {
  const terms = termsOf(document)
  const sections = operations.filter(isMain).map((placed) => {
    const aliases = operations.filter(({ operation }) => operation['x-alias-of'] === placed.operation.operationId)
    return renderOperation(placed, aliases, terms)
  })
  return {
    url,
    title,
    summary: description.split('\n', 1)[0] ?? '',
    isWide: true,
    body: html`<h1>${title}</h1>
<div class="lead">${terms.comment(description)}</div>
${sections}`,
  }
}

function schemasPage(document: OpenApiDocument): PageContent {
  const terms = termsOf(document)
  const sections = Object.entries(document.components.schemas).map(([name, schema]) => {
    const fields = fieldsOf(schema, 'always')
    return html`<section class="schema" id="${name}" aria-labelledby="${name}-title">
<h2 id="${name}-title">${name} <a class="anchor" href="#${name}" aria-label="Link to this schema">#</a></h2>
${schema.description !== undefined && terms.comment(schema.description)}
${fields.length > 0 && renderFields(fields, terms)}
</section>
`
  })
  return {
    url: '/docs/api/schemas',
    title: 'Schemas',
    summary: 'Every message and enum of the API.',
    body: html`<h1>Schemas</h1>
<p class="lead">Every message and enum of the API. A field marked <span class="mark always">always</span> stands in every answer; any other is absent where it is unknown.</p>
${sections}`,
  }
}

function documentPage(document: MarkdownDocument, documents: readonly MarkdownDocument[]): PageContent {
  const { body, headings } = renderMarkdown(document.markdown, linksFrom(document, documents))
  return {
    url: document.url,
    title: document.title,
    summary: document.summary,
    body,
    markdown: `${document.url}.md`,
    headings: headings.filter(({ depth }) => depth === 2),
  }
}

/** Links between documents lead to their pages; files of the repository that are not served are no links. */
function linksFrom({ path }: MarkdownDocument, documents: readonly MarkdownDocument[]): ResolveLink {
  return (href) => {
    if (/^(?:https?:\/\/|#)/.test(href)) return href
    const [file = '', anchor] = href.split('#')
    const target = posix.normalize(posix.join(posix.dirname(path), file)).replace(/\/$/, '')
    const url = target === 'proto/payments/v1' ? '/docs/api/schemas' : urlAmong(target, documents)
    return url === undefined || anchor === undefined ? url : `${url}#${anchor}`
  }
}

function urlAmong(target: string, documents: readonly MarkdownDocument[]): string | undefined {
  return target === 'README.md' ? '/docs' : documents.find(({ path }) => path === target)?.url
}

function overview(
  document: OpenApiDocument,
  groups: readonly OperationGroup[],
  documents: readonly MarkdownDocument[],
): PageContent {
  const { comment } = termsOf(document)
  const about = document.info.description
  const guides = documents
    .filter(({ path }) => path.startsWith('docs/guides/'))
    .map(({ url, title, summary }) => {
      const says = summary !== '' && html`<p>${renderLine(firstSentenceOf(summary))}</p>`
      return html`<li><a href="${url}">${title}</a>${says}</li>\n`
    })
  return {
    url: '/docs',
    title: 'Waybill',
    summary: about.split('\n', 1)[0] ?? '',
    body: html`<h1>Waybill</h1>
<div class="lead">${comment(about)}</div>
<h2 id="call">A first call</h2>
<p>Every call needs a key in the header <code>x-api-key</code>; the demo's is <code>demo</code>. <a href="/docs/start">Ten minutes with the demo</a> go on from here.</p>
${renderExample('curl', firstCall)}
${groups.map((group) => groupTable(group))}
<h2 id="guides">Guides</h2>
<ul class="cards">
${guides}</ul>
<h2 id="programs">For programs</h2>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: OpenAPI 3.1. <a href="/openapi-3.2.json">/openapi-3.2.json</a>: the same in 3.2, which can describe streams.</li>
<li><a href="/llms.txt">/llms.txt</a>: these pages as Markdown.</li>
<li>gRPC, gRPC-Web and Connect on the same port, with server reflection: <a href="/docs/reference/protocols">protocols</a>.</li>
</ul>`,
  }
}

const firstCall = `export WAYBILL=http://127.0.0.1:8080 WAYBILL_KEY=demo
curl -s "$WAYBILL/payments?status=CONFIRMED&limit=5" -H "x-api-key: $WAYBILL_KEY"`

function groupTable({ url, title, operations }: OperationGroup): Html {
  return html`<h2 id="${title.toLowerCase().replaceAll(' ', '-')}"><a href="${url}">${title}</a></h2>
<ul class="operations">
${operations.filter(isMain).map(
  ({ method, path, operation }) =>
    html`<li><a href="${url}#${operation.operationId}"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></a><p>${renderLine(operation.summary)}.</p></li>
`,
)}</ul>
`
}
