/**
 * Opens an export as CSV with LibreOffice and with pandas, as docs/guides/reconcile.md tells it, and compares what they read with what was
 * imported: amounts of 18 decimals, times, and references that would run as formulas.
 *
 *   npm run try:spreadsheet
 *
 * What is missing, LibreOffice or a Python that can install pandas, is skipped and named.
 */
import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startWaybill } from '../../test/support/process.ts'
import { makeTempFolder } from '../../test/support/temp-folder.ts'
import { root } from '../run-command.ts'

const PANDAS = 'pandas==2.3.3'

const imported = [
  ['7.000000000000000001', '2026-05-01T10:20:30Z', '=1+1'],
  ['123456789012345678.1', '2026-05-31T23:59:59Z', "=cmd|' /C calc'!A0"],
  ['0.1', '2026-05-02T00:00:00Z', '+1'],
  ['0.2', '2026-05-03T00:00:00Z', '-1'],
  ['0.3', '2026-05-04T00:00:00Z', '@SUM(1;2)'],
  ['0.4', '2026-05-05T00:00:00Z', 'x;=1+1'],
  ['0.5', '2026-05-06T00:00:00Z', 'x;"=1+1"'],
  ['0.8', '2026-05-09T00:00:00Z', '\uff1d1+1'],
  ['0.9', '2026-05-10T00:00:00Z', 'A-17, "Müller"'],
  ['10', '2026-05-11T00:00:00Z', '007'],
] as const

const folder = await makeTempFolder('try-spreadsheet')

type Outcome = { readonly skipped: string } | { readonly wrong: readonly string[] }

function report(name: string, outcome: Outcome): void {
  if ('skipped' in outcome) return console.log(`${name}: skipped, since ${outcome.skipped}`)
  console.log(outcome.wrong.length === 0 ? `${name}: ok` : `${name}: failed\n${outcome.wrong.join('\n')}`)
  if (outcome.wrong.length > 0) process.exitCode = 1
}

async function importedFile(): Promise<string> {
  const lines = imported.map(([amount, timestamp, reference], nth) => {
    const id = `00000000-0000-4000-8000-${String(nth).padStart(12, '0')}`
    return JSON.stringify({
      id,
      amount,
      timestamp,
      reference,
      currency: 'DAI-ETHEREUM',
      network: 'ETHEREUM',
      status: 'CONFIRMED',
    })
  })
  const file = join(folder, 'payments.ndjson')
  await writeFile(file, `${lines.join('\n')}\n`)
  return file
}

/** Imports a file into a service of its own. @returns its export, with a few columns */
async function exportOf(file: string): Promise<string> {
  const environment = {
    DATA_DIR: join(folder, 'data'),
    CHAINS_FILE: 'none',
    PORT: '0',
    LOG_LEVEL: 'warn',
  }
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await startWaybill(words, environment).ended
    if (code !== 0) throw new Error(`waybill ${words[0]} ended with exit code ${code}: ${stderr}`)
    return stdout.trim()
  }
  const service = startWaybill(['serve'], environment)
  try {
    const [, url = ''] = await service.says(/Waybill on (http:\S+):/)
    const key = await run('keys', 'create', '--account', 'shop', '--scopes', 'payments:read')
    await run('import', 'payments', file, '--account', 'shop')
    const columns = 'timestamp,reference,amount,currency'
    const answer = await fetch(`${url}/v1/payments:export?format=csv&columns=${columns}`, {
      headers: { 'x-api-key': key },
    })
    if (!answer.ok) throw new Error(`the export answered ${answer.status}`)
    return await answer.text()
  } finally {
    service.kill('SIGTERM')
    await service.ended
  }
}

/** The tokens of LibreOffice's CSV filter: separators, quote, UTF-8, first line, types of columns (2 is text), and language. */
const READINGS = {
  'every column as text': '44,34,76,1,1/2/2/2/3/2/4/2',
  'as it guesses': '44,34,76,1,,0,false,true',
  'split at semicolons': '59,34,76,1,,0,false,true',
  'split at commas, semicolons and tabs': '44/59/9,34,76,1,,0,false,true',
} as const

async function tryLibreOffice(csv: string): Promise<Outcome> {
  if (spawnSync('soffice', ['--version']).status !== 0) return { skipped: "'soffice --version' does not run here" }
  const wrong: string[] = []
  for (const [name, tokens] of Object.entries(READINGS)) {
    const sheet = await convert(csv, `--infilter=CSV:${tokens}`)
    if (/table:formula=/.test(sheet)) wrong.push(`read ${name}, a cell is a formula`)
    if (name === 'every column as text') wrong.push(...compare(readCells(sheet)))
  }
  const day = await convert(await withFormula(csv), '--infilter=CSV:44,34,76,1,1/2/2/2/3/2/4/2,0,false,true')
  if (!day.includes('office:value="46143.43090')) wrong.push("the guide's formula of a time is not 2026-05-01 10:20:30")
  return { wrong }
}

/** The texts of the guide's four columns against what was imported, by time. */
function compare([names, ...rows]: readonly (readonly string[])[]): readonly string[] {
  const wrong = names?.join() === 'timestamp,reference,amount,currency' ? [] : [`the first line is ${names?.join()}`]
  const byTime = imported.toSorted(([, a], [, b]) => (a < b ? -1 : 1))
  for (const [nth, [amount, timestamp, reference]] of byTime.entries()) {
    const read = rows[nth]?.map(withoutGuard)
    const stored = [timestamp, reference, amount, 'DAI-ETHEREUM']
    if (JSON.stringify(read) !== JSON.stringify(stored)) wrong.push(`read ${read?.join('|')}, not ${stored.join('|')}`)
  }
  return wrong
}

function withoutGuard(cell: string): string {
  return cell.replaceAll(/(^|;)'/g, '$1')
}

/** A sheet with the guide's formula for the time of the earliest payment. */
async function withFormula(csv: string): Promise<string> {
  const guide = await readFile(join(root, 'docs/guides/reconcile.md'), 'utf8')
  const [, formula = ''] = /`(=DATEVALUE[^`]+)`/.exec(guide) ?? []
  const [first = '', second = ''] = (await readFile(csv, 'utf8')).split('\r\n')
  const file = join(folder, 'with-formula.csv')
  await writeFile(file, `${first},time\r\n${second},"${formula}"\r\n`)
  return file
}

/** @returns the sheet as XML */
async function convert(csv: string, ...options: readonly string[]): Promise<string> {
  const profile = `-env:UserInstallation=file://${folder}/profile`
  const args = ['--headless', '--norestore', profile, ...options, '--convert-to', 'fods', '--outdir', folder, csv]
  const { status, stderr } = spawnSync('soffice', args, { encoding: 'utf8', timeout: 120_000 })
  if (status !== 0) throw new Error(`soffice ended with exit code ${status}: ${stderr}`)
  return readFile(csv.replace(/csv$/, 'fods'), 'utf8')
}

function readCells(sheet: string): readonly (readonly string[])[] {
  const rows = [...sheet.matchAll(/<table:table-row.*?<\/table:table-row>/gs)]
  return rows.map(([row]) =>
    [...row.matchAll(/<table:table-cell[^>]*>(.*?)<\/table:table-cell>/gs)].map(([, cell = '']) =>
      [...cell.matchAll(/<text:p>(.*?)<\/text:p>/gs)]
        .map(([, text = '']) => text)
        .join('\n')
        .replaceAll('&quot;', '"')
        .replaceAll('&apos;', "'")
        .replaceAll('&amp;', '&'),
    ),
  )
}

function tryPandas(csv: string): Outcome {
  const python = join(root, 'node_modules/.cache/try-spreadsheet')
  if (spawnSync('python3', ['-m', 'venv', python]).status !== 0) return { skipped: 'Python with venv is not installed' }
  const installed = spawnSync(join(python, 'bin/pip'), ['install', '--quiet', PANDAS])
  if (installed.status !== 0) return { skipped: `${PANDAS} cannot be installed` }
  const { status, stdout, stderr } = spawnSync(join(python, 'bin/python'), ['-c', PROGRAM, csv], { encoding: 'utf8' })
  if (status !== 0) return { wrong: [stderr] }
  const byTime = imported.toSorted(([, a], [, b]) => (a < b ? -1 : 1))
  const wanted = JSON.stringify({
    sum: '123456789012345698.300000000000000001',
    first: '2026-05-01T10:20:30+00:00',
    references: byTime.map(([, , reference]) => reference),
  })
  return { wrong: JSON.stringify(JSON.parse(stdout)) === wanted ? [] : [`read ${stdout.trim()}, not ${wanted}`] }
}

/** As docs/reference/payments.md tells it. */
const PROGRAM = `
import json, sys
from decimal import Decimal, getcontext
import pandas
getcontext().prec = 60
table = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
print(json.dumps({
  "sum": str(table["amount"].map(Decimal).sum()),
  "first": pandas.to_datetime(table["timestamp"]).min().isoformat(),
  "references": list(table["reference"].str.replace(r"(^|[;\\t\\r\\n])'", r"\\1", regex=True))}))
`

try {
  const csv = join(folder, 'payments.csv')
  await writeFile(csv, await exportOf(await importedFile()))
  report('LibreOffice', await tryLibreOffice(csv))
  report('pandas', tryPandas(csv))
} finally {
  await rm(folder, { recursive: true })
}
