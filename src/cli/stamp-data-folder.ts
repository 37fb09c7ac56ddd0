import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a data folder is used for. Demo data and real data never share one. */
export type DataUse = 'demo' | 'service'

const FILE = 'use'

/** The folder belongs to the other use. */
export class DataUseError extends Error {
  override readonly name = 'DataUseError'
}

/**
 * Makes the data folder where it is missing (readable by its owner alone) and marks what it is used for.
 *
 * @throws DataUseError when it is marked with the other use
 */
export async function stampDataFolder(dataDir: string, use: DataUse): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, FILE)
  try {
    await writeFile(file, `${use}\n`, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    refuseOtherUse(dataDir, (await readFile(file, 'utf8')).trim(), use)
  }
}

function refuseOtherUse(dataDir: string, found: string, wanted: DataUse): void {
  if (found === wanted) return
  const description = found === 'demo' ? 'holds the data of a demo' : 'holds data that are not those of a demo'
  const remedy =
    wanted === 'demo'
      ? 'set DATA_DIR to another folder for the demo, or CHAINS_FILE to serve what this one holds'
      : 'set DATA_DIR to another folder, or unset CHAINS_FILE to run the demo'
  throw new DataUseError(`the folder ${dataDir} ${description}; ${remedy}`)
}
