/** The wallets that a page finds: those that announce themselves (EIP-6963), else the one at `window.ethereum`, and a demo's. */
import type { Eip1193Provider } from '@waybill/client/checkout'
import { type ConfirmRequest, createDemoProvider } from './demo-wallet-provider.ts'

export interface Wallet {
  readonly id: string
  /** Told by the wallet itself: shown as text, never trusted. */
  readonly name: string
  /** A data URI, or nothing. */
  readonly icon?: string
  /** What a demo's wallet holds. */
  readonly says?: string
  readonly provider: Eip1193Provider
}

interface Announcement extends Event {
  readonly detail?: {
    readonly info?: { readonly uuid?: unknown; readonly name?: unknown; readonly icon?: unknown }
    readonly provider?: Eip1193Provider
  }
}

/** Tells of the wallets of the browser, each time that one more announces itself. @returns ends it */
export function findWallets(onWallets: (wallets: readonly Wallet[]) => void): () => void {
  const found = new Map<string, Wallet>()
  const tell = () => onWallets([...found.values()])
  const announce = (event: Event) => {
    const wallet = walletOf(event)
    if (wallet === undefined || found.has(wallet.id)) return
    found.set(wallet.id, wallet)
    found.delete(INJECTED)
    tell()
  }
  addEventListener('eip6963:announceProvider', announce)
  dispatchEvent(new Event('eip6963:requestProvider'))
  const { ethereum } = globalThis as { ethereum?: Eip1193Provider }
  if (found.size === 0 && ethereum !== undefined) {
    found.set(INJECTED, { id: INJECTED, name: 'Browser wallet', provider: ethereum })
    tell()
  }
  return () => removeEventListener('eip6963:announceProvider', announce)
}

const INJECTED = 'window.ethereum'
const MAX_NAME = 64

function walletOf({ detail }: Announcement): Wallet | undefined {
  const { info, provider } = detail ?? {}
  if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || typeof provider?.request !== 'function')
    return undefined
  const icon = typeof info.icon === 'string' && /^data:image\/[a-z+]+[;,]/.test(info.icon) ? info.icon : undefined
  return { id: info.uuid, name: info.name.slice(0, MAX_NAME), ...(icon !== undefined && { icon }), provider }
}

/** The wallets of a demo; none elsewhere. @param confirm - asks the person, as a wallet would */
export async function findDemoWallets(confirm: ConfirmRequest): Promise<readonly Wallet[]> {
  const answer = await fetch('/demo/wallets').catch(() => undefined)
  if (answer?.ok !== true) return []
  const wallets = (await answer.json()) as readonly { name: string; address: string; says: string }[]
  return wallets.map(({ name, says }) => ({
    id: `demo:${name}`,
    name,
    says,
    provider: createDemoProvider(name, confirm),
  }))
}
