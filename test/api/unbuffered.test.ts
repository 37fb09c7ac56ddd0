import type { DescMethod } from '@bufbuild/protobuf'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Health } from '../../gen/grpc/health/v1/health_pb.js'
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { freshAddress } from '../support/routing.ts'
import { startTestService, type TestService } from '../support/service.ts'

// Every stream tells proxies not to hold its messages back.

let running: TestService
let paymentReference: string

beforeAll(async () => {
  running = await startTestService()
  const terms = {
    payee: freshAddress('payee'),
    amount: '5',
    invoiceCurrency: 'USDC-ETHEREUM',
    paymentCurrency: 'USDC-ETHEREUM',
  }
  const headers = { 'x-api-key': running.keys.shop, 'content-type': 'application/json' }
  const created = await fetch(`${running.url}/v1/request`, { method: 'POST', headers, body: JSON.stringify(terms) })
  paymentReference = ((await created.json()) as { paymentReference: string }).paymentReference
})

afterAll(() => running?.stop())

const services = [PaymentSearchService, RequestsService, RoutesService, Health, ServerReflection]
const streams = services.flatMap(({ methods }) => methods).filter((method) => /streaming/.test(method.methodKind))

const requestOf = ({ input }: DescMethod): object => {
  if (input.fields.some(({ name }) => name === 'list_services'))
    return { messageRequest: { case: 'listServices', value: '' } }
  const has = (name: string) => input.fields.some((field) => field.name === name)
  return {
    ...(has('payment_reference') && !has('status') && { paymentReference }),
    ...(has('wallet') && { wallet: freshAddress('payer') }),
  }
}

describe.each(['Connect', 'gRPC-Web', 'gRPC'] as const)('%s', (protocol) => {
  it.each(streams.map((method) => [`${method.parent.typeName}.${method.name}`, method] as const))(
    '%s',
    async (_name, method) => {
      const options = { baseUrl: running.url, httpVersion: '2' } as const
      const transport =
        protocol === 'Connect'
          ? createConnectTransport(options)
          : protocol === 'gRPC'
            ? createGrpcTransport(options)
            : createGrpcWebTransport(options)
      const left = new AbortController()
      const send = async function* () {
        yield requestOf(method)
      }
      const headers = { 'x-api-key': running.keys.shop }
      const answer = await transport.stream(method as never, left.signal, undefined, headers, send() as never)
      expect(answer.header.get('x-accel-buffering')).toBe('no')
      left.abort()
    },
  )
})

it.each(['application/x-ndjson', 'text/event-stream', 'text/csv'])('plain HTTP, %s', async (accept) => {
  const left = new AbortController()
  const path = accept === 'text/csv' ? '/v1/payments:export' : '/v1/payments:watch'
  const headers = { 'x-api-key': running.keys.shop, accept }
  const answer = await fetch(running.url + path, { headers, signal: left.signal })
  expect(answer.headers.get('x-accel-buffering')).toBe('no')
  left.abort()
})
