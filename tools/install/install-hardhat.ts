import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const HARDHAT_VERSION = '3.17.0'

/**
 * Installs hardhat into a temporary folder, once. It is no dependency of the project, because it brings many packages.
 *
 * @returns the path of its module `hardhat/hre`; undefined where npm could not install it
 */
export function installHardhat(): string | undefined {
  const folder = join(tmpdir(), `waybill-hardhat-${HARDHAT_VERSION}`)
  const entry = join(folder, 'node_modules', 'hardhat', 'dist', 'src', 'hre.js')
  if (existsSync(entry)) return entry
  console.error(`installing hardhat ${HARDHAT_VERSION}`)
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', `hardhat@${HARDHAT_VERSION}`]
  const installed = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] })
  return installed.status === 0 && existsSync(entry) ? entry : undefined
}
