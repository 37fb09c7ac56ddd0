import type { Hex } from 'viem'
import type { TestChain } from '../support/chains/chain.ts'

type Params = readonly unknown[]
type Call = { readonly to: string; readonly data: string; readonly value: string }

/** Throws an error with a code, or answers in place of the wallet; undefined lets the wallet go on. */
export type Meddle = (params: Params, pass: () => Promise<unknown>) => unknown

export interface TestWalletOptions {
  /** What the wallet says of batches. Default: it knows no `wallet_getCapabilities`. */
  readonly atomic?: 'supported' | 'ready' | 'unsupported'
  /** The chain on which the wallet is at first. Default: that of the node. */
  readonly chainId?: Hex
  readonly knownChains?: readonly Hex[]
  /** What goes wrong, by method. */
  readonly meddle?: Readonly<Record<string, Meddle>>
}

/** A bare EIP-1193 provider that really sends from an account of a test chain, and mines. */
export interface TestWallet {
  request(call: { method: string; params?: unknown }): Promise<unknown>
  /** The methods that ask the payer or send something, in order. */
  readonly prompts: string[]
}

const PROMPTS = /^(?:eth_sendTransaction|wallet_(?:sendCalls|switchEthereumChain|addEthereumChain))$/

export function failWith(code: number, more: object = {}): never {
  throw Object.assign(new Error(`the wallet says ${code}`), { code, ...more })
}

export function createTestWallet(
  chain: TestChain,
  account: string,
  { atomic, chainId = toHex(chain.chainId), knownChains = [toHex(chain.chainId)], meddle = {} }: TestWalletOptions = {},
): TestWallet {
  const prompts: string[] = []
  const batches = new Map<string, readonly Hex[]>()
  const known = new Set<string>(knownChains)
  let current: string = chainId

  const methods: Readonly<Record<string, (params: Params) => unknown>> = {
    eth_accounts: () => [account],
    eth_requestAccounts: () => [account],
    eth_chainId: () => current,
    wallet_switchEthereumChain([wanted]) {
      const { chainId: to } = wanted as { chainId: string }
      if (!known.has(to)) failWith(4902)
      current = to
      return null
    },
    wallet_addEthereumChain([added]) {
      known.add((added as { chainId: string }).chainId)
      return null
    },
    async eth_sendTransaction([transaction]) {
      const hash = await chain.client.rpc.call<Hex>('eth_sendTransaction', [transaction])
      await chain.mine()
      return hash
    },
    ...(atomic !== undefined && batchMethods({ chain, account, atomic, batches })),
  }

  return {
    prompts,
    request({ method, params = [] }) {
      const given = params as Params
      if (PROMPTS.test(method)) prompts.push(method)
      const pass = async () => {
        const own = methods[method]
        if (own !== undefined) return own(given)
        if (method.startsWith('wallet_')) failWith(-32601)
        return chain.client.rpc.call(method, [...given])
      }
      return Promise.resolve(meddle[method]?.(given, pass)).then((answer) => answer ?? pass())
    },
  }
}

interface Batching {
  readonly chain: TestChain
  readonly account: string
  readonly atomic: string
  readonly batches: Map<string, readonly Hex[]>
}

/** EIP-5792: all calls of a batch are mined in one block. */
function batchMethods({ chain, account, atomic, batches }: Batching): Record<string, (params: Params) => unknown> {
  return {
    wallet_getCapabilities: () => ({ [toHex(chain.chainId)]: { atomic: { status: atomic } } }),
    async wallet_sendCalls([batch]) {
      const { version, atomicRequired, from, calls } = batch as {
        version: string
        atomicRequired: boolean
        from: string
        calls: readonly Call[]
      }
      if (version !== '2.0.0' || !atomicRequired || from !== account) failWith(-32602)
      const hashes: Hex[] = []
      for (const call of calls) {
        if (Object.keys(call).toSorted().join() !== 'data,to,value') failWith(-32602)
        const transaction = { ...call, from, gas: '0x7a120' }
        hashes.push(await chain.client.rpc.call<Hex>('eth_sendTransaction', [transaction]))
      }
      await chain.mine()
      const id = `batch-${batches.size + 1}`
      batches.set(id, hashes)
      return { id }
    },
    async wallet_getCallsStatus([id]) {
      const hashes = batches.get(String(id))
      if (hashes === undefined) return failWith(5730)
      const receipts = await Promise.all(
        hashes.map((hash) => chain.client.rpc.call<{ status: string }>('eth_getTransactionReceipt', [hash])),
      )
      return { version: '2.0.0', id, status: 200, atomic: true, receipts }
    },
  }
}

function toHex(value: number): Hex {
  return `0x${value.toString(16)}`
}
