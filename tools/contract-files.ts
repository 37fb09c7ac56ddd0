/** The JSON form of the committed contracts, and the function that writes or checks it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface CompiledContract {
  source: string
  license: string
  notice: string
  abi: readonly unknown[]
  /** Creation code: what a deployment transaction carries, before the constructor's arguments. */
  bytecode: `0x${string}`
}

const folder = fileURLToPath(new URL('../demo/contracts/', import.meta.url))

/**
 * Writes `NAME.json` for each contract, or with `check` compares with what is committed.
 *
 * @returns the exit code: 1 when a file is missing or differs under `check`
 */
export function writeContractFiles(contracts: Record<string, CompiledContract>, check: boolean): 0 | 1 {
  let differs = false
  mkdirSync(folder, { recursive: true })
  for (const [name, contract] of Object.entries(contracts)) {
    const file = join(folder, `${name}.json`)
    const text = `${JSON.stringify(contract, null, 1)}\n`
    if (!check) writeFileSync(file, text)
    else if (readIfThere(file) !== text) {
      differs = true
      process.stderr.write(`${name}.json differs from its source: run the tool without --check and commit the result\n`)
    }
  }
  return differs ? 1 : 0
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
