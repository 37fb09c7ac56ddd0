import type { DemoChain } from '../network/network.ts'
import { callWallet } from './demo-wallet.ts'
import { INVALID_REQUEST, LIMIT_EXCEEDED, WalletError } from './wallet-error.ts'

/** A wallet that a page may use. */
export interface OfferedWallet {
  readonly name: string
  readonly address: string
  /** What it holds, for people. */
  readonly says: string
  /** Whether it makes several calls as one. */
  readonly batches: boolean
}

const ROOT = '/demo/wallets'

interface WalletLimits {
  /** For the calls of the node that one call of a page makes. */
  readonly timeoutMs: number
  /** Calls that run at once. */
  readonly atOnce: number
}

/** A page makes a handful at once. A node of the demo answers within some milliseconds, and hangs where the machine sleeps. */
const USUAL_LIMITS: WalletLimits = { timeoutMs: 10_000, atOnce: 64 }

/** The calls of pages that the demo answers: `GET /demo/wallets`, and `POST /demo/wallets/{name}` with a request of EIP-1193. */
export function createWalletCalls(chains: readonly DemoChain[], limits = USUAL_LIMITS) {
  const wallets: readonly OfferedWallet[] = (chains[0]?.people.wallets ?? []).map(
    ({ name, address, says, batches = false }) => ({ name, address, says, batches }),
  )
  let running = 0
  const find = (rawPath: string) => wallets.find(({ name }) => rawPath === `${ROOT}/${name}`)
  return {
    covers: (rawPath: string) => rawPath === ROOT || rawPath.startsWith(`${ROOT}/`),
    methodsOf: (rawPath: string) => (rawPath === ROOT ? ['GET'] : find(rawPath) === undefined ? [] : ['POST']),
    async answer({ rawPath, body }: { readonly rawPath: string; readonly body: unknown }): Promise<unknown> {
      const wallet = find(rawPath)
      if (wallet === undefined) return wallets
      if (running >= limits.atOnce)
        return { error: { code: LIMIT_EXCEEDED, message: 'too many calls at once: try again' } }
      running++
      try {
        const signal = AbortSignal.timeout(limits.timeoutMs)
        const asked = chains.map(({ spec, client }) => ({ spec, client, signal }))
        return { result: await callWallet(asked, wallet, readCall(body)) }
      } catch (error) {
        if (!(error instanceof WalletError)) throw error
        const { code, message, data } = error
        return { error: { code, message, ...(data !== undefined && { data }) } }
      } finally {
        running--
      }
    },
  }
}

/** @throws WalletError -32600 */
function readCall(body: unknown) {
  const { method, params = [], chainId } = (body ?? {}) as { method?: unknown; params?: unknown; chainId?: unknown }
  if (typeof method !== 'string')
    throw new WalletError(INVALID_REQUEST, 'method is missing: send {"method":"eth_accounts","params":[]}')
  if (!Array.isArray(params)) throw new WalletError(INVALID_REQUEST, 'params is not a list')
  if (chainId !== undefined && (typeof chainId !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(chainId)))
    throw new WalletError(INVALID_REQUEST, 'chainId is not a number in hex')
  return { method, params: params as readonly unknown[], chainId }
}
