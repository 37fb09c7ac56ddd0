import { posix } from 'node:path'
import type { OpenApiDocument } from '../../api/openapi/openapi-document.ts'
import { firstSentenceOf, type MarkdownDocument } from './read-documents.ts'
import { operationsOf } from './render-operation.ts'

/** Writes /llms.txt, in the form of llmstxt.org: a title, what it is, how to call it, and lists of links to Markdown. */
export function writeLlmsText(document: OpenApiDocument, documents: readonly MarkdownDocument[]): string {
  const [summary = '', ...about] = document.info.description.split('\n\n')
  const within = (folder: string) => documents.filter(({ path }) => posix.dirname(path) === folder).map(linkTo)
  const operations = operationsOf(document)
    .filter(({ operation }) => operation['x-alias-of'] === undefined)
    .map(({ method, path, operation }) => `- \`${method} ${path}\`: ${operation.summary}.`)
  return (
    [
      '# Waybill',
      `> ${summary}`,
      ...about,
      'Send a key in the header `x-api-key`; in the demo it is `demo`. Read the `reason` of an error, not its message. Paths below are of the host that served this file.',
      operations.join('\n'),
      '## API',
      [
        '- [OpenAPI 3.1](/openapi.json): every path, parameter, answer and error, with examples',
        '- [OpenAPI 3.2](/openapi-3.2.json): the same, with the messages of streams',
      ].join('\n'),
      '## Start and guides',
      [...within('docs'), ...within('docs/guides')].join('\n'),
      '## Reference',
      within('docs/reference').join('\n'),
      '## Optional',
      [...within('docs/internals'), ...within('.')].join('\n'),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  )
}

function linkTo({ url, title, summary }: MarkdownDocument): string {
  const first = firstSentenceOf(summary)
  return `- [${title}](${url}.md)${first === '' ? '' : `: ${first}`}`
}
