import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'

/** Names in Request Network's OpenAPI file 0.13.0: parameters, then fields of bodies and answers, without headers. */
const THEIRS = {
  'GET /v2/request/{requestId}/routes':
    'requestId wallet amount feePercentage feeAddress routes id fee feeBreakdown type stage provider amountInUSD currency receiverAddress network rateProvider speed price_impact chain token',
  'GET /v2/request/{requestId}/pay':
    'wallet chain token amount clientUserId paymentDetailsId feePercentage feeAddress transactions data to value hex metadata stepsRequired needsApproval approvalTransactionIndex hasEnoughBalance hasEnoughGas paymentIntentId paymentIntent approvalPermitPayload approvalCalldata supportsEIP2612',
  'GET /v2/payments':
    'txHash walletAddress paymentReference requestId reference type invoiceCurrency paymentCurrency fromDate toDate limit offset payments id amount sourceNetwork destinationNetwork sourceTxHash destinationTxHash timestamp conversionRateSource conversionRateDestination convertedAmountSource convertedAmountDestination currency fees recurringPaymentId rateProvider request hasBeenPaid customerInfo pagination total hasMore',
  'POST /v2/request':
    'payer payee amount invoiceCurrency paymentCurrency recurrence isCryptoToFiatAvailable customerInfo reference originalRequestId originalRequestPaymentReference',
  'GET /v2/request/{requestId}':
    'hasBeenPaid paymentReference requestId isListening txHash recurrence originalRequestId status isCryptoToFiatAvailable originalRequestPaymentReference payments isRecurrenceStopped customerInfo reference amountInUsd conversionRate rateSource conversionBreakdown paidAmount paidAmountInUsd remainingAmount remainingAmountInUsd currentMarketRate currentMarketRateSource fees',
}

describe('the guide for users of Request Network', async () => {
  const page = await readFile(new URL('../../docs/guides/coming-from-request-network.md', import.meta.url), 'utf8')
  const code = page.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`]+)`/g)
  const named = new Set([...code].flatMap(([, text = '']) => text.match(/[\w-]+/g) ?? []))

  it.each(Object.entries(THEIRS))('names all of %s', (_, names) => {
    expect(names.split(' ').filter((name) => !named.has(name))).toEqual([])
  })
})
