/**
 * Runs every static check concurrently and prints one line a check, then the output of those that failed. Exit code 1 when any failed. A
 * check that cannot run here is skipped and prints the reason.
 *
 *   npm run check                    all checks
 *   npm run check -- types lint      checks whose name contains one of the words
 */

import { checkModules } from './check-modules.ts'
import { checkBreaking, checkGenerated, checkLinks, checkLockFile, checkRegistryHosts } from './check-repository.ts'
import { checkWords } from './check-words.ts'
import { type Check, type CheckResult, runCommand } from './run-command.ts'

const checks: readonly Check[] = [
  command('format and import order', 'biome', ['check', '--error-on-warnings']),
  command('lint', 'oxlint', []),
  command('types', 'tsc', ['--checkers', '2']),
  command('dead code and dependencies', 'knip', ['--no-progress', '--no-config-hints']),
  command('proto lint', 'buf', ['lint']),
  command('proto format', 'buf', ['format', 'proto', '--diff', '--exit-code']),
  { name: 'proto breaking changes', run: checkBreaking },
  { name: 'generated code', run: checkGenerated },
  command('table of reasons', 'node', ['tools/write-reasons.ts', '--check']),
  command('table of log messages', 'node', ['tools/log/log-messages.ts', '--check']),
  command('chains file of the real networks', 'node', ['tools/extract-real-chains.ts', '--check']),
  { name: 'links of the documents', run: checkLinks },
  { name: 'modules', run: checkModules },
  { name: 'private words', run: checkWords },
  { name: 'lock file', run: checkLockFile },
  { name: 'registry hosts', run: checkRegistryHosts },
]

function command(name: string, file: string, args: readonly string[]): Check {
  return { name, run: () => runCommand(file, args) }
}

async function runTimed(check: Check): Promise<CheckResult & { name: string }> {
  const startedAtMs = performance.now()
  const result = await check.run()
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  const reason = result.outcome === 'skipped' ? `: ${result.output}` : ''
  console.log(`${result.outcome.padEnd(7)} ${seconds.padStart(5)} s  ${check.name}${reason}`)
  return { ...result, name: check.name }
}

// Types, lint and the search for dead code read the client's generated code.
const client = await runCommand('node', ['tools/client/generate-client.ts', '--if-stale'])
if (client.outcome === 'failed') console.error(client.output)

const words = process.argv.slice(2)
const chosen = checks.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
if (chosen.length === 0) {
  console.error(
    `no check has a name with ${words.join(' or ')}; the checks are: ${checks.map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}
const results = await Promise.all(chosen.map(runTimed))
const failed = results.filter(({ outcome }) => outcome === 'failed')
for (const { name, output } of failed) console.log(`\n── ${name}\n${output.trimEnd()}`)
process.exitCode = failed.length === 0 ? 0 : 1
