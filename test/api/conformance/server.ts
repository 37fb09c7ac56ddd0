/**
 * The server under test of connectrpc's conformance suite: reads a `ServerCompatRequest` from stdin, serves the conformance service with
 * the listener and the call core of this project, and writes a `ServerCompatResponse` to stdout. Both messages have a prefix of four bytes
 * with their length. Ends when stdin does, or with SIGTERM. The suite starts it once for each configuration; see tools/conformance.ts.
 *
 *   node test/api/conformance/server.ts IMAGE     IMAGE: the suite's protos, as `buf build` writes them
 */
import { readFileSync } from 'node:fs'
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  type Message,
  toBinary,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { ConnectError } from '@connectrpc/connect'
import { serveApi } from '../../../src/api/serve-api.ts'
import { serveConformance } from './service.ts'

const PACKAGE = 'connectrpc.conformance.v1'

interface ServerCompatRequest extends Message {
  readonly useTls: boolean
  readonly serverCreds?: { readonly cert: Uint8Array; readonly key: Uint8Array }
  readonly messageReceiveLimit: number
}

const [image] = process.argv.slice(2)
if (image === undefined) throw new Error('usage: node test/api/conformance/server.ts IMAGE')
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(image)))
const service = registry.getService(`${PACKAGE}.ConformanceService`)
if (service === undefined) throw new Error(`${image} has no ConformanceService`)

const asked = (await readMessage(messageOf(registry, 'ServerCompatRequest'))) as ServerCompatRequest
const { serverCreds: tls, messageReceiveLimit: limit } = asked
const listener = await serveApi({
  host: '127.0.0.1',
  port: 0,
  services: [serveConformance(service)],
  authenticate: async () => ({ account: { id: 1, name: 'conformance' }, keyId: 'conformance' }),
  logger: { debug() {}, info() {}, warn() {}, error: logFault },
  ready: async () => true,
  ...(asked.useTls && tls && { tls: { cert: textOf(tls.cert), key: textOf(tls.key) } }),
  limits: {
    compressMinBytes: 0,
    ...(limit > 0 && { maxBodyBytes: limit, maxStreamMessageBytes: limit }),
  },
})
writeMessage(messageOf(registry, 'ServerCompatResponse'), {
  host: listener.host,
  port: listener.port,
  pemCert: asked.useTls ? tls?.cert : undefined,
})
process.once('SIGTERM', () => void listener.stop({ graceMs: 0 }))

/** Prints unexpected errors, but not the ConnectErrors that the suite asks for. */
function logFault(fields: { readonly err?: unknown }, message: string): void {
  if (!(fields.err instanceof ConnectError)) console.error(message, fields)
}

function messageOf(files: FileRegistry, name: string): DescMessage {
  const desc = files.getMessage(`${PACKAGE}.${name}`)
  if (desc === undefined) throw new Error(`${PACKAGE}.${name} is not in the image`)
  return desc
}

async function readMessage(desc: DescMessage): Promise<Message> {
  let read = Buffer.alloc(0)
  for await (const chunk of process.stdin) {
    read = Buffer.concat([read, chunk as Buffer])
    if (read.length >= 4 && read.length >= 4 + read.readUInt32BE()) break
  }
  return fromBinary(desc, read.subarray(4, 4 + read.readUInt32BE()))
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString()
}

function writeMessage(desc: DescMessage, init: Record<string, unknown>): void {
  const bytes = toBinary(desc, create(desc, init))
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32BE(bytes.length)
  process.stdout.write(Buffer.concat([prefix, bytes]))
}
