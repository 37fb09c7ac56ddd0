/** The node beneath a chain of the soak, which alone mines, replaces blocks, and is killed. */
import { writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Hex } from 'viem'
import { type AnvilOptions, startAnvil } from '../../../demo/network/anvil.ts'
import type { Rpc } from '../../../demo/network/rpc.ts'

/** A transaction that is mined again, and the block to which it goes: 0 is the first that is replaced. */
export interface KeptTransaction {
  readonly hash: Hex
  readonly offset: number
}

export interface SoakNode {
  readonly rpc: Rpc
  mine(timestampSec: number): Promise<void>
  /** Replaces the last blocks. @param timestampSec - later than that of all blocks so far */
  reorg(depth: number, kept: readonly KeptTransaction[], timestampSec: number): Promise<void>
  /** Absent where the node keeps no state. */
  readonly lives?: {
    /** Keeps the state to which a kill returns. */
    save(): Promise<void>
    /** Kills the node, waits, and starts it again from the state that was saved. Loses the states of earlier blocks. */
    kill(downMs: number): Promise<void>
  }
  stop(): Promise<void>
}

export const MNEMONIC = 'test test test test test test test test test test test junk'
export const ACCOUNTS = 30

const unzip = promisify(gunzip)

/** @param file - for the state that is kept */
export async function startAnvilBeneath(chainId: number, genesisTimeSec: number, file: string): Promise<SoakNode> {
  const options: AnvilOptions = { chainId, mnemonic: MNEMONIC, accounts: ACCOUNTS, automine: false, genesisTimeSec }
  let anvil = await startAnvil(options)
  const { rpc } = anvil
  return {
    rpc,
    async mine(timestampSec) {
      await rpc.call('evm_mine', [timestampSec])
    },
    async reorg(depth, kept) {
      const again: [Hex, number][] = []
      for (const { hash, offset } of kept) {
        again.push([await rpc.call<Hex>('eth_getRawTransactionByHash', [hash]), offset])
      }
      await rpc.call('anvil_reorg', [depth, again])
    },
    lives: {
      async save() {
        const zipped = await rpc.call<string>('anvil_dumpState')
        await writeFile(file, await unzip(Buffer.from(zipped.slice(2), 'hex')))
      },
      async kill(downMs) {
        process.kill(anvil.pid, 'SIGKILL')
        await anvil.exited
        await new Promise((resolve) => setTimeout(resolve, downMs))
        anvil = await startAnvil({ ...options, port: Number(new URL(rpc.url).port), loadFile: file })
      },
    },
    stop: () => anvil.stop(),
  }
}
