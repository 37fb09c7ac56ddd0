import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { DescService, Message } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { type ServedService, serveService } from '../../../src/api/calls/served-method.ts'
import type { Authenticate } from '../../../src/auth/authenticate.ts'
import { waybillError } from '../../../src/errors/waybill-error.ts'
import { compileProtos } from '../compile-protos.ts'

const root = resolve(import.meta.dirname, '../../..')

/** The fields of the request that tests read. */
export interface EchoRequest extends Message {
  readonly name: string
  readonly limit?: number
  readonly colors: number[]
}

export const loadEchoService = () => loadTestService('tests.v1.EchoService')

/** Compiles test/api/protocol-proto against the protos that it imports. */
export function loadTestService(typeName: string): DescService {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-protocol-'))
  try {
    for (const part of ['proto', 'proto_vendor', 'test/api/protocol-proto']) {
      cpSync(join(root, part), folder, { recursive: true })
    }
    const service = compileProtos(folder).getService(typeName)
    if (service === undefined) throw new Error(`${typeName} was not found`)
    return service
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export type EchoHandler = (request: EchoRequest, context: HandlerContext) => unknown

/** Serves a service that was compiled at run time, so its handlers are not typed by generated code. */
export function serveEcho(service: DescService, handlers: Readonly<Record<string, EchoHandler>>): ServedService {
  const access = Object.fromEntries(service.methods.map((method) => [method.localName, 'payments:read']))
  return serveService(service, handlers as never, access as never)
}

/** A logger, and the lines that it was given. */
export function recordingLogger() {
  const lines: { readonly level: string; readonly message: string; readonly fields: Record<string, unknown> }[] = []
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields: { ...fields } })
  }
  return { lines, logger: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } }
}

/** Accepts one key, `good`. */
export const authenticateGood: Authenticate = async ({ apiKey }) => {
  if (apiKey === null) throw waybillError('MISSING_API_KEY', {})
  if (apiKey !== 'good') throw waybillError('INVALID_API_KEY', {})
  return { account: { id: 1, name: 'acme' }, keyId: 'good' }
}
