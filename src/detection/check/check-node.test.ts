import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { DeclaredLimits } from '../../nodes/node-limits.ts'
import { createNodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { checkRate } from './check-node.ts'

/** Calls that the node has answered in each second of the clock, and how many it answers. */
let answered = new Map<number, number>()
let allowed = Number.POSITIVE_INFINITY
let nowMs = 0
let server: Server
let url: string

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id } = (await json(request)) as { id: number }
  const second = Math.floor(nowMs / 1_000)
  const count = (answered.get(second) ?? 0) + 1
  if (count > allowed) {
    response.writeHead(429).end()
    return
  }
  answered.set(second, count)
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: '0x1' }))
}
beforeEach(() => {
  answered = new Map()
  nowMs = 0
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** A node whose time passes only while somebody waits. */
function openNode(declared: DeclaredLimits = {}) {
  const limits = createNodeLimits([{ name: 'BASE', rpcUrls: [url], ...declared }], {
    clock: () => nowMs,
    async sleep(ms) {
      nowMs += ms
    },
  })
  const client = createRpcClient({ urls: [url], chainId: 1, clock: () => new Date(nowMs), limits })
  return { client, exchanges: () => 0 }
}

it.each<[string, number, DeclaredLimits, verdict: string, perSecond: number | undefined, RegExp]>([
  ['allows anything', 1_000, {}, 'ok', undefined, /^20 calls in a row were not refused$/],
  ['allows seven a second', 7, {}, 'note', 7, /^it refused more than about 7 requests a second: set requestsPerSecond/],
  ['allows one a second', 1, {}, 'note', 1, /^it refused more than about 1 requests a second/],
  ['has a declared rate', 1_000, { requestsPerSecond: 3 }, 'ok', 3, /^3 requests a second, as the chains file says$/],
])('the rate of a node that %s', async (_, most, declared, verdict, perSecond, detail) => {
  allowed = most
  const rate = await checkRate(openNode(declared))
  expect(rate).toMatchObject({ perSecond, fact: { check: 'rate', verdict, detail: expect.stringMatching(detail) } })
  const made = [...answered.values()].reduce((sum, count) => sum + count, 0)
  expect(made).toBeLessThanOrEqual(21)
})
