import { posix } from 'node:path'
import { Marked, type Token } from 'marked'
import { type MarkdownDocument, SECTIONS } from './read-documents.ts'

export interface PageFrame {
  /** Of all pages, in the order of their sections. */
  readonly pages: readonly MarkdownDocument[]
  /** Paths of the assets. */
  readonly style: string
  readonly script: string
  /** What the search of the pages searches. */
  readonly sections: string
  /** The licences of packages in the script. */
  readonly licences: string
  readonly release: string
}

/** A whole page. It has no inline script or style, and nothing from another host. */
export function renderPage(frame: PageFrame, page: MarkdownDocument): string {
  const { body, parts } = renderDocument(page, frame.pages)
  const summary = page.summary === '' ? '' : `\n<meta name="description" content="${escapeHtml(page.summary)}">`
  const feed =
    page.url === '/docs/changelog'
      ? '<link rel="alternate" type="application/atom+xml" href="/docs/changelog.atom">\n'
      : ''
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Waybill</title>${summary}
<link rel="stylesheet" href="${frame.style}">
<link rel="icon" href="data:,">
<link rel="license" href="${frame.licences}">
<link rel="service-desc" type="application/json" href="/openapi.json">
<link rel="alternate" type="text/markdown" href="${page.source}">
${feed}<script src="${frame.script}" type="module"></script>
</head>
<body>
<a class="unseen" href="#content">Skip to the content</a>
<header class="top row gap-3">
<a class="brand" href="/docs">Waybill</a>
<span class="quiet small">${frame.release}</span>
<nav class="row" aria-label="Files"><a href="/openapi.json">OpenAPI</a><a href="/llms.txt">llms.txt</a></nav>
</header>
<div class="columns">
<details class="menu"><summary>Contents</summary>
<nav class="contents" aria-label="Contents">
<search data-sections="${frame.sections}" hidden>
<input class="input" type="search" placeholder="Search" aria-label="Search the documentation">
<p class="quiet small" role="status"></p>
<ol></ol>
</search>
${SECTIONS.map(
  (title) =>
    `<h2>${title}</h2>\n${renderLinks(
      frame.pages.filter(({ section }) => section === title),
      page,
      parts,
    )}`,
).join('\n')}
</nav>
</details>
<main id="content" tabindex="-1" class="${page.section === 'API' ? 'api' : 'prose'}">
${body}
</main>
</div>
</body>
</html>
`
}

/** Links to pages. Below an API's service stand its operations, below the page that is shown its headings. */
function renderLinks(pages: readonly MarkdownDocument[], shown: MarkdownDocument, parts: readonly PagePart[]): string {
  const list = (links: readonly string[]) =>
    links.length === 0 ? '' : `<ul>${links.map((link) => `<li>${link}</li>`).join('\n')}</ul>`
  return list(
    pages.map((page) => {
      const { url, title, section, operations = [] } = page
      const headings = page === shown && section !== 'API' ? parts.filter(({ depth }) => depth === 2) : []
      const below = [...operations.map(({ id }) => ({ id, heading: id })), ...headings]
      const nested = below.map(({ id, heading }) => `<a href="${url}#${id}">${escapeHtml(heading)}</a>`)
      return `<a href="${url}"${page === shown ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a>${list(nested)}`
    }),
  )
}

/** A page's body and its parts. */
export function renderDocument(page: MarkdownDocument, pages: readonly MarkdownDocument[]): RenderedMarkdown {
  return renderMarkdown(page.markdown, linksFrom(page, pages), page.section === 'API' ? ownId : undefined)
}

/** Operations and schemas are linked to by their names. */
const ownId = (name: string) => name.replaceAll(' ', '-')

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

/** A heading and what stands below it. */
interface PagePart {
  readonly depth: number
  readonly heading: string
  readonly id: string
  readonly text: string
}

interface RenderedMarkdown {
  readonly body: string
  readonly parts: readonly PagePart[]
}

/**
 * Renders a document. HTML in it is shown as text.
 *
 * @param idOf - the anchor of a heading; by default the one that GitHub gives it
 */
export function renderMarkdown(markdown: string, resolveLink: ResolveLink, idOf = headingId): RenderedMarkdown {
  const ids = new Map<Token, string>()
  const marked = new Marked({
    renderer: {
      heading(token) {
        const id = escapeHtml(ids.get(token) ?? '')
        const anchor =
          token.depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
        return `<h${token.depth} id="${id}">${this.parser.parseInline(token.tokens)}${anchor}</h${token.depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = resolveLink(href)
        return target === undefined ? inner : `<a href="${escapeHtml(target)}">${inner}</a>`
      },
      image: ({ text }) => escapeHtml(text),
      html: ({ text }) => escapeHtml(text),
    },
  })
  const tokens = marked.lexer(markdown)
  const parts = [{ depth: 0, heading: '', id: '', text: '' }]
  const used = new Map<string, number>()
  for (const token of tokens) {
    if (token.type === 'heading') {
      const base = idOf(token.text)
      const before = used.get(base) ?? 0
      used.set(base, before + 1)
      ids.set(token, before === 0 ? base : `${base}-${before}`)
      parts.push({ depth: token.depth, heading: plain(token.text), id: ids.get(token)!, text: '' })
    } else parts.at(-1)!.text += plain(token.raw)
  }
  // What may be wider than the page scrolls by itself, also by keyboard.
  const body = marked
    .parser(tokens)
    .replaceAll('<table>', '<div class="table-scroll" tabindex="0"><table class="table">')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<th></th>', '<td></td>')
  return { body, parts: parts.slice(1) }
}

/** The anchor of a heading, as GitHub makes it. */
export function headingId(text: string): string {
  return plain(text)
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** Without the marks of code, emphasis, links and tables. */
function plain(text: string): string {
  return text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/^```.*|^\|[-| ]+\|$|[`*|]/gm, '')
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
