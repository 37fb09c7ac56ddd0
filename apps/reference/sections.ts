import type { MarkdownDocument } from './read-documents.ts'

/** A part of a page below one heading, as the search of the pages finds it. */
export interface FoundSection {
  readonly id: string
  readonly page: string
  /** Empty above the first heading below the title. */
  readonly heading: string
  readonly text: string
}

/**
 * Divides a page at its headings.
 *
 * @param headings - with their anchors, in order, as the page was rendered
 */
export function sectionsOf(
  { markdown, url, title }: MarkdownDocument,
  headings: readonly { readonly depth: number; readonly text: string; readonly id: string }[],
): readonly FoundSection[] {
  const below = headings.filter(({ depth }) => depth > 1)
  const parts = withoutCodeHeadings(markdown).split(/^#{2,6} .*$/m)
  return parts.map((part, place) => {
    const heading = below[place - 1]
    const id = heading === undefined ? url : `${url}#${heading.id}`
    return { id, page: title, heading: heading?.text ?? '', text: plainText(part) }
  })
}

/** Lines of examples may begin as headings do. */
function withoutCodeHeadings(markdown: string): string {
  return markdown.replaceAll(/^```[^]*?^```/gm, (code) => code.replaceAll(/^#/gm, ' #'))
}

/** Words without the marks of Markdown. */
function plainText(markdown: string): string {
  return markdown
    .replaceAll(/^# .*$/gm, '')
    .replaceAll(/^```.*$|^\|[-| ]+\|$/gm, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*|]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
