/**
 * Pays by 300 random quotes on hardhat's network and on geth in dev mode, which `npm ci` does not install. npm installs hardhat into a
 * temporary folder; Go, if installed, builds geth. A node that is not available is reported, and the others are tried.
 *
 *   npm run try:nodes              GETH=/path/to/geth uses that binary
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installHardhat } from './install/install-hardhat.ts'

const GETH_VERSION = 'v1.16.7'

function buildGeth(): string | undefined {
  const folder = join(tmpdir(), `waybill-geth-${GETH_VERSION}`)
  const binary = join(folder, 'geth')
  if (existsSync(binary)) return binary
  if (spawnSync('go', ['version']).status !== 0) return undefined
  console.log(`building geth ${GETH_VERSION}, which takes some minutes the first time`)
  const args = ['install', `github.com/ethereum/go-ethereum/cmd/geth@${GETH_VERSION}`]
  const built = spawnSync('go', args, { env: { ...process.env, GOBIN: folder }, stdio: 'inherit' })
  return built.status === 0 ? binary : undefined
}

const nodes = { GETH: process.env.GETH ?? buildGeth(), HARDHAT: installHardhat() }
const there = Object.entries(nodes).filter(([, path]) => path !== undefined)
for (const [name, path] of Object.entries(nodes)) {
  if (path === undefined) console.error(`${name.toLowerCase()} is not tried: it could not be installed`)
}
const names = there.map(([name]) => name.toLowerCase()).join('|')
const args = [
  'run',
  '--mode',
  'long',
  '--testTimeout',
  '600000',
  'test/routing/random-quotes.long.test.ts',
  '-t',
  names,
]
const { status } =
  there.length === 0
    ? { status: 1 }
    : spawnSync('vitest', args, { env: { ...process.env, ...Object.fromEntries(there) }, stdio: 'inherit' })
process.exitCode = status ?? 1
