import type { OpenApiDocument } from '../../src/api/openapi/openapi-document.ts'
import type { MarkdownDocument, Section } from './read-documents.ts'

/** Writes the page that leads to all others. It is /llms.txt too, in the form of llmstxt.org: a title, what it is, how to call it, and lists of links. */
export function writeOverview(about: OpenApiDocument['info'], pages: readonly MarkdownDocument[]): MarkdownDocument {
  const [summary = '', ...more] = about.description.split('\n\n')
  const within = (...wanted: readonly Section[]) =>
    wanted.flatMap((name) => pages.filter(({ section }) => section === name).flatMap(linesOf)).join('\n')
  const markdown = [
    '# Waybill',
    `> ${summary}`,
    ...more,
    'Send a key in the header `x-api-key`; in the demo it is `demo`. Read the `reason` of an error, not its message. Paths below are of the host that served this file.',
    firstCall,
    '## Start and guides',
    within('Start', 'Guides'),
    '## API',
    `${within('API')}\n${descriptions}`,
    '## Reference',
    within('Reference'),
    '## Optional',
    `${within('Internals', 'Project')}\n`,
  ].join('\n\n')
  return { path: 'llms.txt', url: '/docs', source: '/llms.txt', section: 'Start', title: 'Overview', summary, markdown }
}

const firstCall = `\`\`\`sh
export WAYBILL=http://127.0.0.1:8080 WAYBILL_KEY=demo
curl -s "$WAYBILL/payments?status=CONFIRMED&limit=5" -H "x-api-key: $WAYBILL_KEY"
\`\`\``

const descriptions = `- [OpenAPI 3.1](/openapi.json): every path, parameter, answer and error, with examples
- [OpenAPI 3.2](/openapi-3.2.json): the same, with the messages of streams
- gRPC, gRPC-Web and Connect on the same port, with server reflection: [protocols](/docs/reference/protocols.md)`

function linesOf({ source, title, summary, operations = [] }: MarkdownDocument): readonly string[] {
  const first = /^.*?[.](?=\s|$)/.exec(summary)?.[0] ?? summary
  return [
    `- [${title}](${source})${first === '' ? '' : `: ${first}`}`,
    ...operations.map(({ id, call, summary: says }) => `  - [\`${call}\`](${source}#${id}): ${says}.`),
  ]
}
