import { Marked } from 'marked'
import { escapeHtml, type Html } from './html.ts'

/** Where a link of a document leads when it is shown: a path of this process, or undefined for what is not served. */
export type ResolveLink = (href: string) => string | undefined

export interface RenderedMarkdown {
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
