/** Checks the links between the documents: each must lead to a file of the repository, and its anchor to a heading there. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/**
 * @param root - the project's folder
 * @param paths - Markdown files, from the root
 * @returns a line for each dead link
 */
export function findDeadLinks(root: string, paths: readonly string[]): string[] {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  return paths.flatMap((path) =>
    linksOf(read(path)).flatMap(({ target, line }) => {
      const [file = '', anchor] = target.split('#')
      const found = file === '' ? path : normalize(join(dirname(path), file))
      if (!existsSync(join(root, found))) return [`${path}:${line}: there is no ${found}`]
      if (anchor === undefined || !found.endsWith('.md')) return []
      return anchorsOf(read(found)).has(anchor) ? [] : [`${path}:${line}: ${found} has no heading for #${anchor}`]
    }),
  )
}

/** The links to places of this repository, with the line of each. Text in a block of code is not a link. */
export function linksOf(markdown: string): { readonly target: string; readonly line: number }[] {
  return proseLines(markdown).flatMap(({ text, line }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => ({ target, line }))
      .filter(({ target }) => !/^[a-z]+:/.test(target)),
  )
}

/** The anchors of a document's headings, made as GitHub makes them. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const headings = proseLines(markdown).flatMap(({ text }) => /^#{1,6} (.*)$/.exec(text)?.slice(1) ?? [])
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function proseLines(markdown: string): { readonly text: string; readonly line: number }[] {
  let inCode = false
  return markdown.split('\n').flatMap((text, index) => {
    const isFence = text.trimStart().startsWith('```')
    if (isFence) inCode = !inCode
    return isFence || inCode ? [] : [{ text, line: index + 1 }]
  })
}

/**
 * Finds files that a document names in code spans and the repository does not have.
 *
 * @param files - every file of the repository, from the root; a span may leave out the folders before its own
 */
export function findUnknownFiles(path: string, markdown: string, files: readonly string[]): string[] {
  return proseLines(markdown).flatMap(({ text, line }) =>
    [...text.matchAll(/`([\w./-]+\.(?:ts|md|proto|json))`/g)]
      .map(([, name = '']) => name)
      .filter((name) => !files.some((file) => file === name || file.endsWith(`/${name}`)))
      .map((name) => `${path}:${line}: there is no ${name}`),
  )
}
