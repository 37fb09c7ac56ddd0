import { hash, randomUUID } from 'node:crypto'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { httpErrorBody, wireFormOfError } from '../../src/api/calls/error-mapping.ts'
import { formatAddress } from '../../src/domain/address.ts'
import { formatTxHash } from '../../src/domain/chain.ts'
import type { Payment } from '../../src/domain/payment.ts'
import type { Route, RoutesAnswer } from '../../src/domain/route.ts'
import { WaybillError, waybillError } from '../../src/errors/waybill-error.ts'
import { authenticate, calls, logger } from './calls.ts'

/**
 * The two calls with Fastify: its router, its checks of the query by JSON schema, its compiled serialisers. In addition, everything that
 * the service does for every call: request id, one line of log, key and scope, a deadline that cancels the work, an entity tag, the same
 * headers.
 */
export async function startFastify(): Promise<number> {
  const app = Fastify({
    logger: false,
    genReqId: (request) => saneId(request.headers['x-request-id']) ?? randomUUID(),
    ajv: { customOptions: { removeAdditional: false, coerceTypes: 'array' } },
  })
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers({ 'x-request-id': request.id, 'cache-control': 'private', vary: 'x-api-key' })
    done()
  })
  app.addHook('onSend', (request, reply, body, done) => {
    if (reply.statusCode !== 200 || typeof body !== 'string') return done(null, body)
    const etag = `W/"${hash('sha1', body, 'base64url')}"`
    void reply.header('etag', etag)
    if (request.headers['if-none-match'] !== etag) return done(null, body)
    void reply.code(304)
    done(null, '')
  })
  app.addHook('onResponse', (request, reply, done) => {
    const { statusCode: code, elapsedTime } = reply
    const durationMs = Math.round(elapsedTime * 100) / 100
    logger.info(
      { requestId: request.id, method: request.routeOptions.url, protocol: 'rest', code, durationMs, account: 'bench' },
      'call',
    )
    done()
  })
  app.setErrorHandler((error, _, reply) => {
    const known =
      error instanceof WaybillError ? error : waybillError('INVALID_FIELD', { field: 'query', detail: String(error) })
    return reply.code(wireFormOfError(known, 'rest').httpStatus).type('application/json').send(httpErrorBody(known))
  })
  app.get('/payments', { schema: searchSchema }, (request, reply) =>
    withDeadline(reply, async (signal) => {
      const { account } = await authenticate(credentialsOf(request), 'payments:read', ignore)
      return pageToJson(await calls.payments.search(account, inputOf(request.query as SearchQuery), signal))
    }),
  )
  app.get('/v1/request/:paymentReference/routes', { schema: routesSchema }, (request, reply) =>
    withDeadline(reply, async (signal) => {
      const { account } = await authenticate(credentialsOf(request), 'routes:read', ignore)
      const question = { ...(request.query as { wallet: string }), ...(request.params as { paymentReference: string }) }
      const answer = await calls.routes.findRoutes(account, question, { signal })
      return answerToJson(answer)
    }),
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as { port: number }).port
}

function ignore(): void {}

function saneId(sent: unknown): string | undefined {
  return typeof sent === 'string' && /^[\w.:/+=@-]{1,128}$/.test(sent) ? sent : undefined
}

function credentialsOf({ headers, ip }: FastifyRequest) {
  const of = (name: string) => (headers[name] as string | undefined) ?? null
  return { apiKey: of('x-api-key'), account: of('x-account'), address: () => ip }
}

async function withDeadline<T>(reply: FastifyReply, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  ended.catch(() => {})
  const end = (error: Error) => {
    reject(error)
    controller.abort(error)
  }
  const timer = setTimeout(() => end(waybillError('DEADLINE_EXCEEDED', { timeoutMs: 30_000 })), 30_000)
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) end(waybillError('CALL_CANCELLED', {}))
  })
  try {
    return await Promise.race([work(controller.signal), ended])
  } finally {
    clearTimeout(timer)
  }
}

type SearchQuery = Record<string, string | string[] | number>

const lists =
  'currency paymentCurrency invoiceCurrency status type payer payee walletAddress txHash requestId paymentReference reference network'.split(
    ' ',
  )

function inputOf(query: SearchQuery): object {
  const input: Record<string, unknown> = { ...query }
  for (const name of lists) {
    const values = query[name]
    if (values !== undefined) input[name] = (values as string[]).flatMap((value) => value.split(','))
  }
  return input
}

const text = (maxLength: number) => ({ type: 'string', maxLength }) as const
const string = { type: 'string' } as const
const number = { type: 'number' } as const
const integer = { type: 'integer' } as const
const boolean = { type: 'boolean' } as const
const object = (properties: object) => ({ type: 'object', properties }) as const
const array = (items: object) => ({ type: 'array', items }) as const
const strings = (...names: string[]) => Object.fromEntries(names.map((name) => [name, string]))

const searchSchema = {
  querystring: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...Object.fromEntries(lists.map((name) => [name, { type: 'array', maxItems: 100, items: text(128) }])),
      ...Object.fromEntries(
        ['fromDate', 'toDate', 'sortBy', 'sortOrder', 'includeTotal'].map((name) => [name, text(64)]),
      ),
      minAmount: text(128),
      maxAmount: text(128),
      cursor: text(49_152),
      limit: { type: 'integer', minimum: 0 },
    },
  },
  response: {
    200: object({
      payments: array(
        object({
          ...strings('id', 'status'),
          completed: boolean,
          confirmations: integer,
          ...strings('type', 'timestamp', 'updatedAt', 'amount', 'currency', 'amountInUSD', 'invoiceAmount'),
          ...strings('invoiceCurrency', 'network', 'chainId', 'txHash', 'blockNumber'),
          eventIndex: integer,
          ...strings('sourceNetwork', 'destinationNetwork', 'sourceTxHash', 'destinationTxHash', 'payer', 'payee'),
          ...strings('initiator', 'tokenAddress', 'requestId', 'paymentReference', 'reference'),
          fees: array(
            object(strings('type', 'stage', 'provider', 'amount', 'currency', 'amountInUSD', 'receiverAddress')),
          ),
          exchangeRates: array(object(strings('from', 'to', 'rate', 'source', 'at'))),
          gas: object(strings('used', 'price', 'amount', 'currency', 'amountInUSD')),
          refunds: array(
            object({ ...strings('amount', 'currency', 'network', 'txHash', 'timestamp'), eventIndex: integer }),
          ),
          refundedAmount: string,
          statusHistory: array(object(strings('status', 'at'))),
        }),
      ),
      pagination: object({ limit: integer, hasMore: boolean, ...strings('nextCursor', 'prevCursor'), total: integer }),
      asOf: array(object(strings('network', 'block', 'time'))),
      watchCursor: string,
    }),
  },
}

const routesSchema = {
  params: object({ paymentReference: text(128) }),
  querystring: {
    type: 'object',
    additionalProperties: false,
    required: ['wallet'],
    properties: { wallet: text(128), amount: text(128), feePercentage: text(64), feeAddress: text(128) },
  },
  response: {
    200: object({
      routes: array(
        object({
          id: string,
          fee: number,
          speed: string,
          price_impact: number,
          ...strings(
            'chain',
            'token',
            'chainId',
            'tokenAddress',
            'sourceAmount',
            'feeAmount',
            'feeCurrency',
            'feeInUSD',
          ),
          feeIsComplete: boolean,
          feeRate: number,
          totalCost: number,
          feeBreakdown: array(
            object(strings('type', 'stage', 'provider', 'amount', 'currency', 'amountInFeeCurrency', 'amountInUSD')),
          ),
          estimatedDurationSeconds: integer,
          provider: string,
          tags: array(string),
          expiresAt: string,
          warnings: array(object(strings('reason', 'message'))),
          atomic: boolean,
          readiness: object({ hasEnoughGas: boolean, needsApproval: boolean, steps: array(string) }),
        }),
      ),
      ...strings('amount', 'currency'),
      warnings: array(object(strings('reason', 'message'))),
      unavailable: array(object(strings('chain', 'token', 'provider', 'reason', 'message', 'remedy'))),
      degraded: boolean,
    }),
  },
}

/** The JSON of a page of payments. */
export function pageToJson({
  payments,
  pagination,
  asOf,
  watchCursor,
}: Awaited<ReturnType<typeof calls.payments.search>>) {
  return {
    payments: payments.map(paymentToJson),
    pagination: { ...pagination, hasMore: pagination.nextCursor !== undefined },
    asOf: asOf.map(({ network, block, time }) => ({ network, block: block?.toString(), time: time && timeText(time) })),
    watchCursor,
  }
}

function paymentToJson(payment: Payment) {
  const { network, txHash, sourceTxHash, payer, payee, initiator, tokenAddress, gas } = payment
  return {
    id: payment.id,
    status: payment.status,
    completed: payment.status === 'CONFIRMED',
    confirmations: payment.confirmations,
    type: payment.type,
    timestamp: timeText(payment.timestamp),
    updatedAt: timeText(payment.updatedAt),
    amount: payment.amount,
    currency: payment.currency,
    amountInUSD: payment.amountInUsd,
    invoiceAmount: payment.invoiceAmount,
    invoiceCurrency: payment.invoiceCurrency,
    network,
    chainId: payment.chainId,
    txHash: txHash && formatTxHash(network, txHash),
    blockNumber: payment.blockNumber?.toString(),
    eventIndex: payment.eventIndex,
    sourceNetwork: payment.sourceNetwork,
    destinationNetwork: network,
    sourceTxHash: sourceTxHash && formatTxHash(payment.sourceNetwork ?? network, sourceTxHash),
    destinationTxHash: txHash && formatTxHash(network, txHash),
    payer: payer && formatAddress(payer),
    payee: payee && formatAddress(payee),
    initiator: initiator && formatAddress(initiator),
    tokenAddress: tokenAddress && formatAddress(tokenAddress),
    requestId: payment.requestId,
    paymentReference: payment.paymentReference,
    reference: payment.reference,
    fees: payment.fees,
    exchangeRates: payment.exchangeRates,
    gas,
    refunds: payment.refunds,
    refundedAmount: payment.refundedAmount,
    statusHistory: payment.statusHistory.map(({ status, at }) => ({ status, at: timeText(new Date(at)) })),
  }
}

/** The JSON of the routes of a request. */
export function answerToJson(answer: RoutesAnswer) {
  return { ...answer, routes: answer.routes.map(routeToJson) }
}

function routeToJson({ priceImpact, feeInUsd, tokenAddress, expiresAt, ...route }: Route) {
  return {
    ...route,
    price_impact: priceImpact,
    feeInUSD: feeInUsd,
    tokenAddress: tokenAddress && formatAddress(tokenAddress),
    expiresAt: timeText(expiresAt),
    feeBreakdown: route.feeBreakdown.map(({ amountInUsd, ...line }) => ({ ...line, amountInUSD: amountInUsd })),
  }
}

/** Whole seconds without a fraction, as the service writes them. */
function timeText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z')
}
