import { isIP, isIPv4 } from 'node:net'

/** The IP addresses that begin with the same bits. A single address is a network of all its bits. */
interface IpNetwork {
  readonly address: string
  readonly bits: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Reads an address or a network: `10.0.0.0/8`, `::1`; undefined for any other text. */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [, address = '', digits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  // A zone (`fe80::1%eth0`) has a meaning on one machine only.
  if (isIP(address) === 0 || address.includes('%')) return undefined
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const maxBits = family === 'ipv4' ? 32 : 128
  const bits = digits === undefined ? maxBits : Number(digits)
  return bits <= maxBits ? { address, bits, family } : undefined
}

const LOOPBACK_AUTHORITY = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

/** Whether a `Host` or `:authority`, with or without a port, is a name of this machine that no DNS entry can point elsewhere. */
export function isLoopbackAuthority(authority: string): boolean {
  return LOOPBACK_AUTHORITY.test(authority)
}
