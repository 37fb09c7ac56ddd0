import { create, fromBinary, fromJsonString, toBinary, toJson, toJsonString } from '@bufbuild/protobuf'
import { createContextValues, createHandlerContext } from '@connectrpc/connect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  GetPaymentRoutesRequestSchema,
  GetPaymentRoutesResponseSchema,
  RoutesService,
} from '../../../gen/payments/v1/routes_service_pb.js'
import type { Address } from '../../domain/address.ts'
import { decimalToNumber, formatDecimal } from '../../domain/decimal.ts'
import type { RoutesAnswer } from '../../domain/route.ts'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import { callerKey } from '../calls/call.ts'
import { createRoutesHandlers } from './routes-handler.ts'

const account = { id: 7, name: 'shop' }
const context = createHandlerContext({
  service: RoutesService,
  method: RoutesService.method.getPaymentRoutes,
  protocolName: 'grpc',
  requestMethod: 'POST',
  url: '/',
  contextValues: createContextValues().set(callerKey, { account, keyId: 'key' }),
})

const answer: RoutesAnswer = {
  routes: [
    {
      id: 'REQUEST_NETWORK_PAYMENT',
      fee: 0.75,
      speed: 'FAST',
      priceImpact: 0,
      chain: 'BASE',
      token: 'USDC',
      chainId: 'eip155:8453',
      tokenAddress: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913' as Address,
      sourceAmount: '150.75',
      feeAmount: '0.75',
      feeCurrency: 'USDC-BASE',
      feeIsComplete: false,
      feeRate: 0.005,
      totalCost: 0.005,
      feeBreakdown: [
        { type: 'GAS', stage: 'SENDING', amount: '0.1', currency: 'ETH-BASE' },
        {
          type: 'PLATFORM',
          stage: 'SENDING',
          provider: 'request-network',
          amount: '0.75',
          currency: 'USDC-BASE',
          amountInFeeCurrency: '0.75',
          amountInUsd: '0.75',
        },
      ],
      estimatedDurationSeconds: 4,
      provider: 'request-network',
      tags: ['CHEAPEST', 'FASTEST'],
      expiresAt: new Date('2026-03-01T12:00:00.250Z'),
      warnings: [{ reason: 'GAS_UNPRICED', message: 'no price' }],
      atomic: true,
      readiness: { needsApproval: true, steps: ['APPROVE_RESET', 'APPROVE', 'PAY'] },
    },
  ],
  amount: '150',
  currency: 'USDC-BASE',
  warnings: [],
  unavailable: [{ chain: 'POLYGON', reason: 'CHAIN_UNREACHABLE', message: 'm', remedy: 'r', metadata: {} }],
  degraded: true,
}

const refuse = (): never => {
  throw new TypeError('this method is not called here')
}
const unasked = {
  streamRoutes: refuse,
  preparePayment: refuse,
  prepareBatch: refuse,
  findOptions: refuse,
  checkQuestion: refuse,
  checkPayment: refuse,
  checkBatch: refuse,
  currencies: [],
}

describe('GetPaymentRoutes', () => {
  it('writes an answer with the field names of the contract', async () => {
    const handlers = createRoutesHandlers({ ...unasked, findRoutes: async () => answer })
    const response = await handlers.getPaymentRoutes(create(GetPaymentRoutesRequestSchema), context)
    const json = toJson(GetPaymentRoutesResponseSchema, create(GetPaymentRoutesResponseSchema, response), {
      alwaysEmitImplicit: true,
    })
    const { priceImpact: _, feeBreakdown, ...route } = answer.routes[0] as RoutesAnswer['routes'][0]
    const [gas, { amountInUsd, ...platform } = {}] = feeBreakdown
    expect(json).toEqual({
      ...answer,
      routes: [
        {
          ...route,
          price_impact: 0,
          tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
          expiresAt: '2026-03-01T12:00:00.250Z',
          feeBreakdown: [gas, { ...platform, amountInUSD: amountInUsd }],
          warnings: [{ reason: 'GAS_UNPRICED', message: 'no price', metadata: {} }],
        },
      ],
    })
  })

  it('passes on the account, signal and deadline of the call, and leaves out fields that were not sent', async () => {
    const asked: unknown[] = []
    const handlers = createRoutesHandlers({
      ...unasked,
      findRoutes: async (...parameters) => {
        asked.push(...parameters)
        return { ...answer, routes: [] }
      },
    })
    const request = create(GetPaymentRoutesRequestSchema, { paymentReference: 'p', wallet: 'w', feePercentage: '' })
    await handlers.getPaymentRoutes(request, { ...context, timeoutMs: () => 5_000 })
    expect(asked[0]).toBe(account)
    expect(asked[1]).toMatchObject({ paymentReference: 'p', wallet: 'w', feePercentage: '' })
    expect((asked[1] as { amount?: string }).amount).toBeUndefined()
    const { signal, deadlineAtMs } = asked[2] as { signal: AbortSignal; deadlineAtMs: number }
    expect(signal).toBe(context.signal)
    expect(deadlineAtMs - Date.now()).toBeGreaterThan(4_000)
  })

  const desc = GetPaymentRoutesResponseSchema
  const writeJson = compileJsonSerializer(desc)
  const writeBinary = compileBinarySerializer(desc)
  const fees = fc.record({
    units: fc.oneof(fc.constantFrom<bigint>(0n, 1n, 9n), fc.bigInt(0n, 10n ** 25n), fc.bigInt(0n, 2n ** 256n)),
    places: fc.constantFrom(0, 6, 8, 18),
  })

  it('keeps every bit of fee, feeRate, price_impact and totalCost, in every encoding', async () => {
    await fc.assert(
      fc.asyncProperty(fees, fees, async (amount, fraction) => {
        const feeAmount = formatDecimal(amount)
        const number = decimalToNumber(fraction)
        const sent = { fee: decimalToNumber(amount), feeRate: number, priceImpact: 0 - number, totalCost: number }
        const routes = answer.routes.map((route) => ({ ...route, ...sent, feeAmount }))
        const handlers = createRoutesHandlers({ ...unasked, findRoutes: async () => ({ ...answer, routes }) })
        const plain = await handlers.getPaymentRoutes(create(GetPaymentRoutesRequestSchema), context)
        const message = create(desc, plain)
        const texts = [writeJson(plain), writeJson(message), toJsonString(desc, message, { alwaysEmitImplicit: true })]
        expect(new Set(texts).size).toBe(1)
        const received = [
          ...texts.map((text) => fromJsonString(desc, text)),
          fromBinary(desc, writeBinary(plain)),
          fromBinary(desc, toBinary(desc, message)),
        ]
        for (const {
          routes: [route],
        } of received)
          expect(route).toMatchObject({ ...sent, fee: Number(feeAmount) })
        const [read] = (JSON.parse(texts[0] ?? '') as { routes: Record<string, unknown>[] }).routes
        expect(read).toMatchObject({ fee: Number(feeAmount), feeRate: number, totalCost: number })
      }),
      { numRuns: 300 },
    )
  })
})
