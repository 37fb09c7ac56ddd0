import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { parseIpNetwork } from '../../domain/hosts/ip-network.ts'
import { headerOf } from '../calls/call.ts'
import { lastElements } from './media-type.ts'

/**
 * Finds the address that a call comes from.
 *
 * @param peer - the address at the other end of the connection
 * @returns an IPv4 address, or the /64 of an IPv6 address, since a provider gives one customer a /64: `2001:db8:0:1::/64`
 */
export type ReadClientAddress = (peer: string, headers: IncomingHttpHeaders) => string

/** How many hops of a header are read. */
const MAX_HOPS = 20

/**
 * Makes a reader of client addresses. Forwarding headers are believed hop by hop, from the nearest hop on, as long as the hop is a
 * trusted proxy: the first address that is not trusted is the client. Where X-Forwarded-For and Forwarded disagree, the client has set
 * one of them, and neither is believed.
 *
 * @param trustedProxies - addresses and networks, such as `10.0.0.0/8`
 * @throws TypeError for a text that is neither
 */
export function createReadClientAddress(trustedProxies: readonly string[]): ReadClientAddress {
  if (trustedProxies.length === 0) return rememberLast((peer) => networkOf(plainAddress(peer) ?? peer))
  const isTrusted = createIsTrusted(trustedProxies)
  const readPeer = rememberLast(plainAddress)

  /** @param hops - the nearest last; undefined for a hop that hides its address */
  function firstUntrusted(peer: string, hops: readonly (string | undefined)[]): string {
    let client = peer
    for (const hop of hops.toReversed()) {
      if (hop === undefined || !isTrusted(client)) break
      client = hop
    }
    return client
  }

  return (peer, headers) => {
    const near = readPeer(peer)
    if (near === undefined) return peer
    if (!isTrusted(near)) return networkOf(near)
    const claims = [hopsOf(headers, 'x-forwarded-for', readAddress), hopsOf(headers, 'forwarded', readForwarded)]
    const clients = new Set(claims.flatMap((hops) => (hops === undefined ? [] : [firstUntrusted(near, hops)])))
    const [client = near] = clients
    return networkOf(clients.size > 1 ? near : client)
  }
}

/** Most calls come from where the last one came from. */
function rememberLast<T>(read: (text: string) => T): (text: string) => T {
  let last: readonly [text: string, value: T] | undefined
  return (text) => {
    if (last?.[0] !== text) last = [text, read(text)]
    return last[1]
  }
}

/** Makes a test whether a peer is a trusted proxy. Parameters and errors as for {@link createReadClientAddress}. */
export function createIsTrustedProxy(trustedProxies: readonly string[]): (peer: string) => boolean {
  const isTrusted = createIsTrusted(trustedProxies)
  return (peer) => {
    const address = plainAddress(peer)
    return address !== undefined && isTrusted(address)
  }
}

function createIsTrusted(trustedProxies: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList()
  for (const text of trustedProxies) {
    const network = parseIpNetwork(text)
    if (network === undefined) throw new TypeError(`"${text}" is neither an address nor a network`)
    trusted.addSubnet(network.address, network.bits, network.family)
  }
  return (address) => trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

type ReadHop = (text: string) => string | undefined

function hopsOf(headers: IncomingHttpHeaders, name: string, read: ReadHop): (string | undefined)[] | undefined {
  const list = headerOf(headers, name)
  return list === null ? undefined : lastElements(list).slice(-MAX_HOPS).map(read)
}

/** One element of Forwarded (RFC 7239, 4): `for="[2001:db8::1]:4711";proto=https`. */
function readForwarded(element: string): string | undefined {
  const node = /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(element)
  return node === null ? undefined : readAddress(node[1] ?? node[2] ?? '')
}

/** An address with or without brackets and port. */
function readAddress(text: string): string | undefined {
  const bare = text.trim()
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(bare)?.[1]
  if (bracketed !== undefined) return plainAddress(bracketed)
  return plainAddress(bare.replace(/^([\d.]+):\d{1,5}$/, '$1'))
}

/** Drops a zone, and writes an IPv4 address that is mapped into IPv6 as IPv4. Undefined for a text that is no address. */
function plainAddress(text: string): string | undefined {
  const address = text.replace(/%.*$/, '')
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return undefined
  const words = wordsOf(address)
  const isMapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff
  if (!isMapped) return address.toLowerCase()
  const [high = 0, low = 0] = words.slice(6)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const prefix = wordsOf(address).slice(0, 4)
  return `${prefix.map((word) => word.toString(16)).join(':')}::/64`
}

/** The eight words of an IPv6 address. */
function wordsOf(address: string): readonly number[] {
  // URL writes the last two words in hexadecimal, too.
  const [head = '', rest] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const read = (part: string) => (part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16)))
  if (rest === undefined) return read(head)
  const [first, last] = [read(head), read(rest)]
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}
