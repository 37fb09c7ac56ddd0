/** What wallets do, what may happen meanwhile, and what must hold of the checkout page then. */
import type { Act, BrowserWallet } from '../../support/page-wallets.ts'

/** What is due: coins need one question, a token two, or one batch. `TO_PAYER`: the payee is the wallet itself. */
type Due = 'COINS' | 'TOKEN' | 'TO_PAYER'

/** What the payer does about what the wallet did. */
type Next = 'WAIT' | 'BACK' | 'AGAIN' | 'CONNECT_AGAIN' | 'OTHER_WALLET'

export interface WalletRow {
  readonly does: string
  readonly wallet?: Partial<BrowserWallet>
  readonly due?: Due
  /** How far the payer comes: opening the wallet, choosing a way, or paying. */
  readonly at: 'CONNECT' | 'WAYS' | 'PAY'
  /** What the page says then. */
  readonly says: RegExp
  /** Whether the page waits for it: the payer lets so much time go by. */
  readonly waits?: 'SILENT' | 'LOST'
  /** Whether the payment has left the wallet, or its person has let it go. */
  readonly sends?: true
  /** What it holds fails when its person confirms it: a page that has been reloaded learns nothing, and asks again. */
  readonly failsHeld?: true
  readonly next: Next
}

/** Begins every text of a wallet that is not to be read without words of the page before it. */
export const WALLET_SAYS = 'zq:'

const throws = (code: number, message = `${WALLET_SAYS} ${code}`): Act => ({ throws: { code, message } })

const connecting = (act: Act): Partial<BrowserWallet> => ({ acts: { eth_requestAccounts: [act] } })
const opening: readonly WalletRow[] = [
  ...[4001, 5000].map(
    (code): WalletRow => ({
      does: `refuses to connect (${code})`,
      wallet: connecting(throws(code)),
      at: 'CONNECT',
      says: /Connection declined/,
      next: 'CONNECT_AGAIN',
    }),
  ),
  {
    does: 'opens no account',
    wallet: connecting({ answers: [] }),
    at: 'CONNECT',
    says: /Connection declined/,
    next: 'OTHER_WALLET',
  },
  {
    does: 'shows another question when it is to connect',
    wallet: connecting(throws(-32002)),
    at: 'CONNECT',
    says: /already shows a request/,
    next: 'CONNECT_AGAIN',
  },
  {
    does: 'is locked and says nothing',
    wallet: connecting('IS_SILENT'),
    at: 'CONNECT',
    waits: 'SILENT',
    says: /has not answered yet/,
    next: 'OTHER_WALLET',
  },
  ...[throws(4100), throws(4900), throws(-32603, 'Internal JSON-RPC error.'), { throws: null }, { answers: null }].map(
    (act): WalletRow => ({
      does: `does not connect: ${JSON.stringify(act)}`,
      wallet: connecting(act),
      at: 'CONNECT',
      says: /did not connect/,
      next: 'OTHER_WALLET',
    }),
  ),
]

const lacking: readonly WalletRow[] = (
  [
    { does: 'has no coins for gas', wallet: { account: 'noGas' }, due: 'TOKEN' },
    { does: 'is empty', wallet: { account: 'empty' } },
    { does: 'is the payee', due: 'TO_PAYER' },
  ] as const
).map((row) => ({ ...row, at: 'WAYS', says: /This wallet cannot pay/, next: 'OTHER_WALLET' }))

const NOT_PAID = /Your wallet could not pay/
const sending = (...acts: Act[]): Partial<BrowserWallet> => ({ acts: { eth_sendTransaction: acts } })
const failing = (does: string, act: Act, says: RegExp, next: Next): WalletRow => ({
  does,
  wallet: sending(act),
  at: 'PAY',
  says,
  next,
})
const silent = { waits: 'SILENT' } as const
const sent = { sends: true } as const
const UNKNOWN = /Check your wallet/
const PAID = /not final yet|Payment complete/
const WRONG_HASH = `0x${'ab'.repeat(32)}`

const paying: readonly WalletRow[] = [
  { does: 'pays', at: 'PAY', says: PAID, ...sent, next: 'WAIT' },
  failing('refuses', throws(4001), /Payment declined/, 'BACK'),
  failing('refuses over WalletConnect', throws(5002), /Payment declined/, 'BACK'),
  failing('refuses in words', throws(-32603, 'MetaMask Tx Signature: User denied.'), /Payment declined/, 'BACK'),
  ...[4100, 4200, 4900, 4901, 5740, -32601, -32602].map((code) =>
    failing(`fails with ${code}`, throws(code), NOT_PAID, 'BACK'),
  ),
  failing('is too poor', throws(-32000, `${WALLET_SAYS} insufficient funds for gas * price`), NOT_PAID, 'BACK'),
  failing('shows another question', throws(-32002), /already shows a request/, 'BACK'),
  failing('fails and does not say how', throws(-32603, 'Internal JSON-RPC error.'), UNKNOWN, 'AGAIN'),
  failing('throws nothing', { throws: null }, UNKNOWN, 'AGAIN'),
  failing('answers no hash', { answers: null }, UNKNOWN, 'AGAIN'),
  failing('mines a transaction that fails', 'SENDS_TOO_LITTLE_GAS', /Transaction failed/, 'BACK'),
  failing('cancels what it sent', 'CANCELS', /Transaction replaced/, 'AGAIN'),
  { ...failing('does not answer', 'IS_SILENT', UNKNOWN, 'AGAIN'), ...silent },
  { ...failing('tells a hash and sends nothing', { answers: WRONG_HASH }, UNKNOWN, 'AGAIN'), waits: 'LOST' },
  { ...failing('speeds up what it sent', 'SPEEDS_UP', /replaced|not final yet/, 'WAIT'), ...sent },
  { ...failing('sends and fails', { doesAndThrows: { code: -32603 } }, UNKNOWN, 'WAIT'), ...sent },
  { ...failing('sends and does not answer', 'DOES_AND_IS_SILENT', PAID, 'WAIT'), ...sent },
  { ...failing('sends and tells a wrong hash', { doesAndAnswers: WRONG_HASH }, PAID, 'WAIT'), ...sent },
]

const CHAIN = { chainId: '0x1' }
const switching: readonly WalletRow[] = [
  [throws(4001), /Payment declined/],
  [throws(4902), /did not switch networks/],
  [throws(-32603), /did not switch networks/],
  [{ answers: null } as const, /did not switch networks/],
  ['IS_SILENT' as const, /did not answer/],
].map(([act, says]) => ({
  does: `does not go to the chain: ${JSON.stringify(act)}`,
  wallet: { ...CHAIN, acts: { wallet_switchEthereumChain: [act as Act] } },
  at: 'PAY',
  says: says as RegExp,
  ...(act === 'IS_SILENT' && silent),
  next: 'BACK',
}))

const changing: readonly WalletRow[] = [
  {
    does: 'has another account when it is to pay',
    wallet: { acts: { eth_accounts: [{ changesAccount: 'direct' }] } },
    at: 'PAY',
    says: /uses another account/,
    next: 'OTHER_WALLET',
  },
  {
    does: 'has closed itself to the page when it is to pay',
    wallet: { acts: { eth_accounts: [{ answers: [] }] } },
    at: 'PAY',
    says: /uses another account/,
    next: 'BACK',
  },
]

const direct = { account: 'direct' }
const inTwoSteps: readonly WalletRow[] = [
  { does: 'approves and pays', wallet: direct, at: 'PAY', says: PAID, ...sent, next: 'WAIT' },
  ...(
    [
      ['refuses the approval', throws(4001), /Payment declined/],
      ['fails at the approval', throws(-32603), NOT_PAID],
      ['tells no hash of the approval', { answers: null }, NOT_PAID],
      ['mines an approval that fails', 'SENDS_TOO_LITTLE_GAS', /Transaction failed/],
    ] as const
  ).map(
    ([does, act, says]): WalletRow => ({
      does,
      wallet: { ...direct, ...sending(act) },
      at: 'PAY',
      says,
      next: 'BACK',
    }),
  ),
  {
    does: 'does not answer at the approval',
    wallet: { ...direct, ...sending('IS_SILENT') },
    at: 'PAY',
    ...silent,
    says: /Your wallet did not answer/,
    next: 'BACK',
  },
].map((row) => ({ ...row, due: 'TOKEN' }) as WalletRow)

/** Its account is a plain one, so its nonce tells that nothing was sent. */
const plainBatching = (act: Act): Partial<BrowserWallet> => ({
  ...direct,
  acts: {
    wallet_getCapabilities: { answers: { '0x0': { atomic: { status: 'supported' } } } },
    wallet_sendCalls: [act],
  },
})
const batching = (acts: Readonly<Record<string, Act | readonly Act[]>>) => ({ account: 'batching', acts })
const inOneBatch: readonly WalletRow[] = [
  { does: 'pays by a batch', wallet: batching({}), says: PAID, ...sent, next: 'WAIT' },
  {
    does: 'refuses a batch',
    wallet: batching({ wallet_sendCalls: [throws(4001)] }),
    says: /Payment declined/,
    next: 'BACK',
  },
  ...[5750, 5760, 4200].map((code) => ({
    does: `makes no batch (${code})`,
    wallet: batching({ wallet_sendCalls: [throws(code)] }),
    says: PAID,
    ...sent,
    next: 'WAIT',
  })),
  {
    does: 'fails at a batch without a word, and sends nothing',
    wallet: plainBatching(throws(-32603)),
    says: PAID,
    ...sent,
    failsHeld: true,
    next: 'WAIT',
  },
  {
    does: 'fails at a batch as if it were unknown (5730)',
    wallet: batching({ wallet_sendCalls: [throws(5730)] }),
    says: UNKNOWN,
    next: 'AGAIN',
  },
  {
    does: 'sends a batch and fails',
    wallet: batching({ wallet_sendCalls: [{ doesAndThrows: { code: -32603 } }] }),
    says: UNKNOWN,
    ...sent,
    next: 'WAIT',
  },
  {
    does: 'sends a batch and no longer knows it',
    wallet: batching({ wallet_getCallsStatus: throws(5730) }),
    says: PAID,
    ...sent,
    next: 'WAIT',
  },
  {
    does: 'takes a batch, sends nothing and no longer knows it',
    wallet: batching({ wallet_sendCalls: [{ answers: { id: 'lost' } }] }),
    says: UNKNOWN,
    waits: 'LOST',
    next: 'AGAIN',
  },
].map((row) => ({ ...row, at: 'PAY', due: 'TOKEN' }) as WalletRow)

const WALLETS: readonly WalletRow[] = [
  ...opening,
  ...lacking,
  ...paying,
  ...switching,
  ...changing,
  ...inTwoSteps,
  ...inOneBatch,
]

/** How far the request is paid when the payer opens the page. */
const STATES = ['OPEN', 'PARTIALLY_PAID'] as const
type State = (typeof STATES)[number]

/** What happens while the wallet's question is open; `LATER` is a reload when the page has said how it ended. */
const EVENTS = [
  'NOTHING',
  'RELOAD_LATER',
  'RELOAD',
  'OTHER_ACCOUNT',
  'SERVICE_AWAY',
  'NODE_AWAY',
  'PAID_ELSEWHERE',
  'CANCELLED',
  'EXPIRED',
] as const
type Event = (typeof EVENTS)[number]

/** After these nothing is to be paid any more, and the page says so while the wallet still asks. */
export const CLOSING: Partial<Record<Event, RegExp>> = {
  PAID_ELSEWHERE: PAID,
  CANCELLED: /The shop has cancelled this request/,
  EXPIRED: /This request has expired/,
}

const METHODS = ['wallet_sendCalls', 'eth_sendTransaction']

/** The method of the wallet's question for money. */
const moneyOf = (row: WalletRow) => METHODS[inOneBatch.includes(row) ? 0 : 1] as string

/** Whether the wallet comes to a question that something may happen beside. */
export function isAsked(row: WalletRow): boolean {
  return row.at === 'PAY' && !changing.includes(row) && !switching.includes(row)
}

/** Whether the payment leaves the wallet, of whatever happens meanwhile. */
export const isSent = (row: WalletRow, event: Event): boolean =>
  row.sends === true && !(event === 'RELOAD' && row.failsHeld === true)

/** What the page says after a reload while the wallet's question is open. An approval moves no money: nothing is remembered of it. */
export function saysAfterReload(row: WalletRow): string {
  return inTwoSteps.includes(row) ? 'Choose a wallet' : 'Your wallet was already asked to pay'
}

/** What a wallet does while something happens: it holds its question, or its node is away. */
export function actsDuring(row: WalletRow, event: Event): BrowserWallet['acts'] {
  const acts = row.wallet?.acts ?? {}
  if (!isAsked(row) || event === 'NOTHING' || event === 'RELOAD_LATER') return acts
  if (event === 'NODE_AWAY') {
    const away = [1, 2, 3].map(() => throws(-32603))
    return { eth_getTransactionReceipt: away, eth_getTransactionByHash: away, wallet_getCallsStatus: away, ...acts }
  }
  const method = moneyOf(row)
  const own = acts[method] ?? []
  return { ...acts, [method]: ['HOLDS', ...(Array.isArray(own) ? own : [own])] }
}

/** What an expectation is about: one wallet, one request, one event. */
export interface Combination {
  readonly row: WalletRow
  readonly state: State
  readonly event: Event
}

const combine = (row: WalletRow, event: Event, place: number): Combination => ({
  row,
  event,
  state: STATES[place % STATES.length] as State,
})

/** Events that can happen beside what the wallet does. */
const eventsOf = (row: WalletRow): readonly Event[] =>
  EVENTS.filter((event) => {
    if (event === 'NOTHING') return true
    if (event === 'RELOAD_LATER') return row.at === 'PAY'
    // A wallet that has left the account between two steps cannot make the second.
    return isAsked(row) && !(event === 'OTHER_ACCOUNT' && row.due === 'TOKEN')
  })

/** Every wallet with every event, with the states alternating. */
export function everyCombination(): readonly Combination[] {
  return WALLETS.flatMap((row, at) => eventsOf(row).map((event, place) => combine(row, event, at + place)))
}

/** From which of its events on, by state: 5 apart, so that of two, eight or nine events the second is another. */
const FIRST_EVENTS = [0, 5]

/**
 * Each wallet with each state, and with each of them one of its events. The next wallet has the next one, so that each event meets a ninth of the
 * wallets in each state.
 */
export function someCombinations(): readonly Combination[] {
  return WALLETS.flatMap((row, at) => {
    const events = eventsOf(row)
    return FIRST_EVENTS.map((first, state) => combine(row, events[(at + first) % events.length] as Event, state))
  })
}
