import { escapeHtml, renderMarkdown } from './render-page.ts'

const REPOSITORY = 'https://github.com/waybill-payments/waybill'

/**
 * Makes the Atom feed of the changelog: an entry for each release. What is not released yet, and so has no date, has none.
 *
 * @param changelog - with headings such as `## 0.2.0 - 2026-11-28`
 */
export function writeChangelogFeed(changelog: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const releases = sections.flatMap((section) => {
    const [heading = '', ...lines] = section.split('\n')
    const [, version, date] = /^(\d+\.\d+\.\d+\S*) - (\d{4}-\d{2}-\d{2})$/.exec(heading.trim()) ?? []
    return version === undefined || date === undefined ? [] : [{ version, date, markdown: lines.join('\n').trim() }]
  })
  const updated =
    releases
      .map(({ date }) => date)
      .toSorted()
      .at(-1) ?? '1970-01-01'
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>Waybill: changelog</title>
<id>${REPOSITORY}/blob/main/CHANGELOG.md</id>
<link rel="self" type="application/atom+xml" href="/docs/changelog.atom"/>
<link rel="alternate" type="text/html" href="/docs/changelog"/>
<author><name>Waybill</name></author>
<updated>${updated}T00:00:00Z</updated>
${releases.map(writeEntry).join('')}</feed>
`
}

function writeEntry({ version, date, markdown }: { version: string; date: string; markdown: string }): string {
  const { body } = renderMarkdown(markdown, (href) =>
    /^https?:/.test(href) ? href : `${REPOSITORY}/blob/main/${href}`,
  )
  return `<entry>
<title>${version}</title>
<id>${REPOSITORY}/releases/tag/v${version}</id>
<link rel="alternate" type="text/html" href="/docs/changelog#${version.replaceAll('.', '')}---${date}"/>
<updated>${date}T00:00:00Z</updated>
<content type="html">${escapeHtml(body)}</content>
</entry>
`
}
