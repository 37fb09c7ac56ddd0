/** What the page's address says: `/pay/{paymentReference}?key=wbp_…`. */
export interface PageLink {
  readonly paymentReference: string
  readonly apiKey: string
  /** Why the link cannot be used. */
  readonly problem?: 'NO_KEY' | 'SECRET_KEY' | 'BAD_REFERENCE'
}

export function readLink({ pathname, search }: { readonly pathname: string; readonly search: string }): PageLink {
  const paymentReference = /^\/pay\/([^/]+)$/.exec(pathname)?.[1] ?? ''
  const apiKey = new URLSearchParams(search).get('key') ?? ''
  const link = { paymentReference, apiKey }
  // A secret key in a link has been seen by others: it is not sent on.
  if (apiKey.startsWith('wb_')) return { ...link, apiKey: '', problem: 'SECRET_KEY' }
  if (!apiKey.startsWith('wbp_')) return { ...link, problem: 'NO_KEY' }
  if (!/^(?:0x)?[0-9a-f]{16}$/i.test(paymentReference)) return { ...link, problem: 'BAD_REFERENCE' }
  return link
}

/** Opens the page in MetaMask's browser on a phone. The link takes the page's address as it is, without its scheme. */
export function linkIntoApp({ host, pathname, search }: Pick<Location, 'host' | 'pathname' | 'search'>): string {
  return `https://link.metamask.io/dapp/${host}${pathname}${search}`
}
