/** What payers read, in English. Each language has all of these. */
const seconds = (count: number) => (count < 90 ? `about ${count} seconds` : `about ${Math.round(count / 60)} minutes`)

export const en = {
  title: (amount: string) => `Pay ${amount}`,
  /** Above the amount. */
  headings: {
    OPEN: 'Pay',
    PARTIALLY_PAID: 'Pay the rest',
    PENDING: 'Payment received',
    PAID: 'Paid',
    REFUNDED: 'Refunded',
    EXPIRED: 'Expired',
    CANCELLED: 'Cancelled',
  },
  to: 'to',
  paidSoFar: (amount: string) => `${amount} paid so far`,
  expires: 'Expires',
  copy: 'Copy',
  copied: 'Copied',
  transaction: 'Transaction',
  waiting: 'Loading the request',
  away: 'The service is not responding. Retrying…',
  busy: 'High demand right now. This page continues within a minute…',
  stale: 'This may be out of date.',
  refuseNow: 'If your wallet still asks you to confirm, decline.',
  sentFrom: (wallet: string) =>
    `A payment from ${wallet} was sent in this browser. Do not pay again. Connect that wallet to follow it.`,
  openTransaction: 'Show on the explorer',
  retry: 'Try again',
  back: (shop: string | undefined) => (shop === undefined ? 'Back to the shop' : `Back to ${shop}`),
  problems: {
    NO_KEY: { title: 'This link is incomplete', says: 'The shop’s key is missing. Ask the shop for a new link.' },
    SECRET_KEY: {
      title: 'Do not use this link',
      says: 'It contains the shop’s secret key. Tell the shop to revoke it.',
    },
    BAD_REFERENCE: {
      title: 'This link is incomplete',
      says: 'It has no payment reference. Ask the shop for a new link.',
    },
    REQUEST_NOT_FOUND: { title: 'Request not found', says: 'Ask the shop for a new link.' },
    INVALID_API_KEY: {
      title: 'This link is no longer valid',
      says: 'The shop has revoked its key. Ask the shop for a new link.',
    },
    ORIGIN_NOT_ALLOWED: {
      title: 'This link does not work on this site',
      says: 'Its key belongs to another site. Ask the shop for a new link.',
    },
    OTHER: { title: 'The request cannot be shown', says: 'Try again in a moment, or ask the shop.' },
  },
  overpaid: 'The payment is final. Ask the shop to refund the overpayment:',
  states: {
    OPEN: { title: 'To pay', says: '' },
    PARTIALLY_PAID: { title: 'Partially paid', says: 'Pay the rest.' },
    PENDING: {
      title: 'Payment received, not final yet',
      says: 'Your payment is confirming. Do not pay again. You can close this page.',
    },
    PAID: { title: 'Payment complete', says: 'The payment is final. You are done.' },
    REFUNDED: {
      title: 'The payment was returned',
      says: 'Do not pay this request again; ask the shop for a new one.',
    },
    EXPIRED: {
      title: 'This request has expired',
      says: 'It can no longer be paid. Do not send anything; ask the shop for a new one.',
    },
    CANCELLED: {
      title: 'The shop has cancelled this request',
      says: 'It can no longer be paid. Do not send anything; ask the shop for a new one.',
    },
  },
  receipt: {
    title: 'Receipt',
    amount: 'Paid',
    from: 'From',
    to: 'To',
    time: 'Sent',
    reference: 'Payment reference',
    print: 'Print',
  },
  wallets: {
    title: 'Choose a wallet',
    demo: 'Demo wallets with worthless tokens',
    none: 'No wallet found in this browser.',
    connecting: (name: string) => `Confirm the connection in ${name} …`,
    silent: (name: string) =>
      `${name} has not answered yet. Open it and look for a request from this page, or choose another wallet.`,
    busy: (name: string) =>
      `${name} already shows a request. Open it and answer that one, then choose the wallet again.`,
    refused: 'Connection declined. Choose a wallet to continue.',
    failed: (name: string) => `${name} did not connect:`,
    other: 'Choose another wallet',
    connected: 'Paying with',
    unnamed: 'Browser wallet',
  },
  phone: {
    open: 'Open this page in your wallet',
    openIn: (wallet: string) => `Open in ${wallet}`,
    send: 'Pay with the wallet on this phone',
    scan: 'Pay with your phone',
    scanSays: 'Scan the code with your phone’s camera. This page opens there; then choose your wallet.',
    code: 'QR code of this page’s address',
    copyLink: 'Copy the link to this page',
  },
  options: {
    title: 'Ways to pay',
    says: 'Choose a wallet to see which of these it can use.',
    searching: 'Looking up prices…',
    none: 'There is no way to pay just now.',
  },
  routes: {
    title: 'Choose how to pay',
    searching: 'Checking your wallet on every chain…',
    on: (chain: string) => `on ${chain}`,
    costs: (fees: string, time: number) => `Fees ${fees} · ${seconds(time)}`,
    cheapest: 'Cheapest',
    fastest: 'Fastest',
    confirmations: (count: number) =>
      count === 1 ? 'One confirmation in your wallet' : `${count} confirmations in your wallet`,
    andMore: (fees: string) => `${fees} and others of unknown price`,
    impact: (percent: string) => `The swap costs ${percent} against the market’s price`,
    pay: (amount: string) => `Pay ${amount}`,
    none: 'This wallet cannot pay',
    noneSays: 'How to fix that:',
    others: (count: number) => (count === 1 ? 'One more way' : `${count} more ways`),
    degraded: 'Some chains did not respond; there may be more ways.',
    more: (count: number) =>
      count === 1 ? 'One way that this wallet cannot take' : `${count} ways that this wallet cannot take`,
    all: (count: number) => `Show all ${count}`,
    failed: 'Could not load ways to pay.',
  },
  /** What the service warns of, and what a wallet is missing, by reason. Values are formatted. */
  reasons: {
    INSUFFICIENT_GAS: (missing: string, coin: string, chain: string) =>
      `You need about ${missing} ${coin} more on ${chain} for the network fee.`,
    INSUFFICIENT_BALANCE: (missing: string, token: string, chain: string) =>
      `You need ${missing} ${token} more on ${chain}.`,
    CROSSCHAIN_BALANCE_TOO_LOW: (missing: string, token: string, chain: string) =>
      `You need more than ${missing} ${token} more on ${chain}, for the bridge’s costs as well.`,
    GAS_MAY_BE_SPONSORED: 'Your wallet may pay the network fee for you.',
    GAS_UNPRICED: 'The network fee has no known price in dollars.',
    SWAP_OFF_MARKET: 'The exchange’s price is far from the market’s. You would lose money.',
    PRICE_UNCHECKED: 'The exchange’s price could not be compared with the market.',
    CROSSCHAIN_SURPLUS:
      'The bridge may deliver a little more than is due. The rest goes to your wallet on the other chain.',
    AMOUNT_ABOVE_OUTSTANDING: 'This is more than is left to pay.',
    WALLET_IS_PAYEE: 'This is the shop’s own wallet. Choose another one.',
    PAYER_NOT_ALLOWED: 'This wallet cannot pay this request. Use another one.',
    PAYER_SCREENED: 'This wallet cannot pay this request. Use another one.',
    COIN_NOT_SWAPPABLE: 'This coin cannot be swapped for the payment.',
    CHAIN_UNREACHABLE: 'This chain does not respond just now. Try again in a moment.',
    SCREENING_UNAVAILABLE: 'This chain does not respond just now. Try again in a moment.',
    approval: 'Your wallet first asks you to approve the amount, then to pay.',
    bridge: 'The payment crosses from one chain to another.',
  },
  steps: {
    title: 'Paying',
    quoted: 'Price confirmed',
    chain: 'Switch networks in your wallet',
    asking: (step: number, steps: number, says: string) => `Confirm in your wallet, ${step} of ${steps}: ${says}`,
    /** What the wallet is asked for. */
    kinds: {
      APPROVE_RESET: 'undo the earlier approval.',
      APPROVE: 'approve the amount.',
      SWAP: 'swap the tokens.',
      PAY: 'pay.',
    },
    batch: (steps: number) => `Confirm in your wallet: ${steps} steps at once`,
    fallBack: 'Your wallet confirms the steps one by one',
    sent: (step: number) => `Sent, waiting for the chain (step ${step})`,
    mined: (step: number) => `Step ${step} is on the chain`,
    atMost: (amount: string) => `Price confirmed: you pay at most ${amount}`,
    expired: 'Price expired; getting a new one',
    earlier: 'Waiting for the payment you already sent',
    final: 'On the chain; waiting for it to become final',
    silent: 'Your wallet has not answered yet. Open it and look for a request from this page.',
    check: 'Check again',
    stop: 'Stop waiting',
  },
  asked: {
    title: 'Your wallet was already asked to pay',
    says: (time: string, wallet: string) =>
      `This browser asked the wallet ${wallet} for this payment on ${time}. The wallet has not answered yet.`,
    otherTab: 'Another tab of this browser is paying this request.',
    next: 'Open your wallet. If it still shows the request, confirm or refuse it there: this page shows what happens. If you pay here as well, you may pay twice.',
    again: 'My wallet shows no request: pay here',
  },
  outcomes: {
    MINED: { title: 'Your payment is on the chain', says: 'It is confirming. You can close this page.' },
    SENT: { title: 'Payment sent', says: 'Do not pay again. It appears here once it is on the chain.' },
    UNKNOWN: {
      title: 'Check your wallet',
      says: 'Your wallet may have sent the payment. Do not pay again before you have checked there; a sent payment appears here.',
      again: 'No payment was sent: choose again',
    },
    REPLACED: {
      title: 'Transaction replaced',
      says: 'It was cancelled or sped up in your wallet. Do not pay again until this page shows which one counts.',
    },
    REFUSED: { title: 'Payment declined in your wallet', says: 'Nothing was paid. You can choose again.' },
    REVERTED: {
      title: 'Transaction failed',
      says: 'Nothing was paid but the network fee. Try again or choose another way.',
    },
    EXPIRED: { title: 'The price expired', says: 'Nothing was paid. Try again.' },
    QUOTE_CHANGED: {
      title: 'The price has changed',
      says: (amount: string | undefined) =>
        amount === undefined
          ? 'Nothing was paid. Choose again.'
          : `Nothing was paid. It now takes ${amount}. Do you want to pay that?`,
    },
    WALLET_ERROR: { title: 'Your wallet could not pay', says: 'Nothing was paid.' },
    WALLET_BUSY: {
      title: 'Your wallet already shows a request',
      says: 'Nothing was paid. Open your wallet and answer that request, then try again.',
    },
    NO_ANSWER: {
      title: 'Your wallet did not answer',
      says: 'Nothing was paid. If your wallet still shows a request, refuse it. Then try again, or choose another wallet.',
    },
    WRONG_ACCOUNT: {
      title: 'Your wallet now uses another account',
      says: 'Nothing was paid. Choose the account in your wallet again, or choose another wallet.',
    },
    WRONG_CHAIN: {
      title: 'Your wallet did not switch networks',
      says: 'Nothing was paid. Switch networks in your wallet and try again, or choose another way.',
    },
    UNKNOWN_CHAIN: {
      title: 'Your wallet does not have this network',
      says: (chain: string) =>
        `Nothing was paid. Add the network ${chain} in your wallet and try again, or choose another way.`,
    },
    INTERRUPTED: {
      title: 'The payment was not finished',
      says: 'Your tokens were swapped, but the payment was not sent. Choose a way again: your wallet now holds the other token.',
    },
    walletSays: (message: string) => `The wallet says: ${message}`,
    COVERED: {
      title: 'Already paid',
      says: 'Nothing is left to pay. The payment appears here in a moment.',
    },
    NOT_PREPARED: { title: 'Could not prepare the payment', says: 'Nothing was paid. Try again in a moment.' },
    back: 'Back to the ways to pay',
    more: 'Pay the rest',
  },
  dialog: {
    title: 'Demo wallet',
    asks: (wallet: string) => `The wallet “${wallet}” asks: sign this?`,
    to: 'To',
    value: 'Coins',
    data: 'Data',
    confirm: 'Confirm',
    refuse: 'Decline',
  },
}

/** The texts of one language. */
export type PayTexts = typeof en
