import { type Html, html } from './html.ts'

/** A link of the navigation. */
export interface NavLink {
  readonly url: string
  readonly title: string
  readonly links?: readonly NavLink[]
}

export interface NavSection {
  readonly title: string
  readonly links: readonly NavLink[]
}

export interface PageFrame {
  readonly sections: readonly NavSection[]
  /** Paths of the assets. */
  readonly style: string
  readonly script: string
  readonly release: string
}

export interface PageContent {
  readonly url: string
  readonly title: string
  readonly summary: string
  readonly body: Html
  /** Whether the page shows examples beside the text. */
  readonly isWide?: boolean
  /** Its Markdown, where it has one. */
  readonly markdown?: string
  readonly headings?: readonly { readonly text: string; readonly id: string }[]
}

/** A whole page. It has no inline script or style, and nothing from another host. */
export function renderPage(frame: PageFrame, page: PageContent): string {
  const { headings = [] } = page
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title === 'Waybill' ? 'Waybill' : `${page.title} · Waybill`}</title>
${page.summary !== '' && html`<meta name="description" content="${page.summary}">`}
<link rel="stylesheet" href="${frame.style}">
<link rel="icon" href="data:,">
<link rel="service-desc" type="application/json" href="/openapi.json">
${page.markdown !== undefined && html`<link rel="alternate" type="text/markdown" href="${page.markdown}">`}
<script src="${frame.script}" defer></script>
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
<details class="menu"><summary>Contents</summary>${renderNav(frame.sections, page.url)}</details>
</aside>
<main id="content" tabindex="-1" class="${page.isWide === true ? 'wide' : 'prose'}">
${page.body}
</main>
${headings.length >= 2 && renderHeadings(headings)}
</div>
</body>
</html>
`.html
}

function renderNav(sections: readonly NavSection[], url: string): Html {
  return html`<nav class="contents" aria-label="Contents">
${sections.map(
  ({ title, links }) => html`<h2>${title}</h2>
<ul>
${links.map((link) => renderLink(link, url))}</ul>
`,
)}</nav>`
}

function renderLink({ url, title, links = [] }: NavLink, current: string): Html {
  const nested = links.length > 0 && html`<ul>${links.map((link) => renderLink(link, current))}</ul>`
  return html`<li><a href="${url}"${url === current && html` aria-current="page"`}>${title}</a>${nested}</li>
`
}

function renderHeadings(headings: readonly { readonly text: string; readonly id: string }[]): Html {
  return html`<nav class="headings" aria-label="On this page"><h2>On this page</h2><ul>
${headings.map(({ text, id }) => html`<li><a href="#${id}">${text}</a></li>`)}
</ul></nav>`
}
