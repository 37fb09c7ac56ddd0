/**
 * The files of a demo chain, in a folder of its own:
 * - `state.json`  the last save while running; replaced by renaming, so it is complete or absent
 * - `exit.json`   written by the node at its end, also when the service was killed; may be torn
 * - `chain.json`  the genesis, written once the chain is complete; without it the folder is not used
 * - `port`        where programs last found the node
 * - `lock`        locked by the node
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Rpc } from './rpc.ts'

const unzip = promisify(gunzip)
const run = promisify(execFile)

/** After its service was killed, a node needs some milliseconds to write its state and end. */
const LOCK_WAIT_SEC = 5

/** Increment when the content of the demo's chains changes, so that older chains are created again. */
export const LAYOUT_VERSION = 9

/** Identifies a complete chain, with contracts and history. */
export interface ChainRecord {
  layoutVersion: number
  chainId: number
  genesisHash: string
  genesisTimeSec: number
}

export type ChainStateFolder = Awaited<ReturnType<typeof openStateFolder>>

/** @param folder - the chain's own; created if missing */
export async function openStateFolder(folder: string) {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const stateFile = join(folder, 'state.json')
  const exitFile = join(folder, 'exit.json')
  const recordFile = join(folder, 'chain.json')
  const portFile = join(folder, 'port')
  return {
    lockFile: join(folder, 'lock'),
    exitFile,
    stateFile,
    /**
     * Waits for a node that is still ending, and takes over the state that it wrote.
     *
     * @returns the record of a complete chain of the present layout version, else undefined
     * @throws Error when another process keeps using the folder
     */
    async open(): Promise<ChainRecord | undefined> {
      await waitForRelease(join(folder, 'lock'))
      // If it is complete, it is newer than any save.
      if (await parses(exitFile)) await rename(exitFile, stateFile)
      else await rm(exitFile, { force: true })
      const record = await readRecord(recordFile)
      return record && existsSync(stateFile) ? record : undefined
    },
    /** Deletes the chain. */
    async clear(): Promise<void> {
      for (const file of [recordFile, stateFile, exitFile]) await rm(file, { force: true })
    },
    /** 0 where there is none. */
    async lastPort(): Promise<number> {
      const port = Number(await readFile(portFile, 'utf8').catch(() => ''))
      return Number.isInteger(port) && port > 0 && port < 65_536 ? port : 0
    },
    keepPort: (port: number): Promise<void> => writeAtomically(portFile, String(port)),
    /** Writes the chain's present state. */
    async save(rpc: Rpc): Promise<void> {
      const zipped = await rpc.call<string>('anvil_dumpState')
      await writeAtomically(stateFile, await unzip(Buffer.from(zipped.slice(2), 'hex')))
    },
    /** Marks the chain complete. */
    async complete(chain: Omit<ChainRecord, 'layoutVersion'>): Promise<void> {
      const record: ChainRecord = { layoutVersion: LAYOUT_VERSION, ...chain }
      await writeAtomically(recordFile, JSON.stringify(record))
    },
  }
}

/** Replaces a file atomically: readers, and a start after a kill, see the old or the new one. */
export async function writeAtomically(file: string, content: string | Uint8Array): Promise<void> {
  const next = `${file}.next`
  await writeFile(next, content, { mode: 0o600 })
  await rename(next, file)
}

async function waitForRelease(lockFile: string): Promise<void> {
  if (!existsSync(lockFile)) return
  try {
    await run('flock', ['-w', String(LOCK_WAIT_SEC), lockFile, 'true'])
  } catch (error) {
    const missing = (error as { code?: unknown }).code === 'ENOENT'
    const message = missing
      ? 'flock is needed to keep two demos apart: install util-linux'
      : `another demo is using ${lockFile}: stop it, or choose another DATA_DIR`
    throw new Error(message, { cause: error })
  }
}

async function parses(file: string): Promise<boolean> {
  try {
    JSON.parse(await readFile(file, 'utf8'))
    return true
  } catch {
    return false
  }
}

async function readRecord(file: string): Promise<ChainRecord | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as ChainRecord
  } catch {
    return undefined
  }
}
