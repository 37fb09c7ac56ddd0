/**
 * Takes 300 random quotes on geth in dev mode. geth is built with Go where that is at hand; where it is not, this says so and ends well.
 *
 *   npm run try:geth              GETH=/path/to/geth takes that one
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const VERSION = 'v1.16.7'
const folder = join(tmpdir(), `waybill-geth-${VERSION}`)

function buildGeth(): string | undefined {
  const binary = join(folder, 'geth')
  if (existsSync(binary)) return binary
  if (spawnSync('go', ['version']).status !== 0) return undefined
  console.log(`building geth ${VERSION}, which takes some minutes the first time`)
  const args = ['install', `github.com/ethereum/go-ethereum/cmd/geth@${VERSION}`]
  const built = spawnSync('go', args, { env: { ...process.env, GOBIN: folder }, stdio: 'inherit' })
  if (built.status === 0) return binary
  console.error('geth could not be built')
  process.exit(1)
}

const geth = process.env.GETH ?? buildGeth()
if (geth === undefined) {
  console.log('nothing was tried: there is neither Go nor GETH, the path of a geth')
} else {
  const args = ['run', '--mode', 'long', '--testTimeout', '600000', 'test/long/random-quotes.test.ts', '-t', 'geth']
  const { status } = spawnSync('vitest', args, { env: { ...process.env, GETH: geth }, stdio: 'inherit' })
  process.exitCode = status ?? 1
}
