import { isIP, isIPv4 } from 'node:net'

/** Addresses that begin with the same bits; a single address has all of them. */
export interface IpNetwork {
  readonly address: string
  readonly bits: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Reads an address or a network: `10.0.0.0/8`, `::1`; undefined for what is neither. */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [, address = '', digits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  // A zone is a matter of one machine, not of a network.
  if (isIP(address) === 0 || address.includes('%')) return undefined
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const mostBits = family === 'ipv4' ? 32 : 128
  const bits = digits === undefined ? mostBits : Number(digits)
  return bits <= mostBits ? { address, bits, family } : undefined
}

const LOOPBACK_AUTHORITY = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

/** Whether a host with or without a port, as `Host` and `:authority` have it, is this machine by a name that cannot point elsewhere. */
export function isLoopbackAuthority(authority: string): boolean {
  return LOOPBACK_AUTHORITY.test(authority)
}
