import { posix } from 'node:path'
import { Marked } from 'marked'
import { type MarkdownDocument, SECTIONS } from './read-documents.ts'

export interface PageFrame {
  /** Of all pages, in the order of their sections. */
  readonly pages: readonly MarkdownDocument[]
  /** Paths of the assets. */
  readonly style: string
  readonly script: string
  /** The search of the pages, and what it searches. */
  readonly search: string
  readonly sections: string
  /** The licences of packages in the search. */
  readonly licences: string
  readonly release: string
}

/** A whole page. It has no inline script or style, and nothing from another host. */
export function renderPage(frame: PageFrame, page: MarkdownDocument): string {
  const isApi = page.section === 'API'
  const { body, headings } = renderDocument(page, frame.pages)
  const shown = isApi ? [] : headings.filter(({ depth }) => depth === 2)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Waybill</title>
${page.summary !== '' && html`<meta name="description" content="${page.summary}">`}
<link rel="stylesheet" href="${frame.style}">
<link rel="icon" href="data:,">
<link rel="license" href="${frame.licences}">
<link rel="service-desc" type="application/json" href="/openapi.json">
<link rel="alternate" type="text/markdown" href="${page.source}">
${page.url === '/docs/changelog' && html`<link rel="alternate" type="application/atom+xml" href="/docs/changelog.atom">`}
<script src="${frame.script}" data-search="${frame.search}" data-sections="${frame.sections}" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="/docs">Waybill</a>
<span class="release">${frame.release}</span>
<nav aria-label="Files"><a href="/openapi.json">OpenAPI</a><a href="/llms.txt">llms.txt</a></nav>
</header>
<div class="columns">
<aside>
<details class="menu"><summary>Contents</summary>${renderContents(frame.pages, page.url)}</details>
</aside>
<main id="content" tabindex="-1" class="${isApi ? 'api' : 'prose'}">
${body}
</main>
${shown.length >= 2 && html`<nav class="headings" aria-label="On this page"><h2>On this page</h2>${renderLinks(shown.map(({ id, text }) => html`<a href="#${id}">${text}</a>`))}</nav>`}
</div>
</body>
</html>
`.html
}

/** A page's body and its headings. */
export function renderDocument(page: MarkdownDocument, pages: readonly MarkdownDocument[]): RenderedMarkdown {
  return renderMarkdown(page.markdown, linksFrom(page, pages), page.section === 'API' ? ownId : undefined)
}

/** Operations and schemas are linked to by their names. */
const ownId = (name: string) => name.replaceAll(' ', '-')

const renderLinks = (links: readonly Html[]) => html`<ul>${links.map((link) => html`<li>${link}</li>\n`)}</ul>`

function renderContents(pages: readonly MarkdownDocument[], current: string): Html {
  const linkTo = ({ url, title, operations = [] }: MarkdownDocument) => {
    const nested = operations.map(({ id }) => html`<a href="${url}#${id}">${id}</a>`)
    return html`<a href="${url}"${url === current && html` aria-current="page"`}>${title}</a>${nested.length > 0 && renderLinks(nested)}`
  }
  const sections = SECTIONS.map((title) => {
    const links = pages.filter(({ section }) => section === title).map(linkTo)
    return html`<h2>${title}</h2>\n${renderLinks(links)}`
  })
  return html`<nav class="contents" aria-label="Contents">${sections}</nav>`
}

/** Links between documents lead to their pages; files of the repository that are not served are no links. */
function linksFrom({ path }: MarkdownDocument, pages: readonly MarkdownDocument[]): ResolveLink {
  return (href) => {
    if (/^(?:https?:\/\/|#|\/(?:openapi|protos|descriptors))/.test(href)) return href
    const [file = '', anchor] = href.split('#')
    const target = posix.resolve('/', posix.dirname(path), file).slice(1)
    const name = special[target] ?? target
    const url = pages.find((page) => page.path === name)?.url
    return url === undefined || anchor === undefined ? url : `${url}#${anchor}`
  }
}

/** What is shown elsewhere than under its own name. */
const special: Readonly<Record<string, string>> = {
  'README.md': 'llms.txt',
  'proto/payments/v1': 'docs/api/schemas.md',
  'docs/changelog.md': 'CHANGELOG.md',
}

/** Where a link of a document leads when it is shown: a path of this process, or undefined for what is not served. */
type ResolveLink = (href: string) => string | undefined

interface RenderedMarkdown {
  readonly body: Html
  /** The headings below the title. */
  readonly headings: readonly { readonly depth: number; readonly text: string; readonly id: string }[]
}

/**
 * Renders a document. HTML in it is shown as text.
 *
 * @param idOf - the anchor of a heading; by default the one that GitHub gives it
 */
export function renderMarkdown(markdown: string, resolveLink: ResolveLink, idOf = headingId): RenderedMarkdown {
  const headings: { depth: number; text: string; id: string }[] = []
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const id = distinct(
          idOf(text),
          headings.map((heading) => heading.id),
        )
        headings.push({ depth, text: plain(text), id })
        const inner = this.parser.parseInline(tokens)
        return `<h${depth} id="${escapeHtml(id)}">${inner}${anchor(depth, id)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = resolveLink(href)
        return target === undefined
          ? `<span class="file">${inner}</span>`
          : `<a href="${escapeHtml(target)}">${inner}</a>`
      },
      image: ({ text }) => escapeHtml(text),
      html: ({ text }) => escapeHtml(text),
    },
  })
  const text = marked.parse(markdown, { async: false })
  // What may be wider than the page scrolls by itself, also by keyboard.
  const body = text
    .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<th></th>', '<td></td>')
  return { body: { html: body }, headings }
}

/** The anchor of a heading, as GitHub makes it. */
export function headingId(text: string): string {
  return plain(text)
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function distinct(id: string, taken: readonly string[]): string {
  if (!taken.includes(id)) return id
  return distinct(`${id.replace(/-\d+$/, '')}-${taken.filter((each) => each.startsWith(id)).length}`, taken)
}

function anchor(depth: number, id: string): string {
  return depth === 1 ? '' : ` <a class="anchor" href="#${escapeHtml(id)}" aria-label="Link to this section">#</a>`
}

/** Without the marks of code, emphasis and links. */
function plain(text: string): string {
  return text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '')
}

/** Text that is HTML already. Everything else is escaped when it is put into HTML. */
interface Html {
  readonly html: string
}

type Part = Html | string | number | false | undefined | readonly Part[]

/** Puts values into HTML: texts are escaped, HTML stays, lists are joined, undefined and false are nothing. */
function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, index) => text + (index < parts.length ? written(parts[index]) : '')).join('') }
}

function written(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(written).join('')
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => escapes[character] ?? character)
}
