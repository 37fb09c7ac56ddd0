import type { Eip1193Provider } from '@waybill/client/wallet'

/** A transaction that a wallet shows before it signs. */
export interface ToConfirm {
  readonly wallet: string
  readonly calls: readonly SentCall[]
}

interface SentCall {
  readonly to?: string
  readonly value?: string
  readonly data?: string
}

/** Asks the person. @returns whether they agree */
export type ConfirmRequest = (asked: ToConfirm) => Promise<boolean>

/** EIP-1193: the person said no. */
const REFUSED = 4001

/** A wallet of the demo, which the process keeps. What a browser's wallet asks in a window of its own, the page asks in a dialog. */
export function createDemoProvider(name: string, confirm: ConfirmRequest): Eip1193Provider {
  let chainId: string | undefined
  return {
    async request({ method, params = [] }: { method: string; params?: unknown }) {
      const given = params as readonly unknown[]
      const calls = callsOf(method, given)
      if (calls !== undefined && !(await confirm({ wallet: name, calls }))) {
        throw Object.assign(new Error('the person refused'), { code: REFUSED })
      }
      const result = await post(name, { method, params: given, ...(chainId !== undefined && { chainId }) })
      if (method === 'wallet_switchEthereumChain') chainId = (given[0] as { chainId: string }).chainId
      return result
    },
  }
}

function callsOf(method: string, params: readonly unknown[]): ToConfirm['calls'] | undefined {
  if (method === 'eth_sendTransaction') return params as readonly SentCall[]
  return method === 'wallet_sendCalls' ? (params[0] as Pick<ToConfirm, 'calls'>).calls : undefined
}

async function post(name: string, call: unknown): Promise<unknown> {
  const answer = await fetch(`/demo/wallets/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  })
  const { result, error } = (await answer.json()) as { result?: unknown; error?: { code: number; message: string } }
  if (error !== undefined) throw Object.assign(new Error(error.message), error)
  if (!answer.ok) throw new Error(`the demo's wallet answered with status ${answer.status}`)
  return result
}
