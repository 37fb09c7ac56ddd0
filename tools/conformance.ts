/**
 * Runs connectrpc's conformance suite against the listener and the call core of this project: every kind of call over Connect, gRPC and
 * gRPC-Web, HTTP/1.1 and HTTP/2, plaintext and TLS, protobuf and JSON, with and without compression. The suite is a program in Go; when
 * Go is missing, this prints so and ends with 0. Otherwise it ends with 1 when a case fails that is not in test/api/conformance/differences.ts.
 *
 *   npm run conformance                          all cases, in about a minute
 *   npm run conformance -- --run 'Errors/**'     some cases; the suite gets these arguments
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Difference, differences } from '../test/api/conformance/differences.ts'

const MODULE = 'connectrpc.com/conformance'
const VERSION = 'v1.0.7'
const folder = resolve(import.meta.dirname, '../test/api/conformance')

if (spawnSync('go', ['version']).error !== undefined) {
  console.log('conformance: skipped, since Go is not installed; the suite is built with it')
  process.exit(0)
}
const temp = mkdtempSync(join(tmpdir(), 'waybill-conformance-'))
try {
  process.exitCode = await runSuite(process.argv.slice(2))
} finally {
  rmSync(temp, { recursive: true })
}

/** @returns the exit code */
async function runSuite(more: readonly string[]): Promise<number> {
  const image = compileProtos()
  execFileSync('go', ['install', `${MODULE}/cmd/connectconformance@${VERSION}`], {
    env: { ...process.env, GOBIN: temp },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const server = [process.execPath, join(folder, 'server.ts'), image]
  const config = ['--mode', 'server', '--conf', join(folder, 'config.yaml')]
  const suite = spawn(join(temp, 'connectconformance'), [...config, ...more, '--', ...server], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const output = await text(suite.stdout)
  const cases = readFailures(output)
  const unexpected = cases.filter((failure) => findDifference(failure) === undefined)
  for (const { name, says } of unexpected) console.log(`FAILED ${name}\n${says.map((line) => `  ${line}`).join('\n')}`)
  const total = /^Total cases: (\d+)$/m.exec(output)?.[1]
  if (total === undefined) {
    console.log(`the suite did not run to its end\n${output}`)
    return 1
  }
  printDifferences(cases)
  const [passed, differing] = [Number(total) - cases.length, cases.length - unexpected.length]
  console.log(`${total} cases: ${passed} passed, ${differing} differ by contract, ${unexpected.length} failed`)
  return unexpected.length === 0 ? 0 : 1
}

/** Compiles the protos that come with the suite. @returns the file */
function compileProtos(): string {
  const described = execFileSync('go', ['mod', 'download', '-json', `${MODULE}@${VERSION}`], { encoding: 'utf8' })
  const { Dir: source } = JSON.parse(described) as { readonly Dir: string }
  const image = join(temp, 'protos.binpb')
  execFileSync('buf', ['build', join(source, 'proto'), '--config', '{"version":"v2"}', '-o', image])
  return image
}

interface Failure {
  readonly name: string
  /** What was wrong, a line each. */
  readonly says: readonly string[]
}

/** Reads `FAILED: name:` and the indented lines below it. */
function readFailures(output: string): readonly Failure[] {
  return [...output.matchAll(/^FAILED: (.*):\n((?:\t.*\n)*)/gm)].map(([, name = '', lines = '']) => ({
    name,
    says: lines.split('\n').map((line) => line.trim().replace(/^; /, '')),
  }))
}

function findDifference({ name, says }: Failure): Difference | undefined {
  return differences.find(
    (each) => each.cases.test(name) && says.every((line) => line === '' || each.says.some((known) => known.test(line))),
  )
}

function printDifferences(cases: readonly Failure[]): void {
  const found = Map.groupBy(cases, findDifference)
  for (const difference of differences) {
    const count = found.get(difference)?.length ?? 0
    console.log(`${String(count).padStart(5)} differ: ${difference.reason}`)
  }
}
