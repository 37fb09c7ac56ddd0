import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { parseIpNetwork } from './ip-network.ts'

/** Networks of IPv4 that are not on the public internet (IANA's registry of special addresses). */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]

/**
 * Networks within 2000::/3, outside of which no address of IPv6 is public: loopback, unspecified, `::ffff:`, unique local, link-local, multicast.
 * 2001::/23 has Teredo, 2002::/16 is 6to4.
 */
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const special = new BlockList()
const globalIpv6 = new BlockList()
globalIpv6.addSubnet('2000::', 3, 'ipv6')
for (const { address, bits, family } of [...SPECIAL_IPV4, ...SPECIAL_IPV6].flatMap(
  (text) => parseIpNetwork(text) ?? [],
)) {
  special.addSubnet(address, bits, family)
}

/** `64:ff9b::` and an address of IPv4, which NAT64 connects to. */
const nat64 = new BlockList()
nat64.addSubnet('64:ff9b::', 96, 'ipv6')

/** Whether an IP address is one of the public internet. Everything that is no IP address is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  if (nat64.check(address, 'ipv6')) return isPublicAddress(lastIpv4Of(address))
  return globalIpv6.check(address, 'ipv6') && !special.check(address, 'ipv6')
}

/** The last 32 bits of an address of IPv6, as an address of IPv4. */
function lastIpv4Of(address: string): string {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high = '', low = ''] = /(?:([0-9a-f]*):)?([0-9a-f]*)$/.exec(canonical) ?? []
  const bytes = [high, low].flatMap((group) => {
    const value = Number.parseInt(group || '0', 16)
    return [value >> 8, value & 255]
  })
  return bytes.join('.')
}
