/**
 * Prints `N passed, N failed[, N skipped]` from vitest's JSON results as one line.
 *
 *   node tools/test-summary.ts RESULTS.json EXIT_CODE_OF_VITEST
 *
 * Exit code 0 only when vitest ended with 0, tests passed and none failed. A test file that did not load has no failed test
 * in it and counts as one; so does a run that failed without saying where (an error outside of any test).
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/** The part of vitest's JSON results that is counted. */
export type TestResults = {
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/**
 * @param results - undefined when the run left none
 * @param exitCode - vitest's own
 */
export function summarize(results: TestResults | undefined, exitCode: number): { line: string; failed: boolean } {
  const files = results?.testResults ?? []
  const statuses = files.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status))
  const passed = count(statuses, 'passed')
  const brokenFiles = files.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  )
  const known = count(statuses, 'failed') + brokenFiles.length
  const failed = known === 0 && (exitCode !== 0 || passed === 0) ? 1 : known
  const skipped = statuses.length - passed - count(statuses, 'failed')
  const line = `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`
  return { line, failed: failed > 0 }
}

function count(statuses: readonly string[], wanted: string): number {
  return statuses.filter((status) => status === wanted).length
}

function readResults(path: string): TestResults | undefined {
  const text = readFileSync(path, 'utf8')
  return text === '' ? undefined : (JSON.parse(text) as TestResults)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [path, exitCode] = process.argv.slice(2)
  if (path === undefined || exitCode === undefined) {
    console.error('usage: node tools/test-summary.ts RESULTS.json EXIT_CODE_OF_VITEST')
    process.exit(2)
  }
  const { line, failed } = summarize(readResults(path), Number(exitCode))
  console.log(line)
  process.exitCode = failed ? 1 : 0
}
