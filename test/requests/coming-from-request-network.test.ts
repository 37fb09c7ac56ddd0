import { readFile } from 'node:fs/promises'
import { type DescMessage, type DescMethod } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'

/** Names in Request Network's OpenAPI file 0.13.0: parameters, then fields of bodies and answers, without headers. */
const THEIRS = {
  'GET /v2/request/{requestId}/routes':
    'requestId wallet amount feePercentage feeAddress routes id fee feeBreakdown type stage provider amountInUSD currency receiverAddress network rateProvider speed price_impact chain token',
  'GET /v2/request/{requestId}/pay':
    'wallet chain token amount clientUserId paymentDetailsId feePercentage feeAddress transactions data to value hex metadata stepsRequired needsApproval approvalTransactionIndex hasEnoughBalance hasEnoughGas paymentIntentId paymentIntent approvalPermitPayload approvalCalldata supportsEIP2612',
  'GET /v2/payments':
    'txHash walletAddress paymentReference requestId reference type invoiceCurrency paymentCurrency fromDate toDate limit offset payments id amount sourceNetwork destinationNetwork sourceTxHash destinationTxHash timestamp conversionRateSource conversionRateDestination convertedAmountSource convertedAmountDestination currency fees recurringPaymentId rateProvider request hasBeenPaid customerInfo pagination total hasMore',
  'GET /v2/currencies': 'network symbol firstOnly id name decimals address type hash chainId',
  'POST /v2/request':
    'payer payee amount invoiceCurrency paymentCurrency recurrence isCryptoToFiatAvailable customerInfo reference originalRequestId originalRequestPaymentReference',
  'GET /v2/request/{requestId}':
    'hasBeenPaid paymentReference requestId isListening txHash recurrence originalRequestId status isCryptoToFiatAvailable originalRequestPaymentReference payments isRecurrenceStopped customerInfo reference amountInUsd conversionRate rateSource conversionBreakdown paidAmount paidAmountInUsd remainingAmount remainingAmountInUsd currentMarketRate currentMarketRateSource fees',
  'the webhooks':
    'payment.confirmed payment.partial payment.failed payment.refunded payment.processing request.recurring compliance.updated payment_detail.updated amount totalAmountPaid expectedAmount explorer x-request-network-signature x-request-network-delivery x-request-network-retry-count',
}

const { searchPayments, watchPayments } = PaymentSearchService.method
const { createPaymentRequest, getPaymentRequest, listPaymentRequests, watchPaymentRequest } = RequestsService.method
const { getPaymentRoutes, getPaymentCalldata } = RoutesService.method
const ofRequests = [createPaymentRequest, getPaymentRequest, listPaymentRequests]

/** The methods that a section of the guide is about. */
const SECTIONS: Readonly<Record<string, readonly DescMethod[]>> = {
  Routes: [getPaymentRoutes],
  Pay: [getPaymentCalldata],
  Payments: [searchPayments],
  Requests: [...ofRequests, searchPayments],
  Currencies: [createPaymentRequest, getPaymentRoutes],
  'Instead of webhooks': [watchPaymentRequest, watchPayments],
}
/** What is in our column and no name of a definition: headers, names of paths, words of values. */
const OTHERS = new Set(
  'GET POST v1 request payments routes pay watch payment_reference Idempotency-Key eth_sendTransaction exact estimated conversion feed peg pool 0x0 0x'.split(
    ' ',
  ),
)

/** The names of the fields and values that messages of the methods have. */
function namesOf(methods: readonly DescMethod[]): ReadonlySet<string> {
  const names = new Set<string>()
  const seen = new Set<DescMessage>()
  const add = (message: DescMessage): void => {
    if (seen.has(message)) return
    seen.add(message)
    for (const field of message.fields) {
      names.add(field.jsonName)
      if (field.message !== undefined) add(field.message)
      for (const { name } of field.enum?.values ?? []) names.add(name)
    }
  }
  for (const { input, output } of methods) for (const message of [input, output]) add(message)
  return names
}

describe('the guide for users of Request Network', async () => {
  const page = await readFile(new URL('../../docs/guides/coming-from-request-network.md', import.meta.url), 'utf8')
  const code = page.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`]+)`/g)
  const named = new Set([...code].flatMap(([, text = '']) => [text, ...(text.match(/[\w-]+/g) ?? [])]))

  it.each(Object.entries(THEIRS))('names all of %s', (_, names) => {
    expect(names.split(' ').filter((name) => !named.has(name))).toEqual([])
  })

  it.each(Object.entries(SECTIONS))('names nothing under %s that is not in the definitions', (title, methods) => {
    const [, section = ''] = page.split(new RegExp(`^## ${title}$`, 'm'))
    const [tables = ''] = section.split(/^## /m)
    const cells = [...tables.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell)
    const words = cells.flatMap((cell) =>
      [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, text = '']) => text.match(/[\w-]+/g) ?? []),
    )
    const known = namesOf(methods)
    expect(words).not.toEqual([])
    expect(words.filter((word) => !known.has(word) && !OTHERS.has(word))).toEqual([])
  })
})
