/**
 * What a demo chain keeps on disk, in a folder of its own:
 * - `state.json`  the chain as it was saved last while running; replaced by renaming, so it is whole or absent
 * - `exit.json`   written by the node itself as it ends, also when the service was killed; may be torn
 * - `chain.json`  the genesis, written once the chain is complete; without it the folder is worth nothing
 * - `lock`        held by the node
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

/** A node whose service was killed needs some milliseconds to write its state and end. */
const LOCK_WAIT_SEC = 5

/** Raised when what the demo puts on its chains changes, so that chains of an older version are made anew. */
export const LAYOUT_VERSION = 3

/** Identifies a chain that is complete: contracts, history and all. */
export interface ChainRecord {
  layoutVersion: number
  chainId: number
  genesisHash: string
  genesisTimeSec: number
}

export interface ChainStateFolder {
  lockFile: string
  exitFile: string
  stateFile: string
  /**
   * Takes over what a node left as it ended, once it has.
   *
   * @returns the record of a chain that is whole, or undefined; one of another layout version cannot be continued
   * @throws Error when another process goes on using the folder
   */
  open(): Promise<ChainRecord | undefined>
  /** true when there was something in the folder before `open`. */
  existed: boolean
  /** Throws everything away but the lock. */
  clear(): Promise<void>
  /** Writes the chain's whole state as it is now. @returns bytes written */
  save(rpc: Rpc): Promise<number>
  /** Declares the chain complete. */
  complete(chain: Omit<ChainRecord, 'layoutVersion'>): Promise<void>
}

/** @param folder - the chain's own; made when it is not there */
export async function openStateFolder(folder: string): Promise<ChainStateFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const stateFile = join(folder, 'state.json')
  const exitFile = join(folder, 'exit.json')
  const recordFile = join(folder, 'chain.json')
  return {
    lockFile: join(folder, 'lock'),
    exitFile,
    stateFile,
    existed: existsSync(recordFile) || existsSync(stateFile) || existsSync(exitFile),
    async open() {
      await waitForRelease(join(folder, 'lock'))
      // Written later than any save, where it is whole.
      if (await parses(exitFile)) await rename(exitFile, stateFile)
      else await rm(exitFile, { force: true })
      const record = await readRecord(recordFile)
      return record && existsSync(stateFile) ? record : undefined
    },
    async clear() {
      for (const file of [recordFile, stateFile, exitFile]) await rm(file, { force: true })
    },
    async save(rpc) {
      const zipped = await rpc.call<string>('anvil_dumpState')
      const state = await unzip(Buffer.from(zipped.slice(2), 'hex'))
      await writeAtomically(stateFile, state)
      return state.length
    },
    async complete(chain) {
      const record: ChainRecord = { layoutVersion: LAYOUT_VERSION, ...chain }
      await writeAtomically(recordFile, JSON.stringify(record))
    },
  }
}

/** Replaces a file whole: a reader sees the old or the new one, and a kill leaves one of them. */
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
