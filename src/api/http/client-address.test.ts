import { describe, expect, it } from 'vitest'
import { createReadClientAddress } from './client-address.ts'

const PROXY = '10.0.0.1'
const read = createReadClientAddress(['10.0.0.0/8', '2001:db8:ffff::/48'])

describe('the client address', () => {
  it.each([
    ['IPv4', '192.0.2.1', '192.0.2.1'],
    ['IPv4 written as IPv6', '::ffff:192.0.2.1', '192.0.2.1'],
    ['the same in hex', '::ffff:c000:201', '192.0.2.1'],
    ['the /64 of IPv6', '2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
    ['another host of that /64', '2001:DB8:0:1::9', '2001:db8:0:1::/64'],
    ['the /64 beside it', '2001:db8:0:2::9', '2001:db8:0:2::/64'],
    ['IPv6 with a zone', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['loopback', '::1', '0:0:0:0::/64'],
    ['a connection that is gone', '', ''],
  ])('is %s', (_, peer, expected) => {
    expect(createReadClientAddress([])(peer, { 'x-forwarded-for': '198.51.100.1' })).toBe(expected)
    expect(read(peer, { forwarded: 'for=198.51.100.1' })).toBe(expected)
  })

  it.each([
    ['no header', {}, PROXY],
    ['one hop', { 'x-forwarded-for': '192.0.2.1' }, '192.0.2.1'],
    ['what the client itself claims, left of it', { 'x-forwarded-for': '203.0.113.9, 192.0.2.1' }, '192.0.2.1'],
    ['a chain of trusted proxies', { 'x-forwarded-for': '192.0.2.1, 10.9.9.9, 2001:db8:ffff::1' }, '192.0.2.1'],
    ['proxies alone', { 'x-forwarded-for': '10.2.2.2, 10.3.3.3' }, '10.2.2.2'],
    ['a port', { 'x-forwarded-for': '192.0.2.1:4711' }, '192.0.2.1'],
    ['IPv6 with a port', { 'x-forwarded-for': '[2001:db8::1]:4711' }, '2001:db8:0:0::/64'],
    ['no address', { 'x-forwarded-for': '192.0.2.1, unknown' }, PROXY],
    ['an address beyond a hop that hides its own', { 'x-forwarded-for': '192.0.2.1, unknown, 10.4.4.4' }, '10.4.4.4'],
    ['an empty header', { 'x-forwarded-for': '' }, PROXY],
    ['Forwarded', { forwarded: 'for=192.0.2.1;proto=https' }, '192.0.2.1'],
    ['Forwarded with more than one hop', { forwarded: 'for=203.0.113.9, proto=http;FOR="192.0.2.1:80"' }, '192.0.2.1'],
    ['Forwarded with IPv6', { forwarded: 'by=10.0.0.1; for="[2001:db8:0:7::1]:4711"' }, '2001:db8:0:7::/64'],
    ['Forwarded that hides', { forwarded: 'for=_hidden' }, PROXY],
    ['both, which agree', { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }, '192.0.2.1'],
    ['both, which do not', { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=203.0.113.9' }, PROXY],
  ])('behind a trusted proxy: %s', (_, headers, expected) => {
    expect(read(PROXY, headers)).toBe(expected)
    expect(read(`::ffff:${PROXY}`, headers)).toBe(expected)
  })

  it('ignores the forwarding headers of other peers', () => {
    expect(read('11.0.0.1', { 'x-forwarded-for': '192.0.2.1' })).toBe('11.0.0.1')
  })

  it('refuses a trusted proxy that is neither an address nor a network', () => {
    expect(() => createReadClientAddress(['proxy.example'])).toThrow('"proxy.example" is neither')
  })
})
