import type { Hex } from 'viem'
import type { Logger } from '../../domain/logger.ts'
import { MOST_UNSAVED_BLOCKS } from '../network/chain-specs.ts'
import type { ContractCall } from '../network/demo-contracts.ts'
import type { Book, Entry } from './book.ts'
import type { BridgeChain } from './bridge-chain.ts'
import { encodeDelivery, encodeGiveBack, encodeTake, returnFrom } from './deposit.ts'

export interface Relayer {
  /** Sends what is due by what the book says. Resolves when the nodes have it, not when it is mined. */
  step(): Promise<void>
}

/** What is to be sent, and to which chain. */
interface Task {
  chain: BridgeChain
  call: ContractCall
  says: string
}

/** Blocks on a delivery before the deposit is taken: a kill of everything may lose fewer, and the delivery must not be among them. */
const DEEP_ENOUGH = MOST_UNSAVED_BLOCKS + 1

/**
 * Several times what a delivery uses. It is not estimated: a payment that fails for want of gas looks like one that the contract refuses, and
 * the estimate would be of that.
 */
const GAS = 1_000_000n

/**
 * Makes the relayer: what was deposited it delivers on the other chain out of its own pocket, and takes the deposit once that stands. What
 * could not be delivered in its time it has given back. All of it follows from the chains, so that it goes on where another has ended.
 */
export function createRelayer(chains: readonly BridgeChain[], book: Book, logger: Logger): Relayer {
  const underWay = new Map<string, Hex>()
  const refused = new Set<string>()

  async function carryOut({ chain, call, says }: Task, key: string): Promise<void> {
    const { rpc } = chain.client
    const sent = underWay.get(key)
    if (sent !== undefined && (await isUnderWay(chain, sent))) return
    const { relayer: from, tipPerGas } = chain
    try {
      // Asked for whether it would be reverted alone.
      await rpc.call('eth_estimateGas', [{ from, to: call.to, data: call.data }])
      const hash = await chain.client.send(from, call, { gas: GAS, maxPriorityFeePerGas: tipPerGas })
      underWay.set(key, hash)
      logger.info({ chain: chain.name, hash }, says)
    } catch (error) {
      if (!refused.has(key))
        logger.warn({ chain: chain.name, err: error }, 'the bridge could not do what is due; it goes on trying')
      refused.add(key)
    }
  }

  return {
    async step() {
      for (const entry of book.entries()) {
        const task = decide(entry, chains, book)
        if (task !== undefined) await carryOut(task, `${task.says} ${entry.id}`)
      }
    },
  }
}

/** Not once it was reverted, or once a reorg has taken it out and the node has forgotten it. */
async function isUnderWay({ client }: BridgeChain, hash: Hex): Promise<boolean> {
  const receipt = await client.receipt(hash)
  return receipt?.succeeded ?? (await client.rpc.call('eth_getTransactionByHash', [hash])) !== null
}

/** What is due for a deposit; nothing while something else has to happen before. */
function decide(entry: Entry, chains: readonly BridgeChain[], book: Book): Task | undefined {
  const { id, deposit, deposited, delivered, closed } = entry
  const source = deposited.chain
  const destination = chains.find(({ chainId }) => BigInt(chainId) === deposit.toChainId)
  if (destination === undefined || closed?.kind === 'RETURNED') return undefined
  if (delivered === undefined) {
    // A deposit that was taken is delivered all the same, where a kill has lost the delivery.
    if (book.headOf(destination).timestampSec <= deposit.across.fillDeadline) {
      const call = encodeDelivery(destination.executor, id, deposit)
      return { chain: destination, call, says: 'the bridge delivers' }
    }
    if (closed !== undefined || book.headOf(source).timestampSec < returnFrom(deposit)) return undefined
    return {
      chain: source,
      call: encodeGiveBack(source.escrow, deposit),
      says: 'the bridge gives back what it could not deliver',
    }
  }
  const isDeep = book.headOf(destination).number - delivered.block >= DEEP_ENOUGH
  if (closed !== undefined || !isDeep) return undefined
  return { chain: source, call: encodeTake(source.escrow, deposit), says: 'the bridge takes what it has delivered' }
}
