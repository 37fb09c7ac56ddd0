import type { DescMessage } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../../gen/payments/v1/routes_service_pb.js'
import { SHOWN_TO_PAGES } from './shown-to-pages.ts'

/** What pages may not see. A field that stands neither here nor in the list of what is shown fails this test: decide about it. */
const HIDDEN: Readonly<Record<string, readonly string[]>> = {
  'payments.v1.PaymentRequest': [
    'requestId',
    'salt',
    'reference',
    'refundAddress',
    'refundReference',
    'metadata',
    'allowedPayers',
  ],
}

const { getPaymentRequest, watchPaymentRequest, getShop } = RequestsService.method
const ofRoutes = RoutesService.methods.filter(({ name }) => name !== 'GetBatchCalldata')
const methods = [getPaymentRequest, watchPaymentRequest, getShop, ...ofRoutes]

function reachable(desc: DescMessage, found = new Map<string, DescMessage>()): Map<string, DescMessage> {
  if (found.has(desc.typeName)) return found
  found.set(desc.typeName, desc)
  for (const { message } of desc.fields) if (message !== undefined) reachable(message, found)
  return found
}

it('every field of an answer that a page may get is shown or hidden', () => {
  const messages = new Map(methods.flatMap(({ output }) => [...reachable(output)]))
  expect([...messages.keys()].toSorted()).toEqual(Object.keys(SHOWN_TO_PAGES).toSorted())
  for (const [name, { fields }] of messages) {
    const shown = SHOWN_TO_PAGES[name] ?? []
    if (shown === 'all') continue
    const decided = [...shown, ...(HIDDEN[name] ?? [])]
    expect([name, decided.toSorted()]).toEqual([name, fields.map(({ localName }) => localName).toSorted()])
  }
})
