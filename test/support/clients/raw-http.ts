import { connect } from 'node:net'
import { checkAnswer } from '../described/check-answer.ts'

/** An answer of HTTP/1.1 as it was received. */
export interface RawAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Sends bytes to a port, unchanged, and reads the one answer. */
export async function sendBytes(port: number, bytes: Uint8Array | string): Promise<RawAnswer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // A server that refuses a long body closes the connection before all of it is written. Only its answer counts.
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(bytes)
  await closed
  const answer = Buffer.concat(chunks)
  return parseAnswer(answer.toString('utf8'))
}

/** A request to send byte for byte. */
export interface RawRequest {
  readonly method?: string
  /** As in the request line, one character for each byte. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
}

/** Sends one request over a connection of its own. Checks its answer against the description of the API. */
export async function sendRequest(
  port: number,
  { method = 'GET', target, headers = {}, body }: RawRequest,
): Promise<RawAnswer> {
  const bytes = body === undefined ? undefined : Buffer.from(body)
  const fields = { host: `127.0.0.1:${port}`, connection: 'close', ...headers }
  const length = bytes === undefined ? {} : { 'content-length': String(bytes.length) }
  const lines = Object.entries({ ...fields, ...length }).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  const answer = await sendBytes(port, bytes === undefined ? head : Buffer.concat([head, bytes]))
  const text = answer.headers['transfer-encoding'] === undefined ? answer.body : ''
  if (text !== '')
    checkAnswer(
      { method, target },
      { ...answer, header: (name) => answer.headers[name] ?? null, headerNames: Object.keys(answer.headers), text },
    )
  return answer
}

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) throw new Error(`no answer, but ${JSON.stringify(text.slice(0, 200))}`)
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  return { status: Number(statusLine.split(' ')[1]), headers: Object.fromEntries(headers), body: text.slice(end + 4) }
}
