import { expect, it } from 'vitest'
import { writeChangelogFeed } from './changelog-feed.ts'

const CHANGELOG = `# Changelog

## Unreleased

- A secret.

## 0.2.0 - 2026-11-28

### Added

- Amounts above 1 < 2 & \`code\`; the [guide](docs/start.md).

## 0.1.0 - 2026-11-20

- The first.
`

it('has an entry for each release, and none for what is not released', () => {
  const feed = writeChangelogFeed(CHANGELOG)
  expect([...feed.matchAll(/<entry>\n<title>(.*)<\/title>/g)].map(([, title]) => title)).toEqual(['0.2.0', '0.1.0'])
  expect(feed).not.toContain('secret')
  expect(feed.match(/<updated>(.*)<\/updated>/g)).toEqual([
    '<updated>2026-11-28T00:00:00Z</updated>',
    '<updated>2026-11-28T00:00:00Z</updated>',
    '<updated>2026-11-20T00:00:00Z</updated>',
  ])
})

it('escapes HTML once more, as Atom wants it', () => {
  expect(writeChangelogFeed(CHANGELOG)).toContain(
    '&#60;li&#62;Amounts above 1 &#38;lt; 2 &#38;amp; &#60;code&#62;code&#60;/code&#62;',
  )
})
