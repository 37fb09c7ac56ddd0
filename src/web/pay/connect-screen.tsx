/** @jsxImportSource preact */
import type { Eip1193Provider } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'
import { payTexts } from '../look/texts.ts'
import type { ConfirmRequest } from './demo-wallet-provider.ts'
import { Screen } from './screen-parts.tsx'
import { findDemoWallets, findWallets, type Wallet } from './wallets.ts'

/** A wallet that has opened an address to the page. */
export interface Connected {
  readonly name: string
  readonly address: string
  readonly provider: Eip1193Provider
}

interface ConnectProps {
  /** The address that this browser has paid the request from before: its wallet is connected again where it needs no question. */
  readonly sender: string | undefined
  readonly confirm: ConfirmRequest
  readonly onConnected: (connected: Connected) => void
}

/** A wallet that has already opened an address to the page: it is not asked to. */
async function findOwner(wallets: readonly Wallet[], address: string): Promise<Connected | undefined> {
  for (const { name, provider } of wallets) {
    const accounts = await provider.request({ method: 'eth_accounts' }).catch(() => [])
    const own = (accounts as readonly string[]).find((each) => each.toLowerCase() === address)
    if (own !== undefined) return { name, address: own, provider }
  }
  return undefined
}

/** EIP-1193: the person said no. */
const REFUSED = 4001

export function ConnectScreen({ sender, confirm, onConnected }: ConnectProps) {
  const { wallets: texts } = payTexts
  const [wallets, setWallets] = useState<readonly Wallet[]>([])
  const [demo, setDemo] = useState<readonly Wallet[]>()
  const [asking, setAsking] = useState<string>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => findWallets(setWallets), [])
  useEffect(() => void findDemoWallets(confirm).then(setDemo), [confirm])
  useEffect(() => {
    if (sender === undefined) return
    let isLeft = false
    const all = [...wallets, ...(demo ?? [])]
    void findOwner(all, sender).then((owner) => owner !== undefined && !isLeft && onConnected(owner))
    return () => {
      isLeft = true
    }
  }, [sender, wallets, demo])
  const connect = async ({ id, name, provider }: Wallet) => {
    setAsking(id)
    setProblem(undefined)
    try {
      const [address] = (await provider.request({ method: 'eth_requestAccounts' })) as readonly string[]
      if (address !== undefined) onConnected({ name, address, provider })
    } catch (error) {
      const { code, message } = error as { code?: number; message?: string }
      setProblem(code === REFUSED ? texts.refused : `${texts.failed} ${message ?? ''}`)
    } finally {
      setAsking(undefined)
    }
  }
  const list = (found: readonly Wallet[]) => (
    <ul class="wallets">
      {found.map((wallet) => (
        <li key={wallet.id}>
          <button
            type="button"
            class="button wallet"
            disabled={asking !== undefined}
            onClick={() => void connect(wallet)}
          >
            {wallet.icon !== undefined && <img src={wallet.icon} alt="" width={28} height={28} />}
            <span class="wallet-name">
              {wallet.name}
              {wallet.says !== undefined && <span class="quiet small">{wallet.says}</span>}
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
  return (
    <Screen title={texts.title}>
      <p class="small" role="status">
        {asking === undefined ? (problem ?? '') : texts.connecting}
      </p>
      {list(wallets)}
      {demo !== undefined && demo.length > 0 && (
        <>
          <p class="quiet small">{texts.demo}</p>
          {list(demo)}
        </>
      )}
      {wallets.length === 0 && demo?.length === 0 && (
        <div class="notice">
          <p>{texts.none}</p>
          <a href={`https://link.metamask.io/dapp/${location.href}`}>{texts.mobile}</a>
        </div>
      )}
    </Screen>
  )
}
