/** What the page's address says: `/pay/{paymentReference}?key=wbp_…`. */
export interface PageLink {
  readonly paymentReference: string
  readonly apiKey: string
  /** Why the link cannot be used. */
  readonly problem?: 'INCOMPLETE' | 'SECRET_KEY'
}

export function readLink({ pathname, search }: { readonly pathname: string; readonly search: string }): PageLink {
  const paymentReference = /^\/pay\/([^/]+)$/.exec(pathname)?.[1] ?? ''
  const apiKey = new URLSearchParams(search).get('key') ?? ''
  const link = { paymentReference, apiKey }
  // A secret key in a link has been seen by others: it is not sent on.
  if (apiKey.startsWith('wb_')) return { ...link, apiKey: '', problem: 'SECRET_KEY' }
  const isWhole = apiKey.startsWith('wbp_') && /^(?:0x)?[0-9a-f]{16}$/i.test(paymentReference)
  return isWhole ? link : { ...link, problem: 'INCOMPLETE' }
}

/** Wallets with a browser of their own, and the link that opens an address in it. Each is a page of the wallet where the app is not installed. */
const apps: readonly (readonly [wallet: string, link: (address: string) => string])[] = [
  // The address as it is, without its scheme.
  ['MetaMask', (address) => `https://link.metamask.io/dapp/${address.replace(/^https?:\/\//, '')}`],
  ['Trust Wallet', (address) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(address)}`],
  ['Coinbase Wallet', (address) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(address)}`],
]

/** Links that open a page in the browsers of the usual wallets on a phone. */
export function linksIntoApps(address: string): readonly { readonly wallet: string; readonly href: string }[] {
  return apps.map(([wallet, link]) => ({ wallet, href: link(address) }))
}
