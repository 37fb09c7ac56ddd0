/**
 * Prints `N passed, N failed[, N skipped]` from vitest's JSON results as one line, summed over all runs.
 *
 *   node tools/test-summary.ts RESULTS.json EXIT_CODE_OF_VITEST [RESULTS.json EXIT_CODE ...]
 *
 * Exit code 0 only when in each run vitest ended with 0, tests passed and none failed. A test file that did not load has no failed
 * tests and counts as one; so does a run that failed outside of any test.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/** The fields of vitest's JSON results that are counted. */
export type TestResults = {
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

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
  console.log(line)
  process.exitCode = failed ? 1 : 0
}
