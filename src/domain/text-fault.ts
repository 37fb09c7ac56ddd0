/**
 * What is wrong with a short text of a caller's, such as a reference or a note, which is stored and shown again; undefined for nothing.
 * PostgreSQL takes not all control characters.
 *
 * @param longest - the most characters
 */
export function faultOfText(text: string, longest: number): string | undefined {
  // A character beyond the basic plane is two code units, so only a text that seems too long is counted exactly.
  if (text.length > longest && Array.from(text).length > longest) return `it has more than ${longest} characters`
  if (/\p{Cc}/u.test(text)) return 'it has a control character'
  return text.isWellFormed() ? undefined : 'it is not valid Unicode'
}
