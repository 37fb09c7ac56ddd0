import type { Knex } from 'knex'
import { type Abi, encodeFunctionData, type Hex, parseAbi, zeroAddress } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ContractCall, encodeNativePayment } from '../../demo/network/demo-contracts.ts'
import { USD_HASH } from '../../demo/network/deployment.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { verifyChain } from '../../src/detection/verify/verify-chain.ts'
import type { Account } from '../../src/domain/account.ts'
import { parseDecimal } from '../../src/domain/decimal.ts'
import type { PaymentFee } from '../../src/domain/payment.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  addAccount,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  type TestTerms,
} from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { freshAddress } from '../support/routing.ts'
import { deployBatchConversionPayments, deployBatchPayments } from './request-contracts.ts'

const COIN = 10n ** 18n
const DOLLAR = 10n ** 8n
const ABI = parseAbi([
  'struct RequestDetail { address recipient; uint256 requestAmount; address[] path; bytes paymentReference; uint256 feeAmount; uint256 maxToSpend; uint256 maxRateTimespan; }',
  'struct MetaDetail { uint256 paymentNetworkId; RequestDetail[] requestDetails; }',
  'struct Call3Value { address target; bool allowFailure; uint256 value; bytes callData; }',
  'function batchERC20PaymentsMultiTokensWithReference(address[] tokens, address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function batchEthPaymentsWithReference(address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function batchPayments(MetaDetail[] metaDetails, address[][] pathsToUSD, address feeAddress)',
  'function aggregate3Value(Call3Value[] calls) payable',
])
const encode = (
  functionName: (typeof ABI)[number] extends infer T ? (T extends { name: string } ? T['name'] : never) : never,
  args: readonly unknown[],
): Hex => encodeFunctionData<Abi, string>({ abi: ABI, functionName, args })

const OLD_FEE = parseAbi(['function setBatchFee(uint256 batchFee)'])
const NEW_FEE = parseAbi([
  'function setBatchFee(uint16 batchFee)',
  'function setBatchFeeAmountUSDLimit(uint64 limit)',
  'function setNativeAndUSDAddress(address native, address usd)',
])
const encodeBatchFee = (abi: Abi, fee: bigint) => encodeFunctionData({ abi, functionName: 'setBatchFee', args: [fee] })

/** One chain, read from a node that has traces and from one that has none. */
interface View {
  readonly database: TestDatabase
  readonly knex: Knex
  readonly account: Account
  readonly detection: Detection
  readonly config: ChainConfig
}

let chain: TestChain
let batch: Hex
let conversions: Hex
let node: RpcProxy
let traced: View
let untraced: View
let payer: Hex
let cases = 0

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_476 })
  payer = chain.wallets[0]
  batch = await deployBatchPayments(chain)
  conversions = await deployBatchConversionPayments(chain)
  // Thousandths in the older contract, ten thousandths in the newer one: both 1 %.
  await chain.send(chain.deployer, { to: batch, data: encodeBatchFee(OLD_FEE, 10n) })
  await chain.send(chain.deployer, { to: conversions, data: encodeBatchFee(NEW_FEE, 100n) })
  const set = (functionName: 'setBatchFeeAmountUSDLimit' | 'setNativeAndUSDAddress', args: readonly unknown[]) =>
    chain.send(chain.deployer, {
      to: conversions,
      data: encodeFunctionData<Abi, string>({ abi: NEW_FEE, functionName, args }),
    })
  await set('setNativeAndUSDAddress', [chain.native.conversionHash, USD_HASH])
  await set('setBatchFeeAmountUSDLimit', [1_000n * DOLLAR])
  for (const token of [chain.tokens.USDC, chain.tokens.DAI]) {
    await chain.fund(token, payer, 10n ** 24n)
    for (const spender of [batch, conversions]) await chain.approve(payer, token, spender, 10n ** 24n)
  }
  node = await startRpcProxy(chain.rpcUrl)
  node.meddle(({ method }) =>
    method.startsWith('debug_') || method.startsWith('trace_')
      ? Promise.resolve({ rpcError: { code: -32601, message: `the method ${method} does not exist` } })
      : undefined,
  )
  ;[traced, untraced] = await Promise.all([openView(chain.rpcUrl), openView(node.url)])
})
afterAll(async () => {
  await Promise.all([traced?.database.drop(), untraced?.database.drop()])
  await Promise.all([node?.stop(), chain?.stop()])
})

async function openView(url: string): Promise<View> {
  const database = await createTestDatabase()
  const { knex } = database
  const usual = configOf(chain, 'BASE')
  const config = configOf(chain, 'BASE', {
    rpcUrls: [url],
    contracts: [
      ...usual.contracts,
      { kind: 'BATCH_PAYMENTS', version: '0.1.0', address: canonical(batch), fromBlock: 0 },
      { kind: 'BATCH_CONVERSION_PAYMENTS', version: '0.1.0', address: canonical(conversions), fromBlock: 0 },
    ],
  })
  return { database, knex, account: await addAccount(knex, 'shop'), detection: detect(knex, [config]), config }
}

async function request(terms: TestTerms = {}): Promise<PaymentRequest> {
  const made = makeRequest({ payee: freshAddress(`batched ${cases++}`), network: 'BASE', amount: '1', ...terms })
  for (const { knex, account } of [traced, untraced]) await storeRequest(knex, account, made)
  return made
}

/** What the independent proof finds to differ from what the traced view has stored. */
async function differences() {
  await chain.mine({ blocks: 5 })
  await traced.detection.scanOnce()
  const { knex, config } = traced
  const tokens = createTokenDirectory([config])
  const clock = () => new Date()
  const report = await verifyChain({ knex, chain: config, tokens, clock, logger: silentLogger, againAfterMs: 0 })
  return report.differences
}

const scan = async () => {
  for (const { detection } of [traced, untraced]) await detection.scanOnce()
}

/** The payments of some requests in a view, in the order of their events. */
async function paymentsIn({ knex, account }: View, requests: readonly PaymentRequest[]) {
  const found = await Promise.all([...new Set(requests)].map((each) => paymentsOf(knex, account, each)))
  return found.flat().toSorted((a, b) => a.event_index - b.event_index)
}

/** What fee lines say, added up in base units, by currency. */
function sumOfFees(payments: readonly { readonly fees: readonly PaymentFee[] }[], decimals: Record<string, number>) {
  const sums: Record<string, bigint> = {}
  for (const { amount, currency } of payments.flatMap(({ fees }) => fees)) {
    const { units, places } = parseDecimal(amount) ?? { units: -1n, places: 0 }
    sums[currency] = (sums[currency] ?? 0n) + units * 10n ** BigInt((decimals[currency] ?? 0) - places)
  }
  return sums
}

const detail = (
  { payee, paymentReference }: PaymentRequest,
  terms: Partial<Detail> & Pick<Detail, 'requestAmount' | 'path'>,
): Detail => ({
  recipient: payee as Hex,
  paymentReference,
  feeAmount: 0n,
  maxToSpend: 0n,
  maxRateTimespan: 0n,
  ...terms,
})
interface Detail {
  readonly recipient: Hex
  readonly requestAmount: bigint
  readonly path: readonly Hex[]
  readonly paymentReference: Hex
  readonly feeAmount: bigint
  readonly maxToSpend: bigint
  readonly maxRateTimespan: bigint
}

describe('payments of a batch', () => {
  it('of several tokens have the batch fee of each token once, on the last payment in it', async () => {
    const { USDC, DAI } = chain.tokens
    const feeAddress = freshAddress('fees of a batch of tokens')
    const [first, other] = [await request(), await request({ paymentCurrency: 'DAI-BASE' })]
    // The same reference twice, in the order USDC, DAI, USDC.
    const paid = [first, other, first]
    const tokens = [USDC.address, DAI.address, USDC.address]
    const amounts = [333_333n, COIN / 3n, 100_001n]
    const data = encode('batchERC20PaymentsMultiTokensWithReference', [
      tokens,
      paid.map(({ payee }) => payee),
      amounts,
      paid.map(({ paymentReference }) => paymentReference),
      [7n, 11n, 0n],
      feeAddress,
    ])
    await chain.send(payer, { to: batch, data }, { gas: 3_000_000n })
    await scan()
    const received = {
      'USDC-BASE': await chain.balanceOf(USDC, feeAddress),
      'DAI-BASE': await chain.balanceOf(DAI, feeAddress),
    }
    expect(received).toEqual({ 'USDC-BASE': 7n + 4333n, 'DAI-BASE': 11n + COIN / 300n })
    for (const view of [traced, untraced]) {
      const payments = await paymentsIn(view, [first, other])
      expect(payments.map(({ payer: from, event_index }) => [from, event_index])).toEqual(
        [0, 1, 2].map((i) => [canonical(payer), i]),
      )
      expect(payments.map(({ fees }) => fees.map(({ type }: PaymentFee) => type))).toEqual([
        ['PLATFORM'],
        ['PLATFORM', 'PROTOCOL'],
        ['PROTOCOL'],
      ])
      expect(sumOfFees(payments, { 'USDC-BASE': 6, 'DAI-BASE': 18 })).toEqual(received)
    }
  })

  it('of every kind at once have all fees, those of coins only with a trace', async () => {
    const { USDC, DAI } = chain.tokens
    const feeAddress = freshAddress('fees of a batch of all kinds')
    const fiat = { invoiceCurrency: 'USD' }
    const requests = [
      await request({ ...fiat, amount: '10' }),
      await request({ ...fiat, amount: '20' }),
      await request(),
      await request({ paymentCurrency: 'DAI-BASE' }),
      await request({ paymentCurrency: 'ETH-BASE' }),
      await request({ paymentCurrency: 'ETH-BASE' }),
      await request({ ...fiat, paymentCurrency: 'ETH-BASE', amount: '30' }),
    ]
    const [a, b, c, d, e, f, g] = requests as [
      PaymentRequest,
      PaymentRequest,
      PaymentRequest,
      PaymentRequest,
      PaymentRequest,
      PaymentRequest,
      PaymentRequest,
    ]
    const inUsdc = [USD_HASH, USDC.address] as const
    const inEth = [USD_HASH, chain.native.conversionHash] as const
    const metaDetails = [
      {
        paymentNetworkId: 0n,
        requestDetails: [
          detail(a, { requestAmount: 10n * DOLLAR, path: inUsdc, feeAmount: DOLLAR / 10n, maxToSpend: 11_000000n }),
          detail(b, { requestAmount: 20n * DOLLAR, path: inUsdc, maxToSpend: 22_000000n }),
        ],
      },
      {
        paymentNetworkId: 2n,
        requestDetails: [
          detail(c, { requestAmount: 1_000000n, path: [USDC.address], feeAmount: 5n }),
          detail(d, { requestAmount: COIN, path: [DAI.address] }),
        ],
      },
      {
        paymentNetworkId: 3n,
        requestDetails: [
          detail(e, { requestAmount: COIN, path: [], feeAmount: 3n }),
          detail(f, { requestAmount: COIN / 3n, path: [] }),
        ],
      },
      {
        paymentNetworkId: 4n,
        requestDetails: [detail(g, { requestAmount: 30n * DOLLAR, path: inEth, maxToSpend: COIN / 50n })],
      },
    ]
    const data = encode('batchPayments', [
      metaDetails,
      [
        [USDC.address, USD_HASH],
        [DAI.address, USD_HASH],
      ],
      feeAddress,
    ])
    await chain.send(payer, { to: conversions, data, value: 3n * COIN }, { gas: 5_000_000n })
    await scan()
    const received = {
      'USDC-BASE': await chain.balanceOf(USDC, feeAddress),
      'DAI-BASE': await chain.balanceOf(DAI, feeAddress),
      'ETH-BASE': await chain.nativeBalance(feeAddress),
    }
    const decimals = { 'USDC-BASE': 6, 'DAI-BASE': 18, 'ETH-BASE': 18 }
    const [withTrace, without] = [await paymentsIn(traced, requests), await paymentsIn(untraced, requests)]
    for (const payments of [withTrace, without]) {
      expect(payments.map(({ payer: from, event_index, type }) => [from, event_index, type])).toEqual(
        ['CONVERSION', 'CONVERSION', 'DIRECT', 'DIRECT', 'DIRECT', 'DIRECT', 'CONVERSION'].map((type, i) => [
          canonical(payer),
          i,
          type,
        ]),
      )
      expect(payments.map(({ invoice_amount }) => Number(invoice_amount))).toMatchObject([
        10,
        20,
        1,
        1,
        1,
        expect.closeTo(1 / 3),
        30,
      ])
    }
    expect(sumOfFees(withTrace, decimals)).toEqual(received)
    expect(sumOfFees(without, decimals)).toEqual({ ...received, 'ETH-BASE': 3n })
  })

  it('that is reverted are not there, and those beside it are', async () => {
    const [made, reverted] = [
      await request({ paymentCurrency: 'ETH-BASE' }),
      await request({ paymentCurrency: 'ETH-BASE' }),
    ]
    const feeAddress = freshAddress('fees beside a reverted batch')
    const batchOf = (paid: PaymentRequest, value: bigint) => ({
      target: batch,
      allowFailure: true,
      value,
      callData: encode('batchEthPaymentsWithReference', [
        [paid.payee],
        [COIN],
        [paid.paymentReference],
        [0n],
        feeAddress,
      ]),
    })
    const calls = [batchOf(reverted, COIN / 2n), batchOf(made, (101n * COIN) / 100n)]
    const data = encode('aggregate3Value', [calls])
    await chain.send(payer, { to: chain.contracts.multicall3, data, value: (151n * COIN) / 100n }, { gas: 3_000_000n })
    await scan()
    const multicall = canonical(chain.contracts.multicall3)
    expect(await paymentsIn(traced, [made, reverted])).toMatchObject([
      { event_index: 0, payer: multicall, fees: [{ type: 'PROTOCOL', amount: '0.01', receiverAddress: feeAddress }] },
    ])
    expect(await paymentsIn(untraced, [made, reverted])).toMatchObject([{ event_index: 0, payer: null, fees: [] }])
  })

  it('whose fee address is the payer have no fee, whatever comes back to them', async () => {
    const wanted = await request({ invoiceCurrency: 'USD', amount: '10' })
    const path = [USD_HASH, chain.tokens.USDC.address] as const
    const terms = { requestAmount: 10n * DOLLAR, path, maxToSpend: 12_000000n }
    const data = encode('batchPayments', [
      [{ paymentNetworkId: 0n, requestDetails: [detail(wanted, terms)] }],
      [],
      payer,
    ])
    await chain.send(payer, { to: conversions, data }, { gas: 3_000_000n })
    await scan()
    expect(await paymentsIn(traced, [wanted])).toMatchObject([{ payer: canonical(payer), fees: [] }])
  })
})

describe('amounts and fees at their limits', () => {
  it('are exact up to 2^256 - 1 base units', async () => {
    const { address } = await chain.deployToken({ symbol: 'HUGE', decimals: 18 })
    const most = 2n ** 256n - 1n
    const view = await openView(chain.rpcUrl)
    const usual = configOf(chain, 'BASE')
    const tokens = [...usual.tokens, { symbol: 'HUGE', address: canonical(address), decimals: 18, pegUsd: '1' }]
    const detection = detect(view.knex, [configOf(chain, 'BASE', { tokens })])
    const text = `${most / COIN}.${(most % COIN).toString().padStart(18, '0')}`
    const wanted = makeRequest({
      payee: freshAddress('huge'),
      network: 'BASE',
      paymentCurrency: 'HUGE-BASE',
      amount: text,
    })
    await storeRequest(view.knex, view.account, wanted)
    await chain.fund({ address }, payer, most)
    const { paymentReference } = wanted
    await chain.pay(payer, { kind: 'ERC20', token: address, to: wanted.payee as Hex, amount: most, paymentReference })
    await chain.mine({ blocks: 4 })
    await detection.scanOnce()
    const [payment] = await paymentsOf(view.knex, view.account, wanted)
    expect(payment).toMatchObject({ status: 'CONFIRMED', amount: text, amount_in_usd: text })
    await view.database.drop()
  })

  it('burn a fee in coins to address 0, which the payer is charged', async () => {
    const wanted = await request({ paymentCurrency: 'ETH-BASE' })
    const { payee, paymentReference } = wanted
    const terms = { to: payee as Hex, amount: COIN, paymentReference, feeAmount: 5n, feeAddress: zeroAddress }
    const call: ContractCall = encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true)
    await chain.send(payer, call)
    await scan()
    const [payment] = await paymentsIn(traced, [wanted])
    expect(payment?.fees).toMatchObject([
      { type: 'PLATFORM', amount: '0.000000000000000005', receiverAddress: zeroAddress },
    ])
  })
})

it('the proof that shares no rule with detection finds the same', async () => {
  expect(await differences()).toEqual([])
})
