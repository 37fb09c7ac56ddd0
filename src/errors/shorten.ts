/** Names at the end of a text, separated by commas, and perhaps a count of others. */
const LIST = /^(.*: |)([^\s,]+(?:, [^\s,]+)*)(?: and (\d+) more)?$/su

/**
 * Cuts a text. Of a list of names the first ones stay, and the others are counted: `use one of: A, B and 12 more`. Any other text ends
 * with an ellipsis.
 *
 * @param maxSize - in bytes, percent-encoded as in `grpc-message`
 */
export function shorten(text: string, maxSize: number): string {
  if (encodedSize(text) <= maxSize) return text
  return shortenList(text, maxSize) ?? cut(text, maxSize)
}

function shortenList(text: string, maxSize: number): string | undefined {
  const found = LIST.exec(text)
  if (found === null) return undefined
  const [, before = '', list = '', more = '0'] = found
  const names = list.split(', ')
  const countOfOthers = (kept: number) => ` and ${names.length - kept + Number(more)} more`
  let size = encodedSize(before)
  let kept = 0
  for (const [at, name] of names.entries()) {
    size += encodedSize(at === 0 ? name : `, ${name}`)
    if (size + countOfOthers(at + 1).length > maxSize) break
    kept = at + 1
  }
  return kept === 0 ? undefined : `${before}${names.slice(0, kept).join(', ')}${countOfOthers(kept)}`
}

function cut(text: string, maxSize: number): string {
  let size = encodedSize('…')
  let end = 0
  for (const letter of text) {
    size += encodedSize(letter)
    if (size > maxSize) break
    end += letter.length
  }
  return `${text.slice(0, end)}…`
}

function encodedSize(text: string): number {
  let size = 0
  for (const letter of text) {
    const point = letter.codePointAt(0) ?? 0
    if (point >= 0x20 && point <= 0x7e && letter !== '%') size += 1
    else size += 3 * (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4)
  }
  return size
}
