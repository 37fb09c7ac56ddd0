/** What talks to wallets, and no more: a page may load it once a wallet is wanted. */

export { type ConnectOutcome, connectWallet } from './wallet/connect.ts'
export type { AskedBefore, PayOutcome, PayProgress } from './wallet/outcome.ts'
export { type PayOptions, pay, resumePay } from './wallet/pay.ts'
export type { Eip1193Provider, SendingProvider, WalletProvider } from './wallet/provider.ts'
