import { readFile } from 'node:fs/promises'
import { type DescMessage, type DescMethod } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { describeApi } from '../../src/api/openapi/describe-api.ts'
import { createPaymentsServices, type PaymentsCalls } from '../../src/api/services/payments-services.ts'

const { getPayment, searchPayments, watchPayments } = PaymentSearchService.method
const { createPaymentRequest, getShop, getPaymentRequest, listPaymentRequests, watchPaymentRequest } =
  RequestsService.method
const { getPaymentOptions, getPaymentRoutes, getPaymentCalldata } = RoutesService.method
const ofRequests = [createPaymentRequest, getPaymentRequest, listPaymentRequests]

interface Guide {
  /** Names in their definition: parameters, then fields of bodies and answers, without headers. */
  readonly theirs: Readonly<Record<string, string>>
  /** The methods that a section of the guide is about. */
  readonly sections: Readonly<Record<string, readonly DescMethod[]>>
  /** What is in our column and no name of a definition: headers, names of paths, words of values. */
  readonly others: string
}

const GUIDES: Readonly<Record<string, Guide>> = {
  // their OpenAPI file 0.13.0
  'request-network': {
    theirs: {
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
    },
    sections: {
      Routes: [getPaymentRoutes],
      Pay: [getPaymentCalldata],
      Payments: [searchPayments],
      Requests: [...ofRequests, searchPayments],
      Currencies: [createPaymentRequest, getPaymentRoutes],
      'Instead of webhooks': [watchPaymentRequest, watchPayments],
    },
    others:
      'GET POST v1 request payments routes pay watch payment_reference Idempotency-Key eth_sendTransaction exact estimated conversion feed peg pool 0x0 0x',
  },
  // docs.cdp.coinbase.com: Commerce API, rest-api/charges and webhooks-fields
  'coinbase-commerce': {
    theirs: {
      'POST /charges':
        'name description pricing_type fixed_price no_price local_price amount currency metadata redirect_url cancel_url checkout_id buyer_locale',
      'GET /charges/{id}':
        'id code name description created_at expires_at confirmed_at hosted_url pricing local settlement timeline status time NEW SIGNED PENDING COMPLETED EXPIRED FAILED payments metadata redirects success_url web3_data transfer_intent contract_addresses success_events organization_name brand_color brand_logo_url support_email collected_email charge_kind',
      'its payments':
        'payment_id network transaction_id status detected_at value local crypto payer_addresses finalized network_fee_paid recipient sender',
      'the webhooks':
        'X-CC-Webhook-Signature event type data charge:created charge:pending charge:confirmed charge:failed',
    },
    sections: {
      Charges: [createPaymentRequest, getPaymentRequest, getPaymentCalldata, getShop],
      Payments: [searchPayments],
      Webhooks: [getPaymentRequest],
    },
    others: 'GET v1 request payments pay webhook-signature verifyWebhook type data updated',
  },
  // swagger.template.invoices.json and swagger.template.webhooks.json of 2.4.1
  btcpay: {
    theirs: {
      'the calls':
        'storeId invoiceId webhookId deliveryId invoices payment-methods status refund unarchive activate webhooks deliveries redeliver',
      'creating and listing invoices':
        'amount currency additionalSearchTerms metadata orderId itemDesc checkout receipt speedPolicy paymentMethods expirationMinutes paymentTolerance redirectURL redirectAutomatically defaultLanguage status textSearch startDate endDate skip take',
      'an invoice':
        'id storeId amount paidAmount currency type TopUp checkoutLink createdTime expirationTime monitoringExpiration status New Processing Expired Invalid Settled additionalStatus PaidLate PaidPartial PaidOver',
      'its payment methods':
        'paymentMethodId destination paymentLink rate due payments id receivedDate value fee status Invalid Processing Settled',
      'the webhooks':
        'BTCPay-Sig deliveryId isRedelivery InvoiceCreated InvoiceReceivedPayment InvoiceProcessing InvoiceExpired InvoiceSettled InvoiceInvalid InvoicePaymentSettled manuallyMarked overPaid partiallyPaid afterExpiration',
    },
    sections: {
      Invoices: [...ofRequests, searchPayments],
      'Payment methods': [createPaymentRequest, getPaymentOptions, searchPayments],
      Webhooks: [getPayment, getPaymentRequest],
    },
    others: 'finality webhook-signature webhook-id verifyWebhook payment request added updated removed data',
  },
}

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

const description = describeApi({
  services: createPaymentsServices({} as PaymentsCalls),
  version: '3.1',
  release: '',
})
const calls = new Set(
  Object.entries(description.paths).flatMap(([path, item]) =>
    Object.keys(item).map((verb) => `${verb.toUpperCase()} ${path}`),
  ),
)

describe.each(Object.entries(GUIDES))('the guide for users of %s', async (name, { theirs, sections, others }) => {
  const page = await readFile(new URL(`../../docs/guides/coming-from-${name}.md`, import.meta.url), 'utf8')
  const tables = page.replaceAll(/^```.*?^```$/gms, '')
  const code = tables.matchAll(/`([^`]+)`/g)
  const named = new Set([...code].flatMap(([, text = '']) => [text, ...(text.match(/[\w-]+/g) ?? [])]))

  it.each(Object.entries(theirs))('names all of %s', (_, names) => {
    expect(names.split(' ').filter((each) => !named.has(each))).toEqual([])
  })

  it('names calls that are served', () => {
    const ours = [...tables.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell).join('\n')
    const found = [...ours.matchAll(/`((?:GET|POST|PATCH|PUT|DELETE) [^`?]+)/g)].map(([, call = '']) => call)
    expect(found).not.toEqual([])
    expect(found.filter((call) => !calls.has(call))).toEqual([])
  })

  it.each(Object.entries(sections))('names nothing under %s that is not in the definitions', (title, methods) => {
    const [, section = ''] = page.split(new RegExp(`^## ${title}$`, 'm'))
    const [within = ''] = section.split(/^## /m)
    const cells = [...within.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell)
    const words = cells.flatMap((cell) =>
      [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, text = '']) => text.match(/[\w-]+/g) ?? []),
    )
    const known = new Set([...namesOf(methods), ...others.split(' ')])
    expect(words).not.toEqual([])
    expect(words.filter((word) => !known.has(word))).toEqual([])
  })
})
