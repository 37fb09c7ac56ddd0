/**
 * Prints what failed, a paragraph each, and last the line `N passed, N failed[, N skipped]`, from vitest's JSON results of all runs: who
 * keeps only the end of the output still sees which test failed and why.
 *
 *   node tools/test-summary.ts RESULTS.json EXIT_CODE_OF_VITEST [RESULTS.json EXIT_CODE ...]
 *
 * Exit code 0 only when in each run vitest ended with 0, tests passed and none failed. A test file that did not load has no failed
 * tests and counts as one; so does a run that failed outside of any test.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

/** The fields of vitest's JSON results that are counted or printed. */
export type TestResults = {
  readonly testResults: readonly {
    /** Path of the file. */
    readonly name?: string
    readonly status: string
    /** Why the file did not load; empty when it did. */
    readonly message?: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName?: string
      readonly failureMessages?: readonly string[] | null
    }[]
  }[]
}

/** Lines of an error that are printed: an assertion's difference fits, a long stack does not. */
const ERROR_LINES = 12
const FRAME_OF_LIBRARY = /^ +at .*(\/node_modules\/|new Promise|node:)/

/** One run of vitest. */
export type TestRun = {
  /** Undefined when the run wrote none. */
  readonly results: TestResults | undefined
  readonly exitCode: number
}

type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number }

export function summarize(runs: readonly TestRun[]): { line: string; failed: boolean } {
  const counts = runs.map(countRun)
  const total = (of: keyof Counts) => counts.reduce((sum, each) => sum + each[of], 0)
  const [passed, failed, skipped] = [total('passed'), total('failed'), total('skipped')]
  const line = `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
  return { line, failed: failed > 0 }
}

/** @returns of each failed test, and of each file that did not load, its file, its name and the first lines of its error */
export function describeFailures(runs: readonly TestRun[]): string[] {
  const files = runs.flatMap(({ results }) => results?.testResults ?? [])
  return files.flatMap((file) => {
    const tests = file.assertionResults.filter(({ status }) => status === 'failed')
    if (tests.length === 0) {
      return file.status === 'failed' ? [describeFailure(file.name, 'did not load', file.message)] : []
    }
    return tests.map((test) => describeFailure(file.name, test.fullName, test.failureMessages?.join('\n')))
  })
}

function describeFailure(file = 'a file', test = 'a test', error = ''): string {
  const lines = stripVTControlCharacters(error)
    .split('\n')
    .filter((line) => !FRAME_OF_LIBRARY.test(line))
    .slice(0, ERROR_LINES)
  return [`FAILED ${relative(process.cwd(), file)}: ${test}`, ...lines.map((line) => `  ${line}`)].join('\n').trimEnd()
}

function countRun({ results, exitCode }: TestRun): Counts {
  const files = results?.testResults ?? []
  const statuses = files.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status))
  const passed = count(statuses, 'passed')
  const brokenFiles = files.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  )
  const known = count(statuses, 'failed') + brokenFiles.length
  const failed = known === 0 && (exitCode !== 0 || passed === 0) ? 1 : known
  return { passed, failed, skipped: statuses.length - passed - count(statuses, 'failed') }
}

function count(statuses: readonly string[], wanted: string): number {
  return statuses.filter((status) => status === wanted).length
}

function readResults(path: string): TestResults | undefined {
  const text = readFileSync(path, 'utf8')
  return text === '' ? undefined : (JSON.parse(text) as TestResults)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const args = process.argv.slice(2)
  if (args.length === 0 || args.length % 2 !== 0) {
    console.error('usage: node tools/test-summary.ts RESULTS.json EXIT_CODE_OF_VITEST [RESULTS.json EXIT_CODE ...]')
    process.exit(2)
  }
  const runs = args.flatMap((path, i) =>
    i % 2 === 0 ? [{ results: readResults(path), exitCode: Number(args[i + 1]) }] : [],
  )
  const { line, failed } = summarize(runs)
  console.log([...describeFailures(runs), line].join('\n\n'))
  process.exitCode = failed ? 1 : 0
}
