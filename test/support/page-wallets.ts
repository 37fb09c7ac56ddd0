/** Wallets for pages that are tried on a running demo: they announce themselves (EIP-6963), pay with an account of the demo, and misbehave as their terms say. */
import type { Page } from 'playwright-core'
import type { Eip1193Provider } from '../../clients/typescript/src/public.ts'

/** What a wallet throws: an error with these fields, or the value as it is. */
type Thrown = { readonly code?: number | string; readonly message?: string; readonly data?: unknown } | string | null

/** What a wallet does in place of what it was asked for. */
export type Act =
  | { readonly throws: Thrown }
  /** As JSON has it. */
  | { readonly answers: unknown }
  /** Waits for its person: see `answerWallet`. */
  | 'HOLDS'
  | 'IS_SILENT'
  /** It does what it was asked for, and says otherwise. */
  | { readonly doesAndThrows: Thrown }
  | { readonly doesAndAnswers: unknown }
  | 'DOES_AND_IS_SILENT'
  /** With too little gas: the transaction is mined and fails. */
  | 'SENDS_TOO_LITTLE_GAS'
  /** Its person cancels the transaction in the wallet: another one, which pays nothing, takes its place. */
  | 'CANCELS'
  /** Its person speeds the transaction up: the same one, by another hash. */
  | 'SPEEDS_UP'
  /** Another program uses it: it has another account, or none, when it is asked next. */
  | { readonly changesAccount: string | null }

export interface BrowserWallet {
  readonly name: string
  /** The wallet of the demo whose account it has. */
  readonly account: string
  /** By method: what it does every time, or at the first calls. Otherwise it does what it is asked for. */
  readonly acts: Readonly<Record<string, Act | readonly Act[]>>
  /** The chain on which it is at first, in hex. By default that of the demo's first. */
  readonly chainId?: string
}

/** Puts a wallet into a page, also after each reload. */
export async function announceWallet(page: Page, wallet: Partial<BrowserWallet>): Promise<void> {
  await page.addInitScript(beWallet, { name: 'Test wallet', account: 'coinsOnly', acts: {}, ...wallet })
}

/** What the wallet was asked to send since the page was loaded. */
export const questionsOf = (page: Page): Promise<readonly string[]> => page.evaluate(() => askedWallet)

/** Answers the question that is on top of the wallet, as its person would. */
export const answerWallet = (page: Page, isYes: boolean): Promise<void> =>
  page.evaluate((yes) => answerHeld(yes), isYes)

/** Changes the account of the wallet, and tells the page. None closes the wallet to the page. */
export const changeAccount = (page: Page, account: string | undefined): Promise<void> =>
  page.evaluate((name) => changeAccountOfWallet(name), account)

/** In the page. */
declare const askedWallet: readonly string[]
declare function answerHeld(isYes: boolean): void
declare function changeAccountOfWallet(name: string | undefined): Promise<void>

/** In the page, so it stands alone. */
function beWallet(wallet: BrowserWallet): void {
  const QUESTIONS = /^(?:eth_sendTransaction|wallet_sendCalls)$/
  /** A wallet outlives the page: what it holds, and how often it was asked. */
  const HELD = `held by ${wallet.name}`
  const COUNTS = `counted by ${wallet.name}`
  const FOREIGN = '0x1'
  type Params = readonly unknown[]
  type Asked = { readonly method: string; readonly params: Params; readonly goOn: () => Promise<unknown> }
  const asked: string[] = []
  const held: ((isYes: boolean) => void)[] = []
  const listeners: ((accounts: readonly string[]) => void)[] = []
  const counts = JSON.parse(sessionStorage.getItem(COUNTS) ?? '{}') as Record<string, number>
  /** Transactions that the wallet's node knows and that are never mined, by hash. */
  const replaced = new Map<string, object>()
  let account: string | null = wallet.account
  let chainId = wallet.chainId

  const fail = (thrown: unknown): never => {
    if (typeof thrown !== 'object' || thrown === null) throw thrown
    const { message, code } = thrown as { readonly message?: string; readonly code?: number }
    throw Object.assign(new Error(message ?? `the wallet says ${code}`), thrown)
  }
  const silence = () => new Promise<never>(() => {})
  const post = async (method: string, params: Params) => {
    const body = JSON.stringify({ method, params, ...(chainId !== undefined && { chainId }) })
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`/demo/wallets/${account}`, { method: 'POST', headers, body })
    const { result, error } = (await reply.json()) as { result?: unknown; error?: object }
    if (error !== undefined) throw Object.assign(new Error('the demo refused'), error)
    return result
  }
  const own = async (method: string, params: Params): Promise<unknown> => {
    if (account === null && /accounts$/i.test(method)) return []
    if (method === 'eth_chainId' && chainId === FOREIGN) return FOREIGN
    const known = replaced.get(String(params[0]))
    if (known !== undefined) return method === 'eth_getTransactionByHash' ? known : null
    const result = await post(method, params)
    if (method === 'wallet_switchEthereumChain') chainId = (params[0] as { chainId: string }).chainId
    return result
  }
  /** Sends another transaction in the place of one. @returns the hash of the one that is never mined */
  const replace = async (given: unknown, by: (transaction: { readonly from: string }) => object) => {
    const transaction = given as { readonly from: string }
    const nonce = await post('eth_getTransactionCount', [transaction.from, 'latest'])
    await post('eth_sendTransaction', [by(transaction)])
    const hash = `0x${'c0'.repeat(31)}${replaced.size.toString(16).padStart(2, '0')}`
    replaced.set(hash, { hash, nonce })
    return hash
  }
  /** @param goOn - does what comes next of the list of acts */
  const act = async (what: Act, { method, params, goOn }: Asked): Promise<unknown> => {
    if (what === 'IS_SILENT') return silence()
    if (what === 'DOES_AND_IS_SILENT') return own(method, params).then(silence)
    if (what === 'SENDS_TOO_LITTLE_GAS') return own(method, [{ ...(params[0] as object), gas: '0x7530' }])
    if (what === 'SPEEDS_UP') return replace(params[0], (transaction) => transaction)
    if (what === 'CANCELS') {
      const nothing = ({ from }: { readonly from: string }) => ({ from, to: from, data: '0x', value: '0x0' })
      return replace(params[0], nothing)
    }
    if (what === 'HOLDS') {
      const before = account
      sessionStorage.setItem(HELD, JSON.stringify({ method, params, account, chainId }))
      const isYes = await new Promise<boolean>((resolve) => held.push(resolve))
      sessionStorage.removeItem(HELD)
      if (!isYes) fail({ code: 4001, message: 'refused' })
      // It was asked to send from the account that it had then.
      const now = account
      account = before
      return goOn().finally(() => {
        account = now
      })
    }
    if ('throws' in what) return fail(what.throws)
    if ('answers' in what) return what.answers
    if ('changesAccount' in what) {
      account = what.changesAccount
      return goOn()
    }
    await own(method, params)
    return 'doesAndThrows' in what ? fail(what.doesAndThrows) : what.doesAndAnswers
  }
  const next = (method: string, params: Params): Promise<unknown> => {
    const acts = wallet.acts[method]
    const nth = counts[method] ?? 0
    sessionStorage.setItem(COUNTS, JSON.stringify(Object.assign(counts, { [method]: nth + 1 })))
    const what = Array.isArray(acts) ? (acts as readonly Act[])[nth] : (acts as Act | undefined)
    const goOn = () => (Array.isArray(acts) ? next(method, params) : own(method, params))
    return what === undefined ? own(method, params) : act(what, { method, params, goOn })
  }
  const left = JSON.parse(sessionStorage.getItem(HELD) ?? 'null') as (Asked & { readonly chainId?: string }) | null
  if (left !== null) {
    sessionStorage.removeItem(HELD)
    held.push((isYes) => {
      chainId = left.chainId
      if (isYes) void own(left.method, left.params)
    })
  }
  const provider = {
    async request({ method, params = [] }: { method: string; params?: Params }) {
      if (QUESTIONS.test(method)) asked.push(method)
      return next(method, params)
    },
    on: (event: string, listener: (accounts: readonly string[]) => void) =>
      void (event === 'accountsChanged' && listeners.push(listener)),
    removeListener: (_: string, listener: (accounts: readonly string[]) => void) =>
      void listeners.splice(listeners.indexOf(listener), 1),
  }
  const info = { uuid: `wallet ${wallet.name}`, name: wallet.name, icon: '', rdns: 'test.wallet' }
  const announce = () =>
    dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  addEventListener('eip6963:requestProvider', announce)
  Object.assign(globalThis, {
    askedWallet: asked,
    answerHeld: (isYes: boolean) => held.pop()?.(isYes),
    changeAccountOfWallet: async (name: string | undefined) => {
      account = name ?? null
      const accounts = (await own('eth_accounts', [])) as readonly string[]
      for (const listener of listeners) listener(accounts)
    },
  })
}

/** A wallet of a running demo, for a test that pays without a page. */
export function demoWallet(baseUrl: string, name: string): Eip1193Provider {
  let chainId: string | undefined
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ method, params, chainId })
      const answer = await fetch(`${baseUrl}/demo/wallets/${name}`, {
        method: 'POST',
        headers: { origin: baseUrl },
        body,
      })
      const { result, error } = (await answer.json()) as { result?: unknown; error?: { code: number; message: string } }
      if (error !== undefined) throw Object.assign(new Error(error.message), error)
      if (method === 'wallet_switchEthereumChain') chainId = (params as [{ chainId: string }])[0].chainId
      return result
    },
  }
}
