import { fromBinary, getOption } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DemoService } from '../../gen/demo/v1/demo_service_pb.js'
import { http } from '../../gen/google/api/annotations_pb.js'
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js'
import { openWays, type Ways } from '../support/clients/clients.ts'
import { startTestService, type TestService } from '../support/service.ts'

// Outside of a demo process nothing of DemoService exists.

let running: TestService
let ways: Ways
beforeAll(async () => {
  running = await startTestService()
  ways = openWays(running.url)
})
afterAll(async () => {
  ways?.close()
  await running?.stop()
})

it.each(DemoService.methods.map((method) => [method.name, method] as const))('has no %s', async (_, method) => {
  for (const apiKey of [running.keys.shop, 'demo']) {
    const asked = { method, request: {}, headers: { 'x-api-key': apiKey } }
    const writing = ways.all.filter(({ readsOnly }) => !readsOnly)
    expect(writing.length).toBeGreaterThan(5)
    for (const way of writing) {
      const { error, httpStatus } = await way.ask(asked)
      const rest = ['unimplemented', 'not_found']
      expect([way.name, rest.includes(error?.code ?? '')]).toEqual([way.name, true])
      if (way.name !== 'REST') expect([way.name, error?.code]).toEqual([way.name, 'unimplemented'])
      else expect(httpStatus).toBe(404)
    }
  }
})

it('describes it nowhere', async () => {
  const read = async (path: string) => (await fetch(running.url + path)).arrayBuffer()
  const description = Buffer.from(await read('/openapi.json')).toString()
  for (const method of DemoService.methods) {
    const { pattern } = getOption(method, http)
    expect(pattern.case).toBe('post')
    expect(description).not.toContain(pattern.value)
  }
  const { file } = fromBinary(FileDescriptorSetSchema, new Uint8Array(await read('/descriptors.binpb')))
  expect(file.map(({ package: name }) => name)).not.toContain('demo.v1')
  const asked = [
    { messageRequest: { case: 'listServices', value: '' } },
    { messageRequest: { case: 'fileContainingSymbol', value: DemoService.typeName } },
    { messageRequest: { case: 'fileByFilename', value: 'demo/v1/demo_service.proto' } },
  ] as const
  async function* ask() {
    yield* asked
  }
  const { serverReflectionInfo } = createClient(ServerReflection, createGrpcTransport({ baseUrl: running.url }))
  const seen: string[] = []
  for await (const { messageResponse } of serverReflectionInfo(ask())) {
    const { case: kind, value } = messageResponse
    seen.push(kind === 'listServicesResponse' ? value.service.map(({ name }) => name).join(' ') : String(kind))
  }
  expect(seen[0]).not.toContain('demo')
  expect(seen.slice(1)).toEqual(['errorResponse', 'errorResponse'])
})
