import type { Knex } from 'knex'
import { encodeFunctionData, type Hex, keccak256, parseAbi, toBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeListing } from '../../demo/network/demo-contracts.ts'
import {
  encodeGrpcMessage,
  grpcErrorTrailers,
  httpErrorBody,
  MAX_ERROR_BYTES,
} from '../../src/api/calls/error-mapping.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAmount, formatDecimal, parseAmount } from '../../src/domain/decimal.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import type { BatchQuestion, PreparedPayment } from '../../src/domain/route.ts'
import type { WaybillError } from '../../src/errors/waybill-error.ts'
import type { Routing } from '../../src/routing/routing.ts'
import { deployBatchConversionPayments } from '../detection/request-contracts.ts'
import { deploySafe, signSafeCall } from '../detection/smart-accounts.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { expectGasWithin, takeRoute } from '../support/chains/take-route.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  balanceOf,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  type TestTerms,
} from '../support/detection.ts'
import { type EvmAddress, freshAddress } from '../support/routing.ts'
import { routingOver } from './route-stage.ts'

const COIN = 10n ** 18n
const LATER = parseAbi(['function setBatchFee(uint16 batchFee)', 'function setBatchFeeAmountUSDLimit(uint64 limit)'])
const FIRST = parseAbi(['function setBatchFee(uint256 batchFee)', 'function setPaymentErc20FeeProxy(address proxy)'])

type Kind = 'BATCH_PAYMENTS' | 'BATCH_CONVERSION_PAYMENTS'
type Symbol = 'USDC' | 'USDT' | 'ETH'

let chain: TestChain
let database: TestDatabase
let knex: Knex
let account: Account
let contracts: Readonly<Record<Kind, Hex>>
let detection: Detection
let cases = 0

beforeAll(async () => {
  ;[chain, database] = await Promise.all([
    startTestChain({ chainId: 31_477, baseFeePerGas: 8_000_000_000n }),
    createTestDatabase(),
  ])
  knex = database.knex
  account = await addAccount(knex, 'shop')
  contracts = {
    BATCH_PAYMENTS: chain.contracts.batchPayments,
    BATCH_CONVERSION_PAYMENTS: await deployBatchConversionPayments(chain),
  }
  detection = detect(knex, [configWith('BATCH_PAYMENTS', 'BATCH_CONVERSION_PAYMENTS')])
})
afterAll(async () => {
  await Promise.all([chain?.stop(), database?.drop()])
})

function configWith(...kinds: readonly Kind[]): ChainConfig {
  const usual = configOf(chain, 'BASE')
  const batches = kinds.map((kind) => ({ kind, version: '0.1.0', address: canonical(contracts[kind]), fromBlock: 0 }))
  return { ...usual, contracts: [...usual.contracts, ...batches] }
}

/** Sets the fee of both contracts, in thousandths. */
async function setBatchFee(perMille: bigint, limit = 10n ** 12n): Promise<void> {
  const set = (to: Hex, data: Hex) => chain.send(chain.deployer, { to, data })
  await set(contracts.BATCH_PAYMENTS, encodeFunctionData({ abi: FIRST, functionName: 'setBatchFee', args: [perMille] }))
  const later = contracts.BATCH_CONVERSION_PAYMENTS
  await set(later, encodeFunctionData({ abi: LATER, functionName: 'setBatchFee', args: [Number(perMille) * 10] }))
  await set(later, encodeFunctionData({ abi: LATER, functionName: 'setBatchFeeAmountUSDLimit', args: [limit] }))
}

/** A wallet with plenty of a token or of coins. */
async function newWallet(symbol: Symbol, units = 10n ** 12n): Promise<EvmAddress> {
  const wallet = freshAddress(`wallet of a batch ${cases++}`)
  await chain.setNativeBalance(wallet, 10_000n * COIN)
  await chain.client.rpc.call('anvil_impersonateAccount', [wallet])
  if (symbol !== 'ETH') await chain.fund(chain.tokens[symbol], wallet, units)
  return wallet
}

async function newRequest(terms: TestTerms = {}): Promise<PaymentRequest> {
  const payee = freshAddress(`payee of a batch ${cases++}`)
  return storeRequest(knex, account, makeRequest({ payee, network: 'BASE', amount: '1.5', ...terms }))
}

/** Requests with other amounts, each fifth of them with the payee of the one before. */
async function newRequests(symbol: Symbol, count: number): Promise<PaymentRequest[]> {
  const requests: PaymentRequest[] = []
  for (let i = 0; i < count; i++) {
    const payee = i % 5 === 4 ? { payee: requests.at(-1)?.payee as EvmAddress } : {}
    requests.push(
      await newRequest({
        ...payee,
        amount: `0.${(i + 1) * 1_013}`,
        paymentCurrency: `${symbol}-BASE`,
        invoiceCurrency: `${symbol}-BASE`,
      }),
    )
  }
  return requests
}

const referencesOf = (requests: readonly PaymentRequest[]) => requests.map(({ paymentReference }) => paymentReference)

const options = { signal: new AbortController().signal }
const prepareBy = async (routing: Pick<Routing, 'prepareBatch'>, question: BatchQuestion) => {
  const { prepared, ...sums } = await routing.prepareBatch(account, question, options)
  return { ...prepared, ...sums }
}

const held = (symbol: Symbol, owner: string) =>
  symbol === 'ETH' ? chain.nativeBalance(owner as Hex) : chain.balanceOf(chain.tokens[symbol], owner as Hex)

/** What detection stores of a payment, but for what names its request and its transaction. */
async function storedOf(request: PaymentRequest) {
  const [payment, ...more] = await paymentsOf(knex, account, request)
  expect(more).toEqual([])
  return Object.fromEntries(SETTLED.map((name) => [name, payment[name]]))
}
const SETTLED = [
  'type',
  'status',
  'amount',
  'currency',
  'token_address',
  'invoice_amount',
  'invoice_currency',
  'amount_in_usd',
  'payer',
  'initiator',
  'payee',
  'network',
  'source_network',
  'chain_id',
  'fees',
  'refunded_amount',
  'final',
]

interface Case {
  readonly kind: Kind
  readonly symbol: Symbol
  /** The contract's fee, in thousandths. */
  readonly batchFee: bigint
  readonly percentage?: string
}
const kinds = ['BATCH_PAYMENTS', 'BATCH_CONVERSION_PAYMENTS'] as const
const ways: readonly Case[] = kinds.flatMap((kind) => [
  { kind, symbol: 'USDC', batchFee: 0n },
  { kind, symbol: 'USDC', batchFee: 10n },
  { kind, symbol: 'USDC', batchFee: 10n, percentage: '0.5' },
  { kind, symbol: 'USDT', batchFee: 3n, percentage: '0' },
  { kind, symbol: 'ETH', batchFee: 0n },
  { kind, symbol: 'ETH', batchFee: 10n },
  { kind, symbol: 'ETH', batchFee: 10n, percentage: '0.5' },
])

describe('a hundred requests, paid by the transactions exactly as answered', () => {
  it.each(ways)(
    'settle as if each was paid alone: $kind of $symbol, batch fee $batchFee, platform fee $percentage',
    async (way) => {
      const { kind, symbol, batchFee, percentage } = way
      await setBatchFee(batchFee)
      const routing = routingOver(configWith(kind), knex)
      const requests = await newRequests(symbol, 100)
      const wallet = await newWallet(symbol)
      const feeAddress = freshAddress(`platform ${cases++}`)
      const fee = percentage === undefined ? {} : { feePercentage: percentage, feeAddress }
      const batch = await prepareBy(routing, { paymentReferences: referencesOf(requests), wallet, ...fee })

      const decimals = symbol === 'ETH' ? 18 : 6
      const units = (text: string) => parseAmount(text, decimals) as bigint
      const sum = requests.reduce((total, { amount }) => total + units(formatDecimal(amount)), 0n)
      const fees =
        percentage === undefined
          ? 0n
          : requests.reduce(
              (total, { amount }) => total + (units(formatDecimal(amount)) * BigInt(Number(percentage) * 10)) / 1_000n,
              0n,
            )
      const ofBatch = (sum * batchFee) / 1_000n
      expect(batch).toMatchObject({
        amount: formatAmount(sum, decimals),
        currency: `${symbol}-BASE`,
        maxSourceAmount: formatAmount(sum + fees + ofBatch, decimals),
      })
      expect(batch.route.sourceAmount).toBe(formatAmount(sum + fees, decimals))
      expect(batch.steps.map(({ kind }) => kind)).toEqual(symbol === 'ETH' ? ['PAY'] : ['APPROVE', 'PAY'])
      const lines = Object.fromEntries(batch.route.feeBreakdown.map(({ type, amount }) => [type, amount]))
      expect(lines.PROTOCOL).toBe(
        percentage === undefined || batchFee === 0n ? undefined : formatAmount(ofBatch, decimals),
      )
      expect(lines.PLATFORM).toBe(percentage === undefined ? undefined : formatAmount(fees, decimals))

      const before = await held(symbol, wallet)
      const taken = await takeRoute(chain, wallet, batch)
      const gas = symbol === 'ETH' ? taken.reduce((total, { gasCost }) => total + gasCost, 0n) : 0n
      expectGasWithin(batch.route, taken)
      expect(before - (await held(symbol, wallet)) - gas).toBe(sum + fees + (percentage === undefined ? 0n : ofBatch))
      expect(await held(symbol, feeAddress)).toBe(percentage === undefined ? 0n : fees + ofBatch)
      if (symbol !== 'ETH') expect(await chain.allowance(chain.tokens[symbol], wallet, contracts[kind])).toBe(0n)

      await detection.scanOnce()
      for (const [i, request] of requests.entries()) {
        const [payment, ...more] = await paymentsOf(knex, account, request)
        expect(more).toEqual([])
        expect(payment).toMatchObject({
          type: 'DIRECT',
          status: 'PENDING',
          amount: formatDecimal(request.amount),
          invoice_amount: formatDecimal(request.amount),
          currency: `${symbol}-BASE`,
          payer: wallet,
          initiator: wallet,
          payee: request.payee,
          txHash: taken.at(-1)?.transactionHash,
        })
        const { amount, feeAmount, payee, paymentReference } = batch.payments[i] as (typeof batch.payments)[number]
        expect([amount, canonical(payee), paymentReference]).toEqual([
          formatDecimal(request.amount),
          request.payee,
          request.paymentReference,
        ])
        const platform = (payment.fees as { type: string; amount: string }[]).filter(({ type }) => type === 'PLATFORM')
        expect(platform.map(({ amount }) => amount)).toEqual(
          feeAmount === undefined || feeAmount === '0' ? [] : [feeAmount],
        )
      }
      // The batch's fee is a line of its last payment.
      const [last] = await paymentsOf(knex, account, requests.at(-1) as PaymentRequest)
      const protocol = (last.fees as { type: string; amount: string }[]).filter(({ type }) => type === 'PROTOCOL')
      expect(protocol.map(({ amount }) => amount)).toEqual(lines.PROTOCOL === undefined ? [] : [lines.PROTOCOL])

      await chain.mine({ blocks: 4 })
      await detection.scanOnce()
      for (const request of requests) expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PAID' })
    },
  )
})

describe('a request paid in a batch', () => {
  it.each<[Symbol, object]>([
    ['USDC', {}],
    ['USDC', { feePercentage: '1.5', feeAddress: freshAddress('platform of both') }],
    ['ETH', {}],
    ['ETH', { feePercentage: '1.5', feeAddress: freshAddress('platform of both') }],
  ])('is stored as an equal one that is paid alone: %s %o', async (symbol, fee) => {
    await setBatchFee(0n)
    const routing = routingOver(configWith('BATCH_PAYMENTS'), knex)
    const terms = {
      payee: freshAddress(`payee of both ${cases++}`),
      paymentCurrency: `${symbol}-BASE`,
      invoiceCurrency: `${symbol}-BASE`,
    }
    const [alone, together, other] = [
      await newRequest(terms),
      await newRequest(terms),
      await newRequest({ ...terms, amount: '7' }),
    ]
    const wallet = await newWallet(symbol)
    await takeRoute(
      chain,
      wallet,
      await routing.preparePayment(account, { paymentReference: alone.paymentReference, wallet, ...fee }, options),
    )
    await takeRoute(
      chain,
      wallet,
      await prepareBy(routing, { paymentReferences: referencesOf([together, other]), wallet, ...fee }),
    )
    await detection.scanOnce()
    expect(await storedOf(together)).toEqual(await storedOf(alone))
    expect(await storedOf(alone)).toMatchObject({ payer: wallet, amount: '1.5' })
  })

  it('pays what is outstanding of one that is paid in part', async () => {
    const routing = routingOver(configWith('BATCH_PAYMENTS'), knex)
    const request = await newRequest()
    const wallet = await newWallet('USDC')
    const part = { paymentReference: request.paymentReference, wallet, amount: '0.4' }
    await takeRoute(chain, wallet, await routing.preparePayment(account, part, options))
    await detection.scanOnce()
    const batch = await prepareBy(routing, { paymentReferences: referencesOf([request]), wallet })
    expect(batch).toMatchObject({ amount: '1.1', payments: [{ amount: '1.1' }] })
    await takeRoute(chain, wallet, batch)
    await detection.scanOnce()
    expect(await balanceOf(knex, account, request)).toMatchObject({ status: 'PENDING', outstandingAmount: '0' })
  })
})

describe('the contract that pays a batch', () => {
  const USDC = { paymentCurrency: 'USDC-BASE', invoiceCurrency: 'USDC-BASE' }
  const both = () => routingOver(configWith(...kinds), knex)
  const fee = { feePercentage: '0', feeAddress: freshAddress('platform that takes nothing') }
  const paysThrough = ({ transactions }: PreparedPayment) => canonical(transactions.at(-1)?.to ?? '')

  it('is the one that costs less', async () => {
    const question = {
      paymentReferences: referencesOf([await newRequest(USDC)]),
      wallet: await newWallet('USDC'),
      ...fee,
    }
    await setBatchFee(10n)
    expect(paysThrough(await prepareBy(both(), question))).toBe(canonical(contracts.BATCH_PAYMENTS))
    await setBatchFee(10n, 0n)
    const cheaper = await prepareBy(both(), question)
    expect(paysThrough(cheaper)).toBe(canonical(contracts.BATCH_CONVERSION_PAYMENTS))
    expect(cheaper.route.feeBreakdown.map(({ type, amount }) => [type, amount]).slice(1)).toEqual([['PLATFORM', '0']])
    const before = await held('USDC', question.wallet)
    await takeRoute(chain, question.wallet, cheaper)
    expect(before - (await held('USDC', question.wallet))).toBe(1_500000n)
    await setBatchFee(0n)
  })

  it('is one that the wallet has approved before', async () => {
    const question = { paymentReferences: referencesOf([await newRequest(USDC)]), wallet: await newWallet('USDC') }
    await chain.approve(question.wallet, chain.tokens.USDC, contracts.BATCH_CONVERSION_PAYMENTS, 10n ** 9n)
    const batch = await prepareBy(both(), question)
    expect(batch.steps.map(({ kind }) => kind)).toEqual(['PAY'])
    await takeRoute(chain, question.wallet, batch)
  })

  it('is none that pays through a proxy whose payments are not found', async () => {
    const question = { paymentReferences: referencesOf([await newRequest(USDC)]), wallet: await newWallet('USDC') }
    const setProxy = (proxy: Hex) => {
      const data = encodeFunctionData({ abi: FIRST, functionName: 'setPaymentErc20FeeProxy', args: [proxy] })
      return chain.send(chain.deployer, { to: contracts.BATCH_PAYMENTS, data })
    }
    await setProxy(await chain.deployLookAlikeProxy())
    const refused = prepareBy(routingOver(configWith('BATCH_PAYMENTS'), knex), question)
    await expect(refused).rejects.toMatchObject({
      reason: 'ROUTE_UNAVAILABLE',
      message: expect.stringContaining('CONTRACT_NOT_AS_CONFIGURED'),
    })
    expect(paysThrough(await prepareBy(both(), question))).toBe(canonical(contracts.BATCH_CONVERSION_PAYMENTS))
    await setProxy(chain.contracts.erc20FeeProxy)
  })

  it.each<[string, readonly Kind[], Partial<Record<Kind, string>>, string]>([
    ['is missing', [], {}, 'NO_PAYMENT_CONTRACT'],
    ['is none', ['BATCH_PAYMENTS'], { BATCH_PAYMENTS: freshAddress('nothing') }, 'CONTRACT_NOT_AS_CONFIGURED'],
  ])('says why it cannot pay: it %s', async (_, configured, instead, why) => {
    const config = configWith(...configured)
    const others = config.contracts.map((each) => ({
      ...each,
      address: canonical(instead[each.kind as Kind] ?? each.address),
    }))
    const routing = routingOver({ ...config, contracts: others }, knex)
    const question = { paymentReferences: referencesOf([await newRequest(USDC)]), wallet: await newWallet('USDC') }
    await expect(prepareBy(routing, question)).rejects.toMatchObject({ message: expect.stringContaining(why) })
  })
})

describe('a batch that cannot be paid', () => {
  it('names each request that stands in the way, and why', async () => {
    const elsewhere = { ...configWith('BATCH_PAYMENTS'), name: 'POLYGON', chainId: 31_478 }
    const routing = routingOver(configWith('BATCH_PAYMENTS'), knex, elsewhere)
    const wallet = await newWallet('USDC')
    const pay = async (request: PaymentRequest) =>
      takeRoute(
        chain,
        wallet,
        await routing.preparePayment(account, { paymentReference: request.paymentReference, wallet }, options),
      )
    const inUsd = { invoiceCurrency: 'USD', paymentCurrency: 'USDC-BASE' }
    const [open, paid, pending] = [await newRequest(), await newRequest(), await newRequest()]
    await pay(paid)
    await chain.mine({ blocks: 4 })
    await pay(pending)
    await detection.scanOnce()
    const stranger = await addAccount(knex, `stranger ${cases++}`)
    const foreign = makeRequest({ payee: freshAddress('foreign'), network: 'BASE' })
    await storeRequest(knex, stranger, foreign)
    const tron = { network: 'TRON', paymentCurrency: 'USDT-TRON', invoiceCurrency: 'USDT-TRON' }
    const requests: readonly (readonly [PaymentRequest, string | undefined])[] = [
      [open, undefined],
      [paid, 'REQUEST_ALREADY_PAID'],
      [pending, 'PAYMENT_PENDING'],
      [
        await newRequest({ expiresAt: new Date(Date.now() - 1_000), createdAt: new Date(Date.now() - 9_000) }),
        'REQUEST_EXPIRED',
      ],
      [await newRequest({ cancelledAt: new Date() }), 'REQUEST_CANCELLED'],
      [foreign, 'REQUEST_NOT_FOUND'],
      [await newRequest({ network: 'POLYGON' }), 'BATCH_CURRENCY_DIFFERS'],
      [await newRequest({ paymentCurrency: 'DAI-BASE' }), 'BATCH_CURRENCY_DIFFERS'],
      [await newRequest(inUsd), 'BATCH_CONVERSION'],
      [open, 'INVALID_FIELD'],
      [await newRequest({ payee: wallet }), 'WALLET_IS_PAYEE'],
      [await newRequest({ allowedPayers: [freshAddress('the only payer')] }), 'PAYER_NOT_ALLOWED'],
      [await newRequest({ allowedPayers: [wallet] }), undefined],
      [await newRequest(tron), 'CHAIN_NOT_SUPPORTED'],
    ]
    const error = await prepareBy(routing, {
      paymentReferences: referencesOf(requests.map(([request]) => request)),
      wallet,
    }).catch((thrown: unknown) => thrown)
    const wrong = requests.flatMap(([, reason], index) => (reason === undefined ? [] : [{ index, reason }]))
    const { reason, metadata, violations, unlisted } = error as WaybillError
    expect([reason, metadata.count, metadata.total]).toEqual(['REQUESTS_NOT_PAYABLE', '12', '14'])
    expect(violations.map(({ field, reason }) => ({ field, reason }))).toEqual(
      wrong.slice(0, 8).map(({ index, reason }) => ({ field: `paymentReferences[${index}]`, reason })),
    )
    expect(unlisted.count).toBe(4)
    const named = (metadata.why ?? '').split('; ').flatMap((part) => {
      const [reason = '', ...indexes] = part.split(' ')
      return indexes.map((index) => ({ index: Number(index), reason }))
    })
    expect(named.toSorted((a, b) => a.index - b.index)).toEqual(wrong)
  })

  it('names a hundred requests in every protocol: their error fits into trailers', async () => {
    const routing = routingOver(configWith('BATCH_PAYMENTS'), knex)
    const dai = await Promise.all(Array.from({ length: 33 }, () => newRequest({ paymentCurrency: 'DAI-BASE' })))
    const cancelled = await Promise.all(Array.from({ length: 33 }, () => newRequest({ cancelledAt: new Date() })))
    const unknown = Array.from({ length: 33 }, () => makeRequest({ payee: freshAddress('nobody'), network: 'BASE' }))
    const mixed = [
      await newRequest(),
      ...dai.flatMap((each, i) => [each, cancelled[i] as PaymentRequest, unknown[i] as PaymentRequest]),
    ]
    const question = { paymentReferences: referencesOf(mixed), wallet: await newWallet('USDC') }
    const error = (await prepareBy(routing, question).catch((thrown: unknown) => thrown)) as WaybillError
    const { message } = JSON.parse(httpErrorBody(error)) as { message: string }
    const { 'grpc-message': trailer, ...others } = grpcErrorTrailers(error)
    const size = Object.entries({ 'grpc-message': trailer, ...others }).reduce(
      (sum, [name, value]) => sum + name.length + (value?.length ?? 0) + 32,
      0,
    )
    expect(size).toBeLessThanOrEqual(MAX_ERROR_BYTES)
    expect(trailer).toBe(encodeGrpcMessage(message))
    for (let index = 1; index < 100; index++) expect(message).toMatch(new RegExp(`[A-Z] (\\d+ )*${index}\\b`))
  })

  it('has a wallet that holds one base unit too little for the sum', async () => {
    await setBatchFee(10n)
    const routing = routingOver(configWith('BATCH_PAYMENTS'), knex)
    const paymentReferences = referencesOf([await newRequest(), await newRequest()])
    const poor = { paymentReferences, wallet: await newWallet('USDC', 3_029999n) }
    await expect(prepareBy(routing, poor)).rejects.toMatchObject({
      reason: 'ROUTE_UNAVAILABLE',
      metadata: { why: expect.stringContaining('INSUFFICIENT_BALANCE'), missing: '0.000001' },
      violations: [{ field: 'wallet' }],
    })
    const wallet = await newWallet('USDC', 3_030000n)
    await takeRoute(chain, wallet, await prepareBy(routing, { paymentReferences, wallet }))
    // The contract's fee returns to the wallet where nobody else is to have it.
    expect(await held('USDC', wallet)).toBe(30_000n)
    await setBatchFee(0n)
  })

  it('has a wallet that an oracle lists', async () => {
    const screening = { oracle: canonical(chain.deployed.screeningOracle) }
    const routing = routingOver({ ...configWith('BATCH_PAYMENTS'), screening }, knex)
    const question = { paymentReferences: referencesOf([await newRequest()]), wallet: await newWallet('USDC') }
    expect((await prepareBy(routing, question)).amount).toBe('1.5')
    await chain.send(chain.deployer, encodeListing(chain.deployed.screeningOracle, [question.wallet], true))
    await expect(prepareBy(routing, question)).rejects.toMatchObject({ reason: 'PAYER_SCREENED' })
  })

  it('would fail at a payee that takes no coins', async () => {
    const payee = freshAddress('a payee that reverts')
    await chain.client.rpc.call('anvil_setCode', [payee, '0x60006000fd'])
    const inCoins = { paymentCurrency: 'ETH-BASE', invoiceCurrency: 'ETH-BASE' }
    const paymentReferences = referencesOf([await newRequest(inCoins), await newRequest({ ...inCoins, payee })])
    const refused = prepareBy(routingOver(configWith(...kinds), knex), {
      paymentReferences,
      wallet: await newWallet('ETH'),
    })
    await expect(refused).rejects.toMatchObject({ reason: 'ROUTE_WOULD_FAIL' })
  })

  it('says how much of the coin the gas lacks, as a single payment does', async () => {
    const wallet = await newWallet('USDC')
    await chain.setNativeBalance(wallet, 1n)
    const { route } = await prepareBy(routingOver(configWith('BATCH_PAYMENTS'), knex), {
      paymentReferences: referencesOf([await newRequest()]),
      wallet,
    })
    expect(route).toMatchObject({ readiness: { hasEnoughGas: false }, warnings: [{ reason: 'INSUFFICIENT_GAS' }] })
  })
})

describe("the file for a Safe's Transaction Builder", () => {
  it.each<[Symbol, Kind]>([
    ['USDC', 'BATCH_PAYMENTS'],
    ['USDC', 'BATCH_CONVERSION_PAYMENTS'],
    ['ETH', 'BATCH_PAYMENTS'],
    ['ETH', 'BATCH_CONVERSION_PAYMENTS'],
  ])('holds the transactions by which a real Safe pays in %s through %s', async (symbol, kind) => {
    await setBatchFee(symbol === 'ETH' ? 0n : 10n)
    const owner = privateKeyToAccount(generatePrivateKey())
    const safe = await deploySafe(chain, owner)
    await chain.setNativeBalance(safe, 100n * COIN)
    if (symbol !== 'ETH') await chain.fund(chain.tokens[symbol], safe, 10n ** 9n)
    const requests = await newRequests(symbol, 5)
    const batch = await prepareBy(routingOver(configWith(kind), knex), {
      paymentReferences: referencesOf(requests),
      wallet: safe,
    })
    const file = JSON.parse(batch.safeFile) as SafeFile
    expect(file).toMatchObject({
      version: '1.0',
      chainId: '31477',
      meta: {
        name: 'Pay 5 requests',
        txBuilderVersion: expect.stringMatching(/^1\./),
        createdFromSafeAddress: safe,
        checksum: checksumOf(file),
      },
    })
    expect(Math.abs(file.createdAt - Date.now())).toBeLessThan(60_000)
    expect(file.transactions).toEqual(
      batch.transactions.map(({ to, value, data }) => ({
        to,
        value: String(BigInt(value)),
        data,
        contractMethod: null,
        contractInputsValues: null,
      })),
    )
    for (const { to, value, data } of file.transactions) {
      const signed = await signSafeCall(chain, { safe, owner }, { to, data, value: BigInt(value) })
      await chain.send(chain.wallets[1], signed, { gas: 3_000_000n })
    }
    await detection.scanOnce()
    for (const request of requests) {
      expect(await paymentsOf(knex, account, request)).toMatchObject([
        { amount: formatDecimal(request.amount), payer: canonical(safe), fees: [] },
      ])
    }
    await setBatchFee(0n)
  })
})

it('a contract pays a fee in coins only where somebody else receives it', async () => {
  await setBatchFee(10n)
  const routing = routingOver(configWith('BATCH_PAYMENTS'), knex)
  const safe = await deploySafe(chain, privateKeyToAccount(generatePrivateKey()))
  await chain.setNativeBalance(safe, COIN)
  const inCoins = { paymentCurrency: 'ETH-BASE', invoiceCurrency: 'ETH-BASE', amount: '0.1' }
  const question = { paymentReferences: referencesOf([await newRequest(inCoins)]), wallet: safe }
  const why = expect.stringContaining('NO_FEE_RECEIVER')
  await expect(prepareBy(routing, question)).rejects.toMatchObject({ reason: 'ROUTE_UNAVAILABLE', metadata: { why } })
  const fee = { feePercentage: '0', feeAddress: freshAddress('who receives it') }
  expect((await prepareBy(routing, { ...question, ...fee })).maxSourceAmount).toBe('0.101')
  await setBatchFee(0n)
})

interface SafeFile {
  readonly createdAt: number
  readonly meta: Readonly<Record<string, string>>
  readonly transactions: readonly { readonly to: Hex; readonly value: string; readonly data: Hex }[]
}

/** As the Transaction Builder checks it: the names of an object in order, then its values, without the name of the file. */
function checksumOf(file: SafeFile): Hex {
  const write = (value: unknown): string => {
    if (Array.isArray(value)) return `[${value.map(write).join()}]`
    if (value === null || typeof value !== 'object') return JSON.stringify(value)
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `{${JSON.stringify(entries.map(([name]) => name))}${entries.map(([, each]) => `${write(each)},`).join('')}}`
  }
  const { name, checksum, ...meta } = file.meta
  expect([name, checksum]).not.toContain(undefined)
  return keccak256(toBytes(write({ ...file, meta: { ...meta, name: null } })))
}
