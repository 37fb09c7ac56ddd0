/** @jsxImportSource preact */
import type { ConnectOutcome, Eip1193Provider } from '@waybill/client/wallet'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ConfirmRequest, createDemoProvider } from './demo-wallet-provider.ts'
import { payTexts } from './language.ts'
import { PhoneWays } from './phone-ways.tsx'
import { BUSY } from './say-outcome.ts'
import { Screen, useSilence } from './screen-parts.tsx'

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
  /** The payment as an EIP-681 address, where one can express it. */
  readonly paymentUri: string | undefined
  readonly onConnected: (connected: Connected) => void
}

/** The wallet that has already opened an address to the page. None is asked to, and one that is silent keeps nobody waiting. */
async function findOwner(wallets: readonly Wallet[], address: string): Promise<Connected | undefined> {
  const owners = wallets.map(async ({ name, provider }) => {
    const accounts = (await provider.request({ method: 'eth_accounts' })) as readonly string[]
    const own = accounts.find((each) => each.toLowerCase() === address)
    if (own === undefined) throw new Error(`${name} has not opened ${address}`)
    return { name, address: own, provider }
  })
  return Promise.any(owners).catch(() => undefined)
}

/** What a payer reads of a wallet that did not connect. */
function sayProblem(end: Exclude<ConnectOutcome, { readonly outcome: 'CONNECTED' }>, name: string): string {
  const { wallets: texts, outcomes, advice, steps } = payTexts
  if (end.outcome === 'REFUSED') return texts.refused
  if (end.code === BUSY) return `${outcomes.WALLET_BUSY}. ${advice.WALLET_BUSY}`
  return end.reason === 'NO_ANSWER' ? steps.silent : `${texts.failed(name)} ${end.message}`
}

/** Asks one wallet to connect at a time: who chooses another has given the one before up. */
function useConnecting(onConnected: ConnectProps['onConnected']) {
  const [asking, setAsking] = useState<Wallet>()
  const [problem, setProblem] = useState<string>()
  const last = useRef<AbortController>(undefined)
  useEffect(() => () => last.current?.abort(), [])
  const connect = async (wallet: Wallet) => {
    last.current?.abort()
    const own = new AbortController()
    last.current = own
    setAsking(wallet)
    setProblem(undefined)
    const { name, provider } = wallet
    const calls = import('@waybill/client/wallet')
    const end = await calls
      .then(({ connectWallet }) => connectWallet({ provider, signal: own.signal }))
      .catch(() => undefined)
    if (own.signal.aborted || end === undefined) return
    setAsking(undefined)
    if (end.outcome === 'CONNECTED') onConnected({ name, address: end.wallet, provider })
    else setProblem(sayProblem(end, name))
  }
  return { connect, asking, problem }
}

export function ConnectScreen({ sender, confirm, paymentUri, onConnected }: ConnectProps) {
  const { wallets: texts } = payTexts
  const [wallets, setWallets] = useState<readonly Wallet[]>([])
  const [demo, setDemo] = useState<readonly Wallet[]>()
  const { connect, asking, problem } = useConnecting(onConnected)
  const isSilent = useSilence(asking)
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
  const hasNone = wallets.length === 0 && demo?.length === 0
  const list = (found: readonly Wallet[]) => (
    <ul class="wallets stack gap-2">
      {found.map((wallet) => (
        <li key={wallet.id}>
          <button type="button" class="button wallet" onClick={() => void connect(wallet)}>
            {wallet.icon !== undefined && <img src={wallet.icon} alt="" width={28} height={28} />}
            <span class="wallet-name">
              <strong>{wallet.name}</strong>
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
        {asking === undefined ? (problem ?? '') : isSilent ? payTexts.steps.silent : texts.connecting(asking.name)}
      </p>
      {list(wallets)}
      {demo !== undefined && demo.length > 0 && (
        <>
          <p class="quiet small">{texts.demo}</p>
          {list(demo)}
        </>
      )}
      {hasNone && <p class="quiet small">{texts.none}</p>}
      <PhoneWays isOpen={hasNone} paymentUri={paymentUri} />
    </Screen>
  )
}

/** The wallets that a page finds: those that announce themselves (EIP-6963), else the one at `window.ethereum`, and a demo's. */
interface Wallet {
  readonly id: string
  /** Reported by the wallet itself: shown as text, never trusted. */
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
function findWallets(onWallets: (wallets: readonly Wallet[]) => void): () => void {
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
    found.set(INJECTED, { id: INJECTED, name: payTexts.wallets.unnamed, provider: ethereum })
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
async function findDemoWallets(confirm: ConfirmRequest): Promise<readonly Wallet[]> {
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
