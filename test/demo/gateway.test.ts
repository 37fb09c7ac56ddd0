import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Anvil, startAnvil } from '../../demo/network/anvil.ts'
import type { LocalServer } from '../../demo/network/local-server.ts'
import { pickHiddenHost, startNodeGateway } from '../../demo/network/network.ts'
import { createRpc } from '../../demo/network/rpc.ts'
import { sendRequest } from '../support/clients/raw-http.ts'

let anvil: Anvil
let gateway: LocalServer
let port: number

beforeAll(async () => {
  anvil = await startAnvil({
    chainId: 31_599,
    mnemonic: 'test test test test test test test test test test test junk',
    accounts: 10,
    automine: false,
    host: pickHiddenHost(),
  })
  gateway = await startNodeGateway(anvil.rpcUrl)
  port = Number(new URL(gateway.url).port)
})
afterAll(async () => {
  await gateway?.stop()
  await anvil?.stop()
})

const asking = (method: string, params: readonly unknown[] = []) => ({ jsonrpc: '2.0', id: 1, method, params })
const post = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  sendRequest(port, {
    method: 'POST',
    target: '/',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

it('passes on single calls, batches in their order, and answers of megabytes', async () => {
  expect(await createRpc(gateway.url).call('eth_chainId')).toBe(await anvil.rpc.call('eth_chainId'))
  const calls = Array.from({ length: 3_000 }, (_, id) => ({ ...asking('eth_getBlockByNumber', ['latest', true]), id }))
  const response = await fetch(gateway.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(calls),
  })
  const text = await response.text()
  const answers = JSON.parse(text) as { id: number; result: { number: string } }[]
  expect([response.status, text.length > 2_000_000]).toEqual([200, true])
  expect(answers.map(({ id }) => id)).toEqual(calls.map(({ id }) => id))
  expect(new Set(answers.map(({ result }) => result.number))).toEqual(new Set(['0x0']))
})

it.each<[string, Readonly<Record<string, string>>, number]>([
  ['with another host', { host: 'evil.example' }, 403],
  ['with another host and the port', { host: 'evil.example:8545' }, 403],
  ['by a web page', { origin: 'https://evil.example' }, 403],
  ['by a web page on this machine', { origin: 'http://localhost:3000' }, 403],
  ['by a sandboxed page', { origin: 'null' }, 403],
  ['with a content type that a form can send', { 'content-type': 'text/plain' }, 415],
  ['with another content type of forms', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ['as localhost', { host: 'localhost' }, 200],
  ['by a browser wallet', { origin: 'chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn' }, 200],
])('called %s: %j is answered with %i and no CORS header', async (_, fields, status) => {
  const before = await anvil.rpc.call('eth_blockNumber')
  const { status: answered, headers, body } = await post(asking('evm_mine'), fields)
  expect([answered, Object.keys(headers).filter((name) => name.startsWith('access-control'))]).toEqual([status, []])
  expect(JSON.parse(body)).toMatchObject(status === 200 ? { id: 1, result: expect.anything() } : { error: {} })
  expect((await anvil.rpc.call('eth_blockNumber')) === before).toBe(status !== 200)
})

it('takes the port that it is given while that is free, and else another', async () => {
  const other = await startNodeGateway(anvil.rpcUrl, port)
  const { url } = other
  await other.stop()
  const third = await startNodeGateway(anvil.rpcUrl, Number(new URL(url).port))
  try {
    expect([url === gateway.url, third.url]).toEqual([false, url])
    expect(await createRpc(third.url).call('eth_chainId')).toBe(await anvil.rpc.call('eth_chainId'))
  } finally {
    await third.stop()
  }
})

it('answers no preflight and no GET', async () => {
  const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
  const refused = await sendRequest(port, { method: 'OPTIONS', target: '/', headers: preflight })
  expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([403, undefined])
  expect((await sendRequest(port, { target: '/' })).status).toBe(405)
})

it('is the only way for a page: the node does not listen on 127.0.0.1', async () => {
  const { hostname, port: ofNode } = new URL(anvil.rpcUrl)
  expect(hostname).toMatch(/^127\./)
  expect(hostname).not.toBe('127.0.0.1')
  const socket = connect({ port: Number(ofNode), host: '127.0.0.1' })
  await expect(once(socket, 'connect')).rejects.toThrow('ECONNREFUSED')
  expect((await fetch(anvil.rpcUrl, { method: 'OPTIONS' })).headers.get('access-control-allow-origin')).toBeNull()
})

it('answers 502 when the node is gone', async () => {
  await anvil.stop()
  const { status, body } = await post(asking('eth_chainId'))
  expect([status, body]).toEqual([502, expect.stringContaining('did not answer')])
})
