/** Hardhat's network as the node beneath a chain. It has no call that replaces blocks, so they are taken back to a snapshot and mined anew. */
import type { Hex } from 'viem'
import { createRpc, type Rpc } from '../../../demo/network/rpc.ts'
import { createHardhatServer } from '../../support/chains/nodes.ts'
import { ACCOUNTS, type KeptTransaction, MNEMONIC, type SoakNode } from './soak-node.ts'

/** A transaction as the node tells it. */
interface TransactionJson {
  readonly hash: Hex
  readonly from: Hex
  readonly to: Hex | null
  readonly input: Hex
  readonly value: Hex
  readonly gas: Hex
  readonly nonce: Hex
  readonly maxFeePerGas: Hex
  readonly maxPriorityFeePerGas: Hex
}

const SNAPSHOTS = 50

/** @param entry - the path of hardhat's module `hardhat/hre` */
export async function startHardhatBeneath(entry: string, chainId: number, genesisTimeSec: number): Promise<SoakNode> {
  const server = await createHardhatServer(entry, {
    chainId,
    accounts: { mnemonic: MNEMONIC, count: ACCOUNTS },
    mining: { auto: false, interval: 0 },
    initialDate: new Date(genesisTimeSec * 1_000).toISOString(),
  })
  const plain = createRpc(server.url)
  const named = (method: string) => method.replace(/^anvil_/, 'hardhat_')
  const rpc: Rpc = {
    url: server.url,
    call: (method, params) => plain.call(named(method), params),
    callAll: (calls) => plain.callAll(calls.map(([method, params]) => [named(method), params])),
  }
  /** The state after each of the last blocks. */
  const snapshots = new Map<number, string>()

  async function snapshot(): Promise<void> {
    const head = Number(await rpc.call<Hex>('eth_blockNumber'))
    snapshots.set(head, await rpc.call<string>('evm_snapshot'))
    snapshots.delete(head - SNAPSHOTS)
  }
  async function mine(timestampSec: number): Promise<void> {
    if (snapshots.size === 0) await snapshot()
    await rpc.call('evm_mine', [timestampSec])
    await snapshot()
  }

  return {
    rpc,
    mine,
    async reorg(depth, kept, timestampSec) {
      const head = Number(await rpc.call<Hex>('eth_blockNumber'))
      const base = snapshots.get(head - depth)
      if (base === undefined) throw new Error(`there is no snapshot of block ${head - depth}`)
      const again = await readTransactions(rpc, kept)
      await rpc.call('evm_revert', [base])
      // A snapshot can be used once.
      await snapshot()
      for (let offset = 0; offset < depth; offset++) {
        for (const each of again.filter((some) => some.offset === offset)) await sendAgain(rpc, each.transaction)
        await mine(timestampSec + offset)
      }
    },
    stop: server.close,
  }
}

function readTransactions(rpc: Rpc, kept: readonly KeptTransaction[]) {
  return Promise.all(
    kept.map(async ({ hash, offset }) => {
      const transaction = await rpc.call<TransactionJson>('eth_getTransactionByHash', [hash])
      return { offset, transaction }
    }),
  )
}

/** The same fields are signed to the same hash. */
async function sendAgain(rpc: Rpc, transaction: TransactionJson): Promise<void> {
  const { from, to, input: data, value, gas, nonce, maxFeePerGas, maxPriorityFeePerGas } = transaction
  const fields = { from, ...(to === null ? {} : { to }), data, value, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }
  const hash = await rpc.call<Hex>('eth_sendTransaction', [fields])
  if (hash !== transaction.hash) throw new Error(`${transaction.hash} was sent again as ${hash}`)
}
