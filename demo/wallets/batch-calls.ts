/** EIP-5792: several calls as one. The wallet's account delegates to DemoAccount.sol, so they are one transaction, carried out whole or not at all. */
import type { Address, Hex } from 'viem'
import { encodeExecute } from '../network/demo-contracts.ts'
import { toQuantity } from '../network/rpc.ts'
import { askChain, findChain, type WalletChain } from './wallet-chain.ts'
import { INVALID_PARAMS, UNAUTHORIZED, UNKNOWN_BATCH, WalletError } from './wallet-error.ts'
import { isAddress, isBytes, isQuantity } from './wallet-values.ts'

type BatchCall = (chains: readonly WalletChain[], address: string, params: readonly unknown[]) => Promise<unknown>

export const batchCalls = {
  wallet_getCapabilities: async (chains) =>
    Object.fromEntries(chains.map(({ spec }) => [toQuantity(spec.chainId), { atomic: { status: 'supported' } }])),
  wallet_sendCalls: async (chains, address, [batch]) => {
    const { from, chainId, calls } = readBatch(batch)
    if (from.toLowerCase() !== address.toLowerCase())
      throw new WalletError(UNAUTHORIZED, `this wallet does not send from ${from}`)
    // The coins of the calls are the account's own.
    const transaction = { from: address, to: address, data: encodeExecute(calls) }
    const hash = await askChain(findChain(chains, chainId), 'eth_sendTransaction', [transaction])
    return { id: `${chainId}:${String(hash)}` }
  },
  wallet_getCallsStatus: async (chains, address, [id]) => {
    const { chainId, hash, chain } = readBatchId(chains, id)
    const [sent, receipt] = (await Promise.all([
      askChain(chain, 'eth_getTransactionByHash', [hash]),
      askChain(chain, 'eth_getTransactionReceipt', [hash]),
    ])) as [{ from: string; to: string | null } | null, { status: string } | null]
    // A batch is a transaction of the wallet to itself.
    const isBatch = [sent?.from, sent?.to].every((each) => each?.toLowerCase() === address.toLowerCase())
    if (!isBatch) throw new WalletError(UNKNOWN_BATCH, NO_BATCH)
    const status = receipt === null ? 100 : BigInt(receipt.status) === 1n ? 200 : 500
    return { version: '2.0.0', id, chainId, atomic: true, status, receipts: receipt === null ? [] : [receipt] }
  },
} satisfies Record<string, BatchCall>

const NO_BATCH = 'there is no such batch'

/** Reads the id that `wallet_sendCalls` answered. @throws WalletError 5730 */
function readBatchId(chains: readonly WalletChain[], id: unknown) {
  const [, chainId, hash] = /^(0x[0-9a-f]{1,16}):(0x[0-9a-f]{64})$/i.exec(typeof id === 'string' ? id : '') ?? []
  const chain = chains.find(({ spec }) => toQuantity(spec.chainId) === chainId?.toLowerCase())
  if (hash === undefined || chain === undefined) throw new WalletError(UNKNOWN_BATCH, NO_BATCH)
  return { chainId, hash, chain }
}

interface ReadBatch {
  readonly from: string
  readonly chainId: string
  readonly calls: readonly { readonly target: Address; readonly value: bigint; readonly data: Hex }[]
}

const MAX_CALLS = 10

function readBatch(param: unknown): ReadBatch {
  const { version, from, chainId, calls } = (param ?? {}) as Partial<
    Record<'version' | 'from' | 'chainId' | 'calls', unknown>
  >
  if (version !== '2.0.0') throw new WalletError(INVALID_PARAMS, 'params[0].version is not "2.0.0"')
  if (typeof from !== 'string' || typeof chainId !== 'string')
    throw new WalletError(INVALID_PARAMS, 'params[0].from and chainId are needed')
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > MAX_CALLS)
    throw new WalletError(INVALID_PARAMS, `params[0].calls is not a list of 1 to ${MAX_CALLS} calls`)
  return { from, chainId, calls: calls.map(readOne) }
}

function readOne(call: unknown, index: number): ReadBatch['calls'][number] {
  const { to, value = '0x0', data = '0x' } = (call ?? {}) as { to?: unknown; value?: unknown; data?: unknown }
  if (!isAddress(to) || !isQuantity(value) || !isBytes(data))
    throw new WalletError(INVALID_PARAMS, `params[0].calls[${index}] is not {to, value?, data?} in hex`)
  return { target: to, value: BigInt(value), data }
}
