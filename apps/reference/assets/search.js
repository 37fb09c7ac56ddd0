// The search of the pages: its index is built in the browser from the sections, when somebody wants it first.
import MiniSearch from 'minisearch'

/** Characters of a section around the words that were found. */
const EXCERPT = 140

/** @param {readonly { id: string, page: string, heading: string, text: string }[]} sections */
export function createSearch(sections) {
  const index = new MiniSearch({
    fields: ['page', 'heading', 'text'],
    storeFields: ['page', 'heading', 'text'],
    searchOptions: { boost: { page: 3, heading: 4 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
    // amountInUSD is found by its parts, too.
    tokenize: (text) => text.split(/[\s\p{P}\p{S}]+/u).flatMap((word) => [word, ...word.split(/(?<=[a-z])(?=[A-Z])/)]),
  })
  index.addAll(sections)
  return (words) =>
    index.search(words).map(({ id, page, heading, text, match }) => ({
      url: id,
      title: heading === '' ? page : `${page}: ${heading}`,
      excerpt: excerptOf(text, Object.keys(match)),
    }))
}

function excerptOf(text, found) {
  const lower = text.toLowerCase()
  const at = Math.min(...found.map((word) => lower.indexOf(word)).filter((place) => place >= 0), text.length)
  const from = Math.max(0, Math.min(at, text.length - EXCERPT) - 40)
  const part = text.slice(from, from + EXCERPT)
  return `${from > 0 ? '…' : ''}${part}${from + EXCERPT < text.length ? '…' : ''}`
}
