import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'

/** A page of /docs, as Markdown. */
export interface MarkdownDocument {
  /** From the project's root: `docs/guides/reconcile.md`; links in the Markdown start there. */
  readonly path: string
  /** Where it is shown: `/docs/guides/reconcile`. */
  readonly url: string
  /** Where its Markdown is. */
  readonly source: string
  readonly section: Section
  readonly title: string
  /** Its first sentence or paragraph, on one line; empty where it begins otherwise. */
  readonly summary: string
  readonly markdown: string
  /** Of an API's service: its operations, by the ids of their headings. */
  readonly operations?: readonly { readonly id: string; readonly call: string; readonly summary: string }[]
}

export const SECTIONS = ['Start', 'API', 'Guides', 'Reference', 'Internals', 'Project'] as const
export type Section = (typeof SECTIONS)[number]

const sections: Readonly<Record<string, Section>> = {
  docs: 'Start',
  'docs/guides': 'Guides',
  'docs/reference': 'Reference',
  'docs/internals': 'Internals',
}

/**
 * Reads the documentation in the order in which README lists it; pages that README does not list come last.
 *
 * @param root - the project's folder
 */
export async function readDocuments(root: string): Promise<readonly MarkdownDocument[]> {
  const names = await readdir(join(root, 'docs'), { recursive: true })
  const paths = names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name.replaceAll('\\', '/')}`)
  const readme = await readFile(join(root, 'README.md'), 'utf8').catch(() => '')
  const listed = [...readme.matchAll(/\]\((docs\/[^)#]+\.md)/g)].map(([, path = '']) => path)
  const place = (path: string) => (listed.includes(path) ? listed.indexOf(path) : listed.length)
  const sorted = paths.toSorted((left, right) => place(left) - place(right) || (left < right ? -1 : 1))
  return Promise.all([...sorted, 'CHANGELOG.md'].map((path) => readDocument(root, path)))
}

async function readDocument(root: string, path: string): Promise<MarkdownDocument> {
  const markdown = await readFile(join(root, path), 'utf8')
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? posix.basename(path, '.md')
  const url = urlOf(path)
  return {
    path,
    url,
    source: `${url}.md`,
    section: sections[posix.dirname(path)] ?? 'Project',
    title: title.replaceAll('`', ''),
    summary: summaryOf(markdown),
    markdown,
  }
}

/** `docs/start.md` → `/docs/start`, `CHANGELOG.md` → `/docs/changelog` */
function urlOf(path: string): string {
  const name = path.replace(/\.md$/, '')
  return name.startsWith('docs/') ? `/${name}` : `/docs/${name.toLowerCase()}`
}

function summaryOf(markdown: string): string {
  const first = markdown.split(/\n\s*\n/).find((block) => !block.startsWith('#')) ?? ''
  if (/^[|>`\-\d]/.test(first)) return ''
  return first
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
}
