/** Origins of web pages: `https://shop.example`, as browsers send them in the header Origin. */

const MAX_LENGTH = 253 + 'https://:65535'.length

/**
 * Explains why a text is not the origin of pages.
 *
 * @returns undefined when it is one
 */
export function explainOrigin(text: string): string | undefined {
  const url = URL.parse(text)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url === null || !isWeb || text.length > MAX_LENGTH) return 'use scheme://host:port, such as https://shop.example'
  if (text.includes('*')) return 'use one origin for each host: a pattern is no origin'
  return url.origin === text ? undefined : `use ${url.origin}`
}
