import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import {
  ExportPaymentsRequest_Format,
  ExportPaymentsRequestSchema,
} from '../../../gen/payments/v1/payment_search_service_pb.js'
import type { Address } from '../../domain/address.ts'
import type { Payment } from '../../domain/payment.ts'
import { formatPaymentLine, toPaymentLine } from '../../domain/payment-line.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { StreamFormat } from '../calls/served-method.ts'
import { chooseExportForm } from './export-forms.ts'

const least: Payment = {
  id: '0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11',
  status: 'PENDING',
  timestamp: new Date('2026-03-01T12:00:05Z'),
  updatedAt: new Date('2026-03-01T12:00:06.789Z'),
  amount: '150',
  currency: 'USDC-BASE',
  network: 'BASE',
  fees: [],
  marks: [],
  exchangeRates: [],
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
}

const more: Payment = {
  ...least,
  status: 'CONFIRMED',
  type: 'CROSSCHAIN',
  confirmations: 12,
  amountInUsd: '150.01',
  txHash: `0x${'ab'.repeat(32)}`,
  blockNumber: 18_446_744_073_709_551_615n,
  eventIndex: 0,
  payee: '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc' as Address,
  reference: '=SUM("A1"), \nü',
  fees: [
    {
      type: 'PLATFORM',
      stage: 'SENDING',
      provider: 'request-network',
      amount: '0.75',
      currency: 'USDC-BASE',
      amountInUsd: '0.75',
      receiverAddress: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
      network: 'BASE',
    },
  ],
  exchangeRates: [{ from: 'USD', to: 'USDC-BASE', rate: '1.0001', source: 'feed', at: '2026-03-01T12:00:00.000Z' }],
  gas: { used: '90211', price: '0.000000008', amount: '0.000721688', currency: 'ETH-BASE', amountInUsd: '2.16' },
  statusHistory: [{ status: 'PENDING', at: '2026-03-01T12:00:06.789Z' }],
}

/** The whole file of an export that failed after two payments. */
function fileOf(format: ExportPaymentsRequest_Format): string {
  const form = chooseExportForm(undefined, create(ExportPaymentsRequestSchema, { format }))
  const message = form.message({ batch: [least, more] }, JSON.stringify, undefined)
  return `${form.begin ?? ''}${message}${form.error(waybillError('SHUTTING_DOWN', {}))}`
}

describe('an export', () => {
  it('as JSON lines has these bytes', () => {
    expect(fileOf(ExportPaymentsRequest_Format.NDJSON).split('\n')).toMatchInlineSnapshot(`
      [
        "{"id":"0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11","status":"PENDING","timestamp":"2026-03-01T12:00:05Z","updatedAt":"2026-03-01T12:00:06.789Z","amount":"150","currency":"USDC-BASE","network":"BASE","fees":[],"exchangeRates":[],"refunds":[],"refundedAmount":"0","statusHistory":[],"marks":[],"metadata":{}}",
        "{"id":"0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11","status":"CONFIRMED","confirmations":12,"type":"CROSSCHAIN","timestamp":"2026-03-01T12:00:05Z","updatedAt":"2026-03-01T12:00:06.789Z","amount":"150","currency":"USDC-BASE","amountInUSD":"150.01","network":"BASE","txHash":"0xabababababababababababababababababababababababababababababababab","blockNumber":"18446744073709551615","eventIndex":0,"payee":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","reference":"=SUM(\\"A1\\"), \\nü","fees":[{"type":"PLATFORM","stage":"SENDING","provider":"request-network","amount":"0.75","currency":"USDC-BASE","amountInUSD":"0.75","receiverAddress":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","network":"BASE"}],"exchangeRates":[{"from":"USD","to":"USDC-BASE","rate":"1.0001","source":"feed","at":"2026-03-01T12:00:00Z"}],"gas":{"used":"90211","price":"0.000000008","amount":"0.000721688","currency":"ETH-BASE","amountInUSD":"2.16"},"refunds":[],"refundedAmount":"0","statusHistory":[{"status":"PENDING","at":"2026-03-01T12:00:06.789Z"}],"marks":[],"metadata":{}}",
        "{"error":{"code":"unavailable","message":"this process is stopping; connect again","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"SHUTTING_DOWN","domain":"waybill","metadata":{}}]}}",
        "",
      ]
    `)
  })

  it('as CSV has these bytes', () => {
    expect(fileOf(ExportPaymentsRequest_Format.CSV).split('\r\n')).toMatchInlineSnapshot(`
      [
        "id,status,confirmations,type,timestamp,updatedAt,amount,currency,amountInUSD,invoiceAmount,invoiceCurrency,network,chainId,txHash,blockNumber,eventIndex,sourceNetwork,sourceTxHash,payer,payee,initiator,tokenAddress,requestId,paymentReference,reference,refundedAmount,fees,exchangeRates,gas,refunds,statusHistory,superseded,marks,metadata,gasAmount,gasCurrency,gasAmountInUSD,gasFee,gasFeeCurrency,gasFeeInUSD,platformFee,platformFeeCurrency,platformFeeInUSD,protocolFee,protocolFeeCurrency,protocolFeeInUSD,swapFee,swapFeeCurrency,swapFeeInUSD,crosschainFee,crosschainFeeCurrency,crosschainFeeInUSD",
        "0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11,PENDING,,,2026-03-01T12:00:05Z,2026-03-01T12:00:06.789Z,150,USDC-BASE,,,,BASE,,,,,,,,,,,,,,0,[],[],,[],[],,[],{},,,,,,,,,,,,,,,,,,",
        "0b7d2a31-6f0e-8c55-9d3b-3d8f2f6f1c11,CONFIRMED,12,CROSSCHAIN,2026-03-01T12:00:05Z,2026-03-01T12:00:06.789Z,150,USDC-BASE,150.01,,,BASE,,0xabababababababababababababababababababababababababababababababab,18446744073709551615,0,,,,0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC,,,,,"'=SUM(""A1""), 
      ü",0,"[{""type"":""PLATFORM"",""stage"":""SENDING"",""provider"":""request-network"",""amount"":""0.75"",""currency"":""USDC-BASE"",""amountInUSD"":""0.75"",""receiverAddress"":""0x70997970C51812dc3A010C7d01b50e0d17dc79C8"",""network"":""BASE""}]","[{""from"":""USD"",""to"":""USDC-BASE"",""rate"":""1.0001"",""source"":""feed"",""at"":""2026-03-01T12:00:00Z""}]","{""used"":""90211"",""price"":""0.000000008"",""amount"":""0.000721688"",""currency"":""ETH-BASE"",""amountInUSD"":""2.16""}",[],"[{""status"":""PENDING"",""at"":""2026-03-01T12:00:06.789Z""}]",,[],{},0.000721688,ETH-BASE,2.16,,,,0.75,USDC-BASE,0.75,,,,,,,,,",
        "error,SHUTTING_DOWN,this process is stopping; connect again,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
        "",
      ]
    `)
  })
  it('as CSV has a column for every field of a line', () => {
    const [header = ''] = fileOf(ExportPaymentsRequest_Format.CSV).split('\r\n')
    const fields = Object.keys(toPaymentLine(least))
    expect(header.split(',')).toEqual(expect.arrayContaining(fields))
    const others = header.split(',').filter((name) => !fields.includes(name))
    const ofGas = ['gasAmount', 'gasCurrency', 'gasAmountInUSD']
    const ofFees = ['gas', 'platform', 'protocol', 'swap', 'crosschain'].flatMap((type) =>
      ['Fee', 'FeeCurrency', 'FeeInUSD'].map((part) => `${type}${part}`),
    )
    expect(others).toEqual([...ofGas, ...ofFees])
  })

  it('as CSV has the columns that were chosen, with fees and gas in columns of their own', () => {
    const eth = { currency: 'ETH-ETHEREUM', amountInUsd: '3' } as const
    const fees = [
      ...more.fees,
      { type: 'PLATFORM', stage: 'OVERALL', amount: '0.000000000000000001', currency: 'USDC-BASE' },
      { type: 'GAS', stage: 'SENDING', amount: '0.001', ...eth },
      { type: 'GAS', stage: 'RECEIVING', amount: '0.002', currency: 'POL-POLYGON', amountInUsd: '0.5' },
    ] as const
    const columns = ['reference', 'platformFee', 'platformFeeCurrency', 'platformFeeInUSD', 'gasFee', 'gasFeeCurrency']
    const of = (chosen: string[], payment: Payment) => {
      const form = chooseExportForm('text/csv', create(ExportPaymentsRequestSchema, { columns: chosen }))
      return `${form.begin}${form.message({ batch: [payment] }, JSON.stringify, undefined)}`.split('\r\n')
    }
    expect(of(columns, { ...more, reference: 'a', fees })).toEqual([
      'reference,platformFee,platformFeeCurrency,platformFeeInUSD,gasFee,gasFeeCurrency',
      'a,0.750000000000000001,USDC-BASE,,0.001 0.002,ETH-ETHEREUM POL-POLYGON',
      '',
    ])
    const gas = ['gasAmount', 'gasCurrency', 'gasAmountInUSD', 'platformFeeInUSD', 'swapFee']
    expect(of(gas, more)[1]).toBe('0.000721688,ETH-BASE,2.16,0.75,')
    expect(of(gas, least)[1]).toBe(',,,,')
    const own = { ...least, metadata: { 'a.b': '=1' } }
    const inherited = ['metadata.constructor', 'metadata.__proto__']
    expect(of(['metadata.a.b', 'metadata.none', 'metadata', ...inherited], own)).toEqual([
      'metadata.a.b,metadata.none,metadata,metadata.constructor,metadata.__proto__',
      `'=1,,"{""a.b"":""=1""}",,`,
      '',
    ])
  })

  it('as CSV has gas of 0 where the gas of the transaction stands in another line, and as JSON lines the gas as it is', () => {
    const payment = { ...more, gasStandsElsewhere: true } as const
    const bodyOf = (form: StreamFormat) => form.message({ batch: [payment] }, JSON.stringify, undefined)
    const columns = ['gasAmount', 'gasCurrency', 'gasAmountInUSD', 'gas']
    const csv = bodyOf(chooseExportForm('text/csv', create(ExportPaymentsRequestSchema, { columns })))
    const gas =
      '{""used"":""0"",""price"":""0.000000008"",""amount"":""0"",""currency"":""ETH-BASE"",""amountInUSD"":""0""}'
    expect(csv).toBe(`0,ETH-BASE,0,"${gas}"\r\n`)
    const lines = bodyOf(chooseExportForm(undefined, create(ExportPaymentsRequestSchema)))
    expect(lines).toBe(`${formatPaymentLine(more)}\n`)
  })

  it('has columns as CSV alone', () => {
    const request = create(ExportPaymentsRequestSchema, { columns: ['id'] })
    expect(() => chooseExportForm(undefined, request)).toThrow(expect.objectContaining({ reason: 'INVALID_FIELD' }))
  })
})
