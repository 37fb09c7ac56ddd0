import MiniSearch from 'minisearch'

/** The search of the pages. It runs in browsers, which build its index when somebody wants it first. */

/** A part of a page below one heading. */
export interface FoundSection {
  readonly id: string
  readonly page: string
  /** Empty above the first heading below the title. */
  readonly heading: string
  readonly text: string
}

/** A place in the pages where the words stand. */
export interface SearchResult {
  readonly url: string
  readonly title: string
  readonly excerpt: string
}

/** Characters of a section around the words that were found. */
const EXCERPT = 140

/** @returns a function that finds the sections with all words, the best first: beginnings of words, and words with a wrong letter */
export function createSearch(sections: readonly FoundSection[]): (words: string) => readonly SearchResult[] {
  const index = new MiniSearch<FoundSection>({
    fields: ['page', 'heading', 'text'],
    storeFields: ['page', 'heading', 'text'],
    searchOptions: { boost: { page: 3, heading: 4 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
    // A name such as amountInUSD is found by its parts, too.
    tokenize: (text) => text.split(/[\s\p{P}\p{S}]+/u).flatMap((word) => [word, ...word.split(/(?<=[a-z])(?=[A-Z])/)]),
  })
  index.addAll(sections)
  return (words) =>
    index.search(words).map((found) => {
      const { page, heading, text } = found as unknown as FoundSection
      const title = heading === '' ? page : `${page}: ${heading}`
      return { url: String(found.id), title, excerpt: excerptOf(text, Object.keys(found.match)) }
    })
}

function excerptOf(text: string, found: readonly string[]): string {
  const lower = text.toLowerCase()
  const places = found.map((word) => lower.indexOf(word)).filter((place) => place >= 0)
  const from = Math.max(0, Math.min(...places, text.length - EXCERPT) - 40)
  const end = from + EXCERPT
  return `${from > 0 ? '…' : ''}${text.slice(from, end)}${end < text.length ? '…' : ''}`
}
