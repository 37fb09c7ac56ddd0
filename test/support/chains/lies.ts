/** What a node before a real chain tells that is not so, in all of its answers alike, for a proxy's `meddle`. */
import { type Hex, keccak256, pad } from 'viem'
import type { PaymentRequest } from '../../../src/domain/payment-request.ts'
import type { Meddle } from './rpc-proxy.ts'

type Log = Readonly<Record<'address' | 'transactionHash' | 'blockHash' | 'blockNumber' | 'logIndex', Hex>> & {
  readonly topics: readonly Hex[]
  readonly data: Hex
}
export interface Receipt {
  readonly transactionHash: Hex
  readonly logs: readonly Log[]
}

export const topicOf = ({ paymentReference }: PaymentRequest): Hex => keccak256(paymentReference)

/** Changes a transaction in logs and receipts alike. @param alone - in `eth_getLogs` alone */
function inTransactions(change: (log: Log) => readonly Log[], alone = false): Meddle {
  return ({ method }, ask) => {
    if (method === 'eth_getLogs') return ask().then((logs) => (logs as Log[]).flatMap(change))
    if (alone) return undefined
    const ofReceipt = (receipt: Receipt) => ({ ...receipt, logs: receipt.logs.flatMap(change) })
    if (method === 'eth_getTransactionReceipt') {
      return ask().then((receipt) => (receipt === null ? null : ofReceipt(receipt as Receipt)))
    }
    return method === 'eth_getBlockReceipts' ? ask().then((list) => (list as Receipt[]).map(ofReceipt)) : undefined
  }
}

/** Has no logs of a request's payments. */
export function omits(request: PaymentRequest, alone = true): Meddle {
  return inTransactions((log) => (log.topics.includes(topicOf(request)) ? [] : [log]), alone)
}

/** Says that a request's payments in coins were of another amount. */
export function misstates(request: PaymentRequest, amount: bigint): Meddle {
  return inTransactions((log) => {
    if (!log.topics.includes(topicOf(request))) return [log]
    return [
      {
        ...log,
        data: `${log.data.slice(0, 66)}${pad(`0x${amount.toString(16)}`).slice(2)}${log.data.slice(130)}` as Hex,
      },
    ]
  })
}

/** Says that a request was paid in the same block, and the same way, as another one. @param model - that one's receipt, as the node gives it */
export function invents(unpaid: PaymentRequest, model: Receipt): Meddle {
  const transactionHash = keccak256(topicOf(unpaid))
  const fake = (log: Log): Log => ({
    ...log,
    transactionHash,
    topics: [log.topics[0] ?? '0x', topicOf(unpaid)],
    data: `${pad(unpaid.payee.toLowerCase() as Hex)}${log.data.slice(66)}` as Hex,
  })
  return ({ method, params }, ask) => {
    if (method === 'eth_getLogs') {
      return ask().then((logs) =>
        (logs as Log[]).flatMap((log) => (log.transactionHash === model.transactionHash ? [log, fake(log)] : [log])),
      )
    }
    const isAsked = method === 'eth_getTransactionReceipt' && params[0] === transactionHash
    return isAsked ? Promise.resolve({ ...model, transactionHash, logs: model.logs.map(fake) }) : undefined
  }
}

/** Several lies at once; of those that meddle with a call, the first asks the node and the others change its answer. */
export function together(...lies: readonly Meddle[]): Meddle {
  return (call, ask) => {
    const reported = lies.reduce<() => Promise<unknown>>((before, lie) => () => lie(call, before) ?? before(), ask)
    return reported()
  }
}

/** Has blooms in no header, so that they do not give away what it leaves out. */
export const withoutBlooms: Meddle = ({ method }, ask) =>
  method.startsWith('eth_getBlockBy') ? ask().then((block) => block && { ...block, logsBloom: '0x' }) : undefined

/** Has neither receipts by block nor their root, as a chain whose headers hash other fields, so that it can prove nothing alone. */
export const withoutProof: Meddle = ({ method }, ask) => {
  if (method === 'eth_getBlockReceipts') {
    return Promise.resolve({ rpcError: { code: -32601, message: 'the method does not exist' } })
  }
  const receiptsRoot = `0x${'00'.repeat(32)}`
  return method.startsWith('eth_getBlockBy') ? ask().then((block) => block && { ...block, receiptsRoot }) : undefined
}
