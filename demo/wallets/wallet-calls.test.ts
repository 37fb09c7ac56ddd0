import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import type { DemoChain } from '../network/network.ts'
import { createRpc } from '../network/rpc.ts'
import { createWalletCalls } from './wallet-calls.ts'

const OWN = `0x${'1'.repeat(40)}`
const TO = `0x${'2'.repeat(40)}`
const CHAIN = '0x1de2a29'

/** A chain whose node answers everything, so that only the wallet refuses. */
const chain = {
  spec: { chainId: Number(CHAIN) },
  client: { rpc: { url: 'http://127.9.9.9:1', call: async (method: string) => `${method} was asked` } },
  people: { wallets: [{ name: 'batching', address: OWN, says: '', batches: true }] },
} as unknown as DemoChain

const ask = (method: unknown, ...params: unknown[]) =>
  createWalletCalls([chain]).answer({ rawPath: '/demo/wallets/batching', body: { method, params, chainId: CHAIN } })

const send = (fields: object) => ask('eth_sendTransaction', { from: OWN, to: TO, data: '0x', ...fields })
const batch = (...calls: unknown[]) => ask('wallet_sendCalls', { version: '2.0.0', from: OWN, chainId: CHAIN, calls })

it.each(['constructor', 'valueOf', 'toString', '__proto__', '__defineGetter__', 'hasOwnProperty'])(
  'has no method %s, which every object has',
  async (method) => {
    expect(await ask(method)).toEqual({ error: { code: 4200, message: `this wallet has no method ${method}` } })
  },
)

const GAS_FAULT = 'params[0].gas is not a number in hex of at most 0x989680'
const FAULT =
  'params[0] is not {from, to, data, value?, gas?, chainId?} in hex; gas: a number in hex of at most 0x989680'

it.each([
  ['no address to send to', () => send({ to: '0x' }), FAULT],
  ['a creation of a contract', () => send({ to: undefined }), FAULT],
  ['half a byte', () => send({ data: '0x1' }), FAULT],
  ['a value without digits', () => send({ value: '0x' }), FAULT],
  ['a value above 256 bits', () => send({ value: `0x${'f'.repeat(65)}` }), FAULT],
  ['gas without end', () => send({ gas: '0x989681' }), FAULT],
  ['a read with gas without end', () => ask('eth_call', { to: TO, gas: `0x7${'f'.repeat(15)}` }), GAS_FAULT],
  ['an estimate with gas without end', () => ask('eth_estimateGas', { to: TO, gas: '0x989681' }, 'latest'), GAS_FAULT],
  ['gas that is no number', () => ask('eth_call', { to: TO, gas: 1e15 }), GAS_FAULT],
  ['a read of nothing', () => ask('eth_call'), 'params[0] is not a transaction'],
  ['a read of a list', () => ask('eth_call', [{ to: TO }]), 'params[0] is not a transaction'],
  [
    'contracts of its own in place of those of the chain',
    () => ask('eth_call', { to: TO }, 'latest', { [TO]: { code: '0x5b600056' } }),
    'eth_call takes a transaction and a block here',
  ],
  ['a chain without digits', () => send({ chainId: '0x' }), FAULT],
  ['another chain', () => send({ chainId: '0x1' }), `the wallet is on chain ${CHAIN}, not on 0x1`],
  ['a name that every object has', () => send({ constructor: '0x' }), FAULT],
  ['an empty batch', () => batch(), 'params[0].calls is not a list of 1 to 10 calls'],
  [
    'too many calls',
    () => batch(...Array.from({ length: 11 }, () => ({ to: TO }))),
    'params[0].calls is not a list of 1 to 10 calls',
  ],
  ['a call that is nothing', () => batch(null), 'params[0].calls[0] is not {to, value?, data?} in hex'],
  [
    'a call with a value above 256 bits',
    () => batch({ to: TO }, { to: TO, value: `0x${'f'.repeat(65)}` }),
    'params[0].calls[1] is not {to, value?, data?} in hex',
  ],
  [
    'a call with half a byte',
    () => batch({ to: TO, data: '0x1' }),
    'params[0].calls[0] is not {to, value?, data?} in hex',
  ],
])('refuses %s', async (_, asked, message) => {
  expect(await asked()).toEqual({ error: { code: -32_602, message } })
})

it('asks the node for what is well formed', async () => {
  const sent = 'eth_sendTransaction was asked'
  expect(await send({ value: '0x1', chainId: CHAIN })).toEqual({ result: sent })
  expect(await batch({ to: TO, value: '0x1', data: '0x00' })).toEqual({ result: { id: `${CHAIN}:${sent}` } })
})

it.each([
  ['nothing', undefined],
  ['a number', 1],
  ['no hash', CHAIN],
  ['half a hash', `${CHAIN}:0x12`],
  ['no chain', `:0x${'1'.repeat(64)}`],
  ['an unknown chain', `0x1:0x${'1'.repeat(64)}`],
  ['more than an id', `${CHAIN}:0x${'1'.repeat(64)}:`],
])('knows no batch of %s', async (_, id) => {
  expect(await ask('wallet_getCallsStatus', id)).toEqual({ error: { code: 5730, message: 'there is no such batch' } })
})

it('ends calls to a node that hangs, and takes only so many at once', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const rpc = createRpc(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const wallets = ['one', 'two', 'three'].map((name) => ({ name, address: OWN, says: '' }))
  const hanging = { ...chain, client: { rpc }, people: { wallets } } as unknown as DemoChain
  const calls = createWalletCalls([hanging], { timeoutMs: 300, atOnce: 3 })
  const call = (name: string, method: string) =>
    calls.answer({ rawPath: `/demo/wallets/${name}`, body: { method, params: [{ from: OWN, to: TO, data: '0x' }] } })
  const says = 'the node of the chain does not answer'
  try {
    const under = [call('one', 'eth_call'), call('one', 'eth_sendTransaction'), call('two', 'eth_call')]
    const refused = { error: { code: -32_005, message: 'too many calls at once: try again' } }
    expect(await Promise.all([call('one', 'eth_accounts'), call('three', 'eth_accounts')])).toEqual([refused, refused])
    expect(await Promise.all(under)).toEqual([
      { error: { code: -32_603, message: says } },
      { error: { code: -32_603, message: `${says}; it may have taken the transaction` } },
      { error: { code: -32_603, message: says } },
    ])
    expect(await call('one', 'eth_accounts')).toEqual({ result: [OWN] })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
