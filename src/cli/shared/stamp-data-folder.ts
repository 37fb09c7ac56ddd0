import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigError } from '../../config.ts'

/** What a data folder holds. Demo data and real data never share a folder. */
type DataUse = 'demo' | 'service'

const FILE = 'use'

/**
 * Creates the data folder if it is missing, readable only by its owner, and marks what it holds.
 *
 * @throws ConfigError when it is marked for the other kind of data
 */
export async function stampDataFolder(dataDir: string, use: DataUse): Promise<void> {
  const file = join(dataDir, FILE)
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await writeFile(file, `${use}\n`, { flag: 'wx' })
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException
    // A file in place of the folder exists, too.
    if (code !== 'EEXIST' || path !== file)
      throw new ConfigError([`DATA_DIR is ${dataDir}, which cannot be used: ${message}`])
    refuseOtherUse(dataDir, (await readFile(file, 'utf8')).trim(), use)
  }
}

function refuseOtherUse(dataDir: string, found: string, wanted: DataUse): void {
  if (found === wanted) return
  const description = found === 'demo' ? 'holds the data of a demo' : 'holds the data of a service, not of a demo'
  const remedy =
    wanted === 'demo'
      ? 'Set it to another folder for the demo, or set CHAINS_FILE to serve the data in this one'
      : 'Set it to another folder, or unset CHAINS_FILE to run the demo'
  throw new ConfigError([`DATA_DIR is ${dataDir}, which ${description}. ${remedy}`])
}
