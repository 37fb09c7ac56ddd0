/** Text that is HTML already. Everything else is escaped when it is put into HTML. */
export interface Html {
  readonly html: string
}

type Part = Html | string | number | false | undefined | readonly Part[]

/** Puts values into HTML: texts are escaped, HTML stays, lists are joined, undefined and false are nothing. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, index) => text + (index < parts.length ? written(parts[index]) : '')).join('') }
}

function written(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(written).join('')
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => escapes[character] ?? character)
}
