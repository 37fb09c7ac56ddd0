import { isIP } from 'node:net'
import { isPublicAddress } from '../../domain/hosts/public-address.ts'
import { waybillError } from '../../errors/waybill-error.ts'

const MAX_LENGTH = 2_048

/** Names that no DNS answers for, or that mean this machine or its network. */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/i

/**
 * Reads the URL of an endpoint. What its name resolves to is checked at each connection.
 *
 * @param allowsPrivate - whether http, any port and addresses of a private network are allowed
 * @returns as it is stored
 * @throws WaybillError INVALID_WEBHOOK_URL
 */
export function requireEndpointUrl(field: string, text: string, allowsPrivate: boolean): string {
  const detail = explainUrl(text, allowsPrivate)
  // The path may hold a secret of the receiver, so the value is not repeated.
  if (detail !== undefined) throw waybillError('INVALID_WEBHOOK_URL', { field, detail })
  return new URL(text).href
}

/** Why a URL is no endpoint's; undefined where it may be one. */
export function explainUrl(text: string, allowsPrivate: boolean): string | undefined {
  const url = URL.parse(text)
  if (url === null || text.length > MAX_LENGTH) return `it is no URL of at most ${MAX_LENGTH} characters`
  if (url.protocol !== 'https:' && !(allowsPrivate && url.protocol === 'http:')) {
    return `it is not ${allowsPrivate ? 'http:// or ' : ''}https://`
  }
  if (url.username !== '' || url.password !== '') return 'it has a user or password'
  if (url.hash !== '') return 'it has a fragment'
  if (allowsPrivate) return undefined
  const port = Number(url.port || 443)
  if (port !== 443 && port < 1_024) return `its port is ${port}: use 443, or one from 1024`
  const host = hostOf(url)
  if (LOCAL_NAME.test(host)) return `${host} is a name of a private network`
  return isIP(host) === 0 || isPublicAddress(host) ? undefined : `${host} is no public address`
}

/** The host of a URL; an address of IPv6 without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
