/** The pages of a chain's block explorer, as templates. */
export interface Explorer {
  /** With `{hash}` in the place of the transaction's hash. */
  readonly transaction: string
  /** With `{address}` in the place of the address. */
  readonly address: string
}

/** Finds the explorer of a chain by canonical name; undefined where none is configured. */
export type FindExplorer = (network: string | undefined) => Explorer | undefined

/** For a service whose chains have no explorers. */
export function noExplorer(): undefined {}

/** The page of a transaction. @param hash - in the form of its chain; no link without one */
export function linkTransaction(explorer: Explorer | undefined, hash: string | undefined): string | undefined {
  return hash && explorer?.transaction.replace('{hash}', hash)
}

/** The page of an address. @param address - in the form of its family; no link without one */
export function linkAddress(explorer: Explorer | undefined, address: string | undefined): string | undefined {
  return address && explorer?.address.replace('{address}', address)
}

/**
 * Explains what is wrong with a template, for a fault of the chains file.
 *
 * @returns undefined when nothing is
 */
export function explainTemplate(template: string, placeholder: string): string | undefined {
  if (template.split(placeholder).length !== 2) return `"${template}" does not have ${placeholder} once`
  const url = URL.parse(template.replace(placeholder, '0'))
  const isLocal = url?.hostname === 'localhost' || url?.hostname === '127.0.0.1'
  const isWeb = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLocal)
  if (!isWeb) return `"${template}" is not an https URL; http is for localhost alone`
  return template.indexOf(placeholder) < template.indexOf('/', 'https://'.length)
    ? `"${template}" has ${placeholder} before its path`
    : undefined
}
