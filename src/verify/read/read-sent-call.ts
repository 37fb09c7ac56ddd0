import { readQuantity } from '../../contracts/words.ts'
import type { Hex } from '../../domain/hex.ts'
import { isObject } from '../../nodes/rpc-error.ts'
import { askUntil, type ChainNodes } from './chain-nodes.ts'

/** What a transaction calls with. */
export interface SentCall {
  readonly input: Hex
  /** In wei. */
  readonly value: bigint
}

/** Reads the input and the value of a transaction. @returns undefined where no node has it @throws RpcError when no node answers */
export async function readSentCall(nodes: ChainNodes, txHash: Hex): Promise<SentCall | undefined> {
  const call = { method: 'eth_getTransactionByHash', params: [txHash] }
  const answers = await askUntil(nodes, [call], ([answer]) => answer?.ok === true && isObject(answer.result))
  const [answer] = answers ?? []
  const { input, value } = answer?.ok && isObject(answer.result) ? answer.result : {}
  const wei = readQuantity(value)
  return typeof input === 'string' && wei !== undefined ? { input: input as Hex, value: wei } : undefined
}
