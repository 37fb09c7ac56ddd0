import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { protocolOf, readFirstBytes, versionOf } from './accept-connection.ts'

it.each([
  ['a TLS handshake', [22, 3, 1], 'tls'],
  ['a TLS handshake of one byte', [22], 'tls'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0', '2'],
  ['a request of HTTP/1.1', 'GET / HTTP/1.1', '1.1'],
  ['a method that begins as the preface', 'PROPFIND / HTTP/1.1', '1.1'],
  ['bytes that may become the preface', 'PR', undefined],
  ['bytes that are no protocol', [0, 255], '1.1'],
])('%s is recognised by its first bytes', (_name, bytes, protocol) => {
  expect(protocolOf(Buffer.from(bytes as string))).toBe(protocol)
})

it('TLS is not recognised within TLS', () => {
  expect(versionOf(Buffer.from([22]))).toBe('1.1')
})

/** The two ends of a connection. */
async function openConnection(): Promise<{ readonly client: Socket; readonly server: Socket }> {
  const listening = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as { port: number }
  const client = connect(port, '127.0.0.1')
  const [server] = (await once(listening, 'connection')) as [Socket]
  onTestFinished(() => {
    client.destroy()
    server.destroy()
    listening.close()
  })
  return { client, server }
}

describe('the first bytes of a connection', () => {
  /** Resolves with what was decided, or `silent`. */
  const decide = (server: Socket, timeoutMs: number) =>
    new Promise<string>((resolve) => {
      readFirstBytes(server, { timeoutMs, read: protocolOf, onDecided: resolve, onSilent: () => resolve('silent') })
    })

  it('are put back, in pieces or whole', async () => {
    const { client, server } = await openConnection()
    const decided = decide(server, 60_000)
    client.write('P')
    await once(server, 'readable')
    client.end('RI * HTTP/2.0')
    expect(await decided).toBe('2')
    expect(await text(server)).toBe('PRI * HTTP/2.0')
  })

  it('may be missing: the client hangs up', async () => {
    const { client, server } = await openConnection()
    const decided = decide(server, 60_000)
    client.end()
    expect(await decided).toBe('silent')
    expect(server.destroyed).toBe(true)
  })

  it('may be missing: the time is up', async () => {
    const { client, server } = await openConnection()
    const closed = once(client, 'close')
    expect(await decide(server, 10)).toBe('silent')
    await closed
  })
})
