/**
 * Writes docs/reference/reasons.md from the table of reasons: `npm run reasons`. With `--check` it writes nothing and fails when the file
 * differs, as the checks of a change do.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Code } from '../gen/google/rpc/code_pb.js'
import { wireFormOf } from '../src/api/calls/error-mapping.ts'
import { type Reason, reasons } from '../src/errors/reasons.ts'

const FILE = join(import.meta.dirname, '..', 'docs', 'reference', 'reasons.md')

const head = `# Reasons

Written by \`npm run reasons\` from \`src/errors/reasons/\`. Do not edit.

Every error carries one reason, as \`google.rpc.ErrorInfo\` with the domain \`waybill\`; warnings and missing routes carry theirs in
the field \`reason\`. \`{name}\` stands for a value, which errors also carry in \`metadata\`. Match errors by \`reason\`: messages and
remedies may be reworded.
`

function tableOf(title: string, names: readonly Reason[], isError: boolean): string {
  const columns = isError ? ['reason', 'HTTP', 'gRPC', 'message', 'remedy'] : ['reason', 'message', 'remedy']
  const rows = names.map((name) => {
    const { message, remedy } = reasons[name]
    const codes = isError ? codesOf(name) : []
    return [`\`${name}\``, ...codes, message, remedy]
  })
  const lines = [columns, columns.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `\n## ${title}\n\n${lines.join('\n')}\n`
}

function codesOf(name: Reason): string[] {
  const status = wireFormOf(name, 'rest').httpStatus
  return [String(status), Code[wireFormOf(name, 'grpc').code] ?? '']
}

function write(): string {
  const names = (Object.keys(reasons) as Reason[]).toSorted()
  const of = (place: string) => names.filter((name) => (reasons[name].in as readonly string[]).includes(place))
  return (
    head +
    tableOf('Errors', of('error'), true) +
    tableOf('Warnings', of('warning'), false) +
    tableOf('Missing routes', of('unavailable'), false)
  )
}

const text = write()
if (process.argv.includes('--check')) {
  const present = await readFile(FILE, 'utf8').catch(() => '')
  if (present !== text) {
    process.stderr.write('docs/reference/reasons.md differs from src/errors/reasons/; run `npm run reasons`\n')
    process.exitCode = 1
  }
} else {
  await writeFile(FILE, text)
}
