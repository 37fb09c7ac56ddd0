import type { Knex } from 'knex'
import {
  type Abi,
  concatHex,
  encodeFunctionData,
  type Hex,
  numberToHex,
  padHex,
  parseAbi,
  toEventSelector,
  zeroAddress,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  type ContractCall,
  encodeApprove,
  encodeCreation,
  encodeNativePayment,
} from '../../demo/network/demo-contracts.ts'
import type { ChainConfig } from '../../src/chains/chains-file.ts'
import { createTokenDirectory } from '../../src/chains/token-directory.ts'
import { eventTopics } from '../../src/contracts/decode-events.ts'
import type { Detection } from '../../src/detection/detection.ts'
import { createChainReader, type TransactionReceipt } from '../../src/detection/read/chain-reader.ts'
import { UNHURRIED } from '../../src/detection/read/patience.ts'
import { createTraceReader } from '../../src/detection/read/trace-reader.ts'
import { verifyChain } from '../../src/detection/verify/verify-chain.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Address } from '../../src/domain/address.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { createRpcClient } from '../../src/nodes/rpc-client.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { callingCode, encodeBatch } from '../support/chains/contract-calls.ts'
import { type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { deploySwapToPay, deployUniswapV2, type SwapToPay } from '../support/chains/uniswap.ts'
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
  unmatchedOf,
} from '../support/detection.ts'
import { silentLogger } from '../support/logs.ts'
import { freshAddress } from '../support/routing.ts'
import { deployBatchPayments, deployEscrow, deployRequestProxyFactory, publishedEvents } from './request-contracts.ts'
import { deployEntryPoint, deploySafe, makeAccount, signBundle, signSafeCall } from './smart-accounts.ts'

const COIN = 10n ** 18n
const ENTRY_POINT = '0x0000000071727de22e5e9d8baf0edac6f37da032'
const USER_OPERATION = '0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f'
const EXECUTION_SUCCESS = '0x442e715f626346e8c54381002da614f62bee8d27386535b2521ec8540898556e'
const ABI = parseAbi([
  'function transferFrom(address from, address to, uint256 value)',
  'function batchEthPaymentsWithReference(address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function swapTransferWithReference(address paymentProxy, address to, uint256 amount, uint256 amountInMax, address[] path, bytes paymentReference, uint256 feeAmount, address feeAddress, uint256 deadline)',
  'function createERC20SingleRequestProxy(address payee, address token, bytes paymentReference, address feeAddress, uint256 feeAmount)',
  'function createEthereumSingleRequestProxy(address payee, bytes paymentReference, address feeAddress, uint256 feeAmount)',
  'function triggerERC20Payment()',
  'function batchERC20PaymentsWithReference(address token, address[] recipients, uint256[] amounts, bytes[] paymentReferences, uint256[] feeAmounts, address feeAddress)',
  'function setBatchFee(uint256 batchFee)',
  'function approvePaymentProxyToSpend(address token)',
  'function payEscrow(address token, address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
  'function payRequestFromEscrow(bytes paymentReference)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures)',
  'function execute(address target, uint256 value, bytes data)',
  'function transferFromWithReferenceAndFee(address token, address to, uint256 amount, bytes paymentReference, uint256 feeAmount, address feeAddress)',
])

/** One chain, read from a node that has traces and from one that has none. */
interface View {
  readonly database: TestDatabase
  readonly knex: Knex
  readonly account: Account
  readonly detection: Detection
  readonly config: ChainConfig
}

let chain: TestChain
let swapToPay: SwapToPay
let batch: Hex
let factory: Hex
let olderProxy: Hex
let node: RpcProxy
let traced: View
let untraced: View

const hasNoTraces = ({ method }: { method: string }) =>
  method.startsWith('debug_') || method.startsWith('trace_')
    ? Promise.resolve({ rpcError: { code: -32601, message: `the method ${method} does not exist/is not available` } })
    : undefined

beforeAll(async () => {
  chain = await startTestChain({ chainId: 31_471 })
  const { USDC, DAI } = chain.tokens
  const v2 = await deployUniswapV2(chain)
  await v2.addLiquidity(DAI, 1_000_000n * COIN, USDC, 1_000_000_000000n)
  swapToPay = await deploySwapToPay(chain, v2.router)
  await swapToPay.approveAll([USDC, DAI])
  batch = await deployBatchPayments(chain)
  factory = await deployRequestProxyFactory(chain)
  const { transactionHash } = await chain.send(
    chain.deployer,
    { data: encodeCreation('EthereumFeeProxy') },
    { gas: 5_000_000n },
  )
  const created = await chain.client.rpc.call<{ contractAddress: Hex }>('eth_getTransactionReceipt', [transactionHash])
  olderProxy = created.contractAddress
  node = await startRpcProxy(chain.rpcUrl)
  node.meddle(hasNoTraces)
  ;[traced, untraced] = await Promise.all([openView(chain.rpcUrl), openView(node.url)])
})
afterEach(() => node.meddle(hasNoTraces))
afterAll(async () => {
  await Promise.all([traced?.database.drop(), untraced?.database.drop()])
  await Promise.all([node?.stop(), chain?.stop()])
})

async function openView(url: string, intermediaries: readonly Address[] = []): Promise<View> {
  const database = await createTestDatabase()
  const { knex } = database
  const usual = configOf(chain, 'BASE')
  const config = configOf(chain, 'BASE', {
    rpcUrls: [url],
    contracts: [
      ...usual.contracts,
      swapToPay.config,
      { kind: 'ETHEREUM_FEE_PROXY', version: '0.1.0', address: canonical(olderProxy), fromBlock: 0 },
      { kind: 'SINGLE_REQUEST_PROXY_FACTORY', version: '0.1.0', address: canonical(factory), fromBlock: 0 },
    ],
    intermediaries: [canonical(batch), ...intermediaries],
  })
  return { database, knex, account: await addAccount(knex, 'shop'), detection: detect(knex, [config]), config }
}

/** A request that both views have stored. */
async function request(terms: TestTerms = {}): Promise<PaymentRequest> {
  const made = makeRequest({ payee: freshAddress(`payee ${cases++}`), network: 'BASE', ...terms })
  for (const { knex, account } of [traced, untraced]) await storeRequest(knex, account, made)
  return made
}
let cases = 0

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

async function scan(): Promise<void> {
  await traced.detection.scanOnce()
  await untraced.detection.scanOnce()
}

/** The payer of a request in each view. */
async function payers(wanted: PaymentRequest) {
  const of = async ({ knex, account }: View) => (await paymentsOf(knex, account, wanted)).map(({ payer }) => payer)
  return { traced: await of(traced), untraced: await of(untraced) }
}

async function reasons(): Promise<string[]> {
  return unmatchedOf(traced.knex, traced.account.id)
}

const coinTerms = { paymentCurrency: 'ETH-BASE', amount: '1' } as const
const native = ({ payee, paymentReference }: PaymentRequest, amount: bigint, proxy?: Hex): ContractCall =>
  encodeNativePayment(proxy ?? chain.contracts.ethereumFeeProxy, { to: payee as Hex, amount, paymentReference }, true)
const run = (from: Hex, calls: readonly ContractCall[], gas = 5_000_000n) =>
  chain.send(from, encodeBatch(chain.contracts.paymentBatch, calls), { gas })
const encode = (functionName: (typeof ABI)[number]['name'], args: readonly unknown[]): Hex =>
  encodeFunctionData<Abi, string>({ abi: ABI, functionName, args })

/** Code that logs one event with these topics and two words of zeros, whoever calls it. */
function loggingCode(topics: readonly Hex[]): Hex {
  const pushed = topics.toReversed().map((topic) => concatHex(['0x7f', padHex(topic, { size: 32 })]))
  return concatHex([...pushed, '0x60806000', numberToHex(0xa0 + topics.length), '0x00'])
}

async function setCode(at: Hex, code: Hex): Promise<void> {
  await chain.client.rpc.call('anvil_setCode', [at, code])
}

/** Pays a request with DAI through ERC20SwapToPay, with the batch contract's money. */
function swapCalls(amount: bigint, to: Hex, paymentReference: Hex): ContractCall[] {
  const { DAI, USDC } = chain.tokens
  const path = [DAI.address, USDC.address]
  const terms = [
    chain.contracts.erc20FeeProxy,
    to,
    amount,
    2n * COIN,
    path,
    paymentReference,
    0n,
    zeroAddress,
    2n ** 40n,
  ]
  return [
    encodeApprove(DAI.address, swapToPay.address, 2n * COIN),
    { to: swapToPay.address, data: encode('swapTransferWithReference', terms) },
  ]
}

const zeroTransfer = (of: Hex): ContractCall => ({
  to: chain.tokens.DAI.address,
  data: encode('transferFrom', [of, swapToPay.address, 0n]),
})

describe('a payer of tokens', () => {
  it('is not the sender of a Transfer of 0, which anybody can make', async () => {
    const { paymentBatch } = chain.contracts
    const victim = freshAddress('victim of a zero')
    const wanted = await request({ amount: '1' })
    await chain.fund(chain.tokens.DAI, paymentBatch, 2n * COIN)
    const swap = swapCalls(1_000000n, wanted.payee as Hex, wanted.paymentReference)
    await run(chain.wallets[0], [zeroTransfer(victim), ...swap])
    await scan()
    const payer = canonical(paymentBatch)
    expect(await payers(wanted)).toEqual({ traced: [payer], untraced: [payer] })
  })

  it('is the caller of a batch, whose fee is a line of its last payment', async () => {
    const [sender] = chain.wallets
    const { USDC } = chain.tokens
    const feeAddress = freshAddress('fee of a batch')
    const paid = [await request({ amount: '1' }), await request({ amount: '1' })]
    // The batch fee is in thousandths.
    const onePercent = encode('setBatchFee', [10n])
    await chain.send(chain.deployer, { to: batch, data: onePercent })
    await chain.fund(USDC, sender, 3_000000n)
    await chain.approve(sender, USDC, batch, 3_000000n)
    const terms = [USDC.address, paid.map(({ payee }) => payee), paid.map(() => 1_000000n)]
    const references = paid.map(({ paymentReference }) => paymentReference)
    const data = encode('batchERC20PaymentsWithReference', [...terms, references, paid.map(() => 0n), feeAddress])
    await chain.send(sender, { to: batch, data }, { gas: 2_000_000n })
    await chain.send(chain.deployer, { to: batch, data: encode('setBatchFee', [0n]) })
    await scan()
    const bySender = { traced: [canonical(sender)], untraced: [canonical(sender)] }
    expect([await payers(paid[0] as PaymentRequest), await payers(paid[1] as PaymentRequest)]).toEqual([
      bySender,
      bySender,
    ])
    const fees = await Promise.all(paid.map((each) => paymentsOf(traced.knex, traced.account, each)))
    expect(fees.flat().map((payment) => payment.fees)).toMatchObject([
      [],
      [{ type: 'PROTOCOL', amount: '0.02', receiverAddress: feeAddress }],
    ])
  })

  it('who swaps to themselves in the payee’s name is not refunded', async () => {
    const [, attacker] = chain.wallets
    const wanted = await request({ amount: '1' })
    const { USDC, DAI } = chain.tokens
    await chain.fund(USDC, attacker, 1_000000n)
    const { paymentReference } = wanted
    const to = wanted.payee as Hex
    await chain.pay(attacker, { kind: 'ERC20', token: USDC.address, to, amount: 1_000000n, paymentReference })
    await chain.fund(DAI, chain.contracts.paymentBatch, 2n * COIN)
    await run(attacker, [zeroTransfer(to), ...swapCalls(1_000000n, attacker, paymentReference)])
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await paymentsOf(traced.knex, traced.account, wanted)).toMatchObject([{ status: 'CONFIRMED' }])
    expect(await reasons()).toContain('WRONG_PAYEE')
  })

  it('is never the payee', async () => {
    await traced.knex('unmatched_events').delete()
    const [, , payee] = chain.wallets
    const tokens = await request({ payee: canonical(payee), amount: '1' })
    const coins = await request({ payee: canonical(payee), ...coinTerms })
    await chain.fund(chain.tokens.USDC, payee, 1_000000n)
    const { paymentReference } = tokens
    const payment = { token: chain.tokens.USDC.address, to: payee, amount: 1_000000n, paymentReference }
    await chain.pay(payee, { kind: 'ERC20', ...payment })
    await chain.send(payee, native(coins, COIN))
    await scan()
    expect(await reasons()).toEqual(['SELF_PAYMENT', 'SELF_PAYMENT'])
    for (const wanted of [tokens, coins]) expect(await payers(wanted)).toEqual({ traced: [], untraced: [] })
  })
})

describe('a payer of coins', () => {
  it('is the caller of the proxy, whatever a stranger’s wallet logs in the same transaction', async () => {
    const [sender] = chain.wallets
    const strangers = freshAddress('a stranger’s Safe')
    await setCode(strangers, loggingCode([EXECUTION_SUCCESS]))
    const wanted = await request(coinTerms)
    await run(sender, [native(wanted, COIN), { to: strangers, data: '0x' }])
    await scan()
    const { paymentBatch } = chain.contracts
    expect(await payers(wanted)).toEqual({ traced: [canonical(paymentBatch)], untraced: [null] })
  })

  it('is not the payee because their own user operation is in the same transaction as a payment to themselves', async () => {
    await traced.knex('unmatched_events').delete()
    const [, attacker] = chain.wallets
    const wanted = await request(coinTerms)
    await chain.send(attacker, native(wanted, COIN))
    const operation = padHex('0x01', { size: 32 })
    await setCode(ENTRY_POINT, loggingCode([USER_OPERATION, operation, wanted.payee as Hex, zeroAddress]))
    const toHimself = native({ ...wanted, payee: canonical(attacker) }, COIN)
    await run(attacker, [toHimself, { to: ENTRY_POINT, data: '0x' }])
    await chain.mine({ blocks: 4 })
    await scan()
    expect(await paymentsOf(traced.knex, traced.account, wanted)).toMatchObject([
      { status: 'CONFIRMED', payer: canonical(attacker) },
    ])
    expect(await reasons()).toEqual(['WRONG_PAYEE'])
  })

  it('is the caller of the batch, but not of payments that a vendor makes when they are paid', async () => {
    const [sender] = chain.wallets
    const vendor = freshAddress('a vendor with code')
    const [own, vendors, slipped] = [
      await request(coinTerms),
      await request({ ...coinTerms, payee: vendor }),
      await request(coinTerms),
    ]
    const batchOf = (paid: readonly PaymentRequest[]): ContractCall => ({
      to: batch,
      data: encode('batchEthPaymentsWithReference', [
        paid.map(({ payee }) => payee),
        paid.map(() => COIN),
        paid.map(({ paymentReference }) => paymentReference),
        paid.map(() => 0n),
        zeroAddress,
      ]),
      value: COIN * BigInt(paid.length),
    })
    await chain.send(sender, batchOf([own, vendors]), { gas: 2_000_000n })
    await scan()
    const bySender = { traced: [canonical(sender)], untraced: [canonical(sender)] }
    expect([await payers(own), await payers(vendors)]).toEqual([bySender, bySender])

    await setCode(vendor, callingCode(native(slipped, 5n, olderProxy)))
    await chain.send(sender, batchOf([own, vendors]), { gas: 2_000_000n })
    await scan()
    const again = { traced: [canonical(sender), canonical(sender)], untraced: [canonical(sender), null] }
    expect([await payers(own), await payers(vendors)]).toEqual([again, again])
    expect(await payers(slipped)).toEqual({ traced: [vendor], untraced: [null] })
  })

  it('is the sender of a conversion', async () => {
    const [sender] = chain.wallets
    const wanted = await request({ ...coinTerms, invoiceCurrency: 'USD', amount: '100' })
    await chain.pay(sender, {
      kind: 'NATIVE_CONVERSION',
      to: wanted.payee as Hex,
      amount: 100n * 10n ** 8n,
      paymentReference: wanted.paymentReference,
    })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [canonical(sender)], untraced: [canonical(sender)] })
  })
})

describe('a SingleRequestProxy', () => {
  /** Has the factory create one. @returns its address */
  async function make(
    wanted: PaymentRequest,
    {
      token,
      fee = { feeAmount: 0n, feeAddress: zeroAddress },
    }: { token?: Hex; fee?: { feeAmount: bigint; feeAddress: Hex } } = {},
  ): Promise<Hex> {
    const { payee, paymentReference } = wanted
    const { feeAmount, feeAddress } = fee
    const data = token
      ? encode('createERC20SingleRequestProxy', [payee, token, paymentReference, feeAddress, feeAmount])
      : encode('createEthereumSingleRequestProxy', [payee, paymentReference, feeAddress, feeAmount])
    const { logs = [] } = await chain.send(chain.wallets[5], { to: factory, data }, { gas: 5_000_000n })
    const log = logs.find(({ topics }) =>
      [eventTopics.tokenRequestProxy, eventTopics.nativeRequestProxy].includes(topics[0] as Hex),
    )
    return `0x${log?.data.slice(26, 66)}`
  }

  it('pays coins for their sender, and tokens for who put them in', async () => {
    const [sender] = chain.wallets
    const { paymentBatch } = chain.contracts
    const { USDC } = chain.tokens
    const [coins, tokens] = [await request(coinTerms), await request({ amount: '1' })]
    const coinProxy = await make(coins)
    await scan()
    await chain.send(sender, { to: coinProxy, data: '0x', value: COIN })
    // Created in the same step in which it is paid through.
    const tokenProxy = await make(tokens, { token: USDC.address })
    await chain.fund(USDC, sender, 1_000000n)
    await chain.approve(sender, USDC, paymentBatch, 1_000000n)
    await run(sender, [
      { to: USDC.address, data: encode('transferFrom', [sender, tokenProxy, 1_000000n]) },
      { to: tokenProxy, data: encode('triggerERC20Payment', []) },
    ])
    await scan()
    const bySender = { traced: [canonical(sender)], untraced: [canonical(sender)] }
    expect([await payers(coins), await payers(tokens)]).toEqual([bySender, bySender])
  })

  it('pays parts as they come, each less its fee, of coins for whoever sends them', async () => {
    const [first, second] = chain.wallets
    const { USDC } = chain.tokens
    const feeAddress = freshAddress('fee of a proxy')
    const [coins, tokens] = [await request(coinTerms), await request({ amount: '1' })]
    const coinProxy = await make(coins, { fee: { feeAmount: 7n, feeAddress } })
    const tokenProxy = await make(tokens, { token: USDC.address, fee: { feeAmount: 7n, feeAddress } })
    await chain.send(first, { to: coinProxy, data: '0x', value: COIN / 4n })
    await chain.send(second, { to: coinProxy, data: '0x', value: COIN / 2n })
    for (const part of [400_000n, 300_000n]) {
      await chain.fund(USDC, tokenProxy, part)
      await chain.send(first, { to: tokenProxy, data: encode('triggerERC20Payment', []) })
    }
    await scan()
    for (const { knex, account } of [traced, untraced]) {
      const partsOf = async (of: PaymentRequest) =>
        (await paymentsOf(knex, account, of)).map(({ payer, amount, fees }) => [payer, Number(amount), fees.length])
      expect(await partsOf(coins)).toEqual([
        [canonical(first), expect.closeTo(0.25), 1],
        [canonical(second), expect.closeTo(0.5), 1],
      ])
      expect(await partsOf(tokens)).toEqual([
        [null, 0.399993, 1],
        [null, 0.299993, 1],
      ])
      const [{ fees }] = await paymentsOf(knex, account, coins)
      expect(fees).toMatchObject([{ type: 'PLATFORM', amount: '0.000000000000000007', receiverAddress: feeAddress }])
    }
  })

  it('that got its money in an earlier transaction has an unknown payer', async () => {
    const { USDC } = chain.tokens
    const wanted = await request({ amount: '1' })
    const tokenProxy = await make(wanted, { token: USDC.address })
    await chain.fund(USDC, tokenProxy, 1_000000n)
    await chain.send(chain.wallets[0], { to: tokenProxy, data: encode('triggerERC20Payment', []) })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [null], untraced: [null] })
  })

  it('is forgotten when a reorg removes the block that created it', async () => {
    await scan()
    const count = async () => (await traced.knex('single_request_proxies')).length
    const before = await count()
    await make(await request(coinTerms))
    await scan()
    expect(await count()).toBe(before + 1)
    await chain.reorg(1)
    await scan()
    expect(await count()).toBe(before)
  })
})

describe('an escrow', () => {
  it('pays with money of an earlier transaction, so its payer is unknown, and what it emits itself is no payment', async () => {
    const escrow = await deployEscrow(chain)
    const [sender] = chain.wallets
    const { USDC } = chain.tokens
    const wanted = await request({ amount: '1' })
    const feeAddress = freshAddress('fee of an escrow')
    await chain.fund(USDC, sender, 1_000005n)
    await chain.approve(sender, USDC, escrow, 1_000005n)
    await chain.send(chain.deployer, { to: escrow, data: encode('approvePaymentProxyToSpend', [USDC.address]) })
    const { payee, paymentReference } = wanted
    const terms = [USDC.address, payee, 1_000000n, paymentReference, 5n, feeAddress]
    await chain.send(sender, { to: escrow, data: encode('payEscrow', terms) }, { gas: 2_000_000n })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [], untraced: [] })
    await chain.send(
      sender,
      { to: escrow, data: encode('payRequestFromEscrow', [paymentReference]) },
      { gas: 2_000_000n },
    )
    // Without an entry in the chains file, the escrow itself is the payer.
    const listed = await openView(chain.rpcUrl, [canonical(escrow)])
    await storeRequest(listed.knex, listed.account, wanted)
    await Promise.all([scan(), listed.detection.scanOnce()])
    expect(await payers(wanted)).toEqual({ traced: [canonical(escrow)], untraced: [canonical(escrow)] })
    expect(await paymentsOf(listed.knex, listed.account, wanted)).toMatchObject([{ payer: null, fees: [] }])
    await listed.database.drop()
  })
})

describe('an account with code', () => {
  const otherPayee = freshAddress('somebody else')
  const executes = ({ to, data, value = 0n }: ContractCall) =>
    encode('execTransaction', [to, value, data, 0, 0n, 0n, 0n, zeroAddress, zeroAddress, '0x'])

  it('that executes one call is the payer, also by the calldata alone', async () => {
    const safe = freshAddress('a Safe')
    const wanted = await request(coinTerms)
    const call = native(wanted, COIN)
    await setCode(safe, callingCode(call))
    await chain.send(chain.wallets[0], { to: safe, data: executes(call), value: COIN }, { gas: 1_000_000n })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [safe], untraced: [safe] })
  })

  it('is the payer where it is a real Safe and anybody sends what its owner signed', async () => {
    const owner = privateKeyToAccount(generatePrivateKey())
    const safe = await deploySafe(chain, owner)
    const { USDC } = chain.tokens
    const { erc20FeeProxy } = chain.contracts
    const [coins, tokens] = [await request(coinTerms), await request({ amount: '1' })]
    await chain.setNativeBalance(safe, COIN)
    await chain.fund(USDC, safe, 1_000000n)
    const { payee, paymentReference } = tokens
    const transfer = [USDC.address, payee, 1_000000n, paymentReference, 0n, zeroAddress]
    const calls: readonly ContractCall[] = [
      native(coins, COIN),
      encodeApprove(USDC.address, erc20FeeProxy, 1_000000n),
      { to: erc20FeeProxy, data: encode('transferFromWithReferenceAndFee', transfer) },
    ]
    for (const call of calls) {
      await chain.send(chain.wallets[1], await signSafeCall(chain, { safe, owner }, call), { gas: 1_000_000n })
    }
    await scan()
    const bySafe = { traced: [canonical(safe)], untraced: [canonical(safe)] }
    expect([await payers(coins), await payers(tokens)]).toEqual([bySafe, bySafe])
  })

  it('whose calldata tells of another payment is the payer by a trace alone', async () => {
    const safe = freshAddress('a Safe that lies')
    const wanted = await request(coinTerms)
    const reported = native({ ...wanted, payee: otherPayee }, COIN)
    await setCode(safe, callingCode(native(wanted, COIN)))
    await chain.send(chain.wallets[0], { to: safe, data: executes(reported), value: COIN }, { gas: 1_000_000n })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [safe], untraced: [null] })
  })

  it('that calls itself is the payer, also by the calldata alone', async () => {
    const account = chain.wallets[7] as Hex
    const wanted = await request(coinTerms)
    const call = native(wanted, COIN)
    const delegate = freshAddress('code of wallets')
    await setCode(delegate, callingCode(call))
    // EIP-7702: the account runs the code of the delegate.
    await setCode(account, concatHex(['0xef0100', delegate]))
    const data = encode('execute', [call.to, call.value, call.data])
    await chain.send(account, { to: account, data }, { gas: 1_000_000n })
    await scan()
    expect(await payers(wanted)).toEqual({ traced: [canonical(account)], untraced: [canonical(account)] })
  })

  it('is each the payer of its own in a bundle of user operations, by a trace alone', async () => {
    const [first, second, third] = [await request(coinTerms), await request(coinTerms), await request({ amount: '1' })]
    const accounts = [freshAddress('user one'), freshAddress('user two'), freshAddress('user three')] as const
    const { USDC } = chain.tokens
    for (const account of accounts) await chain.setNativeBalance(account, 2n * COIN)
    await chain.fund(USDC, accounts[2], 1_000000n)
    await chain.sendAs(accounts[2], encodeApprove(USDC.address, chain.contracts.erc20FeeProxy, 1_000000n))
    const { payee, paymentReference } = third
    const transfer = [USDC.address, payee, 1_000000n, paymentReference, 0n, zeroAddress]
    const calls: readonly ContractCall[] = [
      native(first, COIN),
      native(second, COIN),
      { to: chain.contracts.erc20FeeProxy, data: encode('transferFromWithReferenceAndFee', transfer) },
    ]
    for (const [i, account] of accounts.entries()) await setCode(account, callingCode(calls[i] as ContractCall))
    // The bundler's contract calls one account after the other.
    await run(
      chain.wallets[0],
      accounts.map((to) => ({ to, data: '0x' as const })),
    )
    await scan()
    expect(await Promise.all([first, second, third].map(payers))).toEqual([
      { traced: [accounts[0]], untraced: [null] },
      { traced: [accounts[1]], untraced: [null] },
      { traced: [accounts[2]], untraced: [accounts[2]] },
    ])
  })
})

describe('the EntryPoint of ERC-4337', () => {
  it('makes each account the payer of its own, coins by a trace alone', async () => {
    const entryPoint = await deployEntryPoint(chain)
    const owners = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())]
    const wanted = [await request(coinTerms), await request(coinTerms)] as const
    const operations = []
    for (const [i, owner] of owners.entries()) {
      const account = await makeAccount(chain, entryPoint, owner)
      await chain.setNativeBalance(account, 100n * COIN)
      operations.push({ account, owner, call: native(wanted[i] as PaymentRequest, COIN) })
    }
    const bundle = await signBundle(chain, entryPoint, operations)
    await chain.send(chain.wallets[0], bundle, { gas: 5_000_000n })
    await scan()
    const [first, second] = operations.map(({ account }) => canonical(account))
    expect(await Promise.all(wanted.map(payers))).toEqual([
      { traced: [first], untraced: [null] },
      { traced: [second], untraced: [null] },
    ])
  })
})

it('the proof that shares no rule with detection finds the same payers', async () => {
  // Tests above have deleted unmatched events.
  expect((await differences()).filter(({ kind }) => kind !== 'UNMATCHED')).toEqual([])
})

describe('every published version', () => {
  const topicOf = ({ name, inputs }: { name: string; inputs: readonly { type: string }[] }) =>
    toEventSelector(`${name}(${inputs.map(({ type }) => type).join(',')})`)
  it.each([
    ['ERC20FeeProxy', [eventTopics.erc20Payment]],
    ['EthereumFeeProxy', [eventTopics.nativePayment]],
    ['Erc20ConversionProxy', [eventTopics.conversion, eventTopics.erc20Payment]],
    ['EthConversionProxy', [eventTopics.conversion, eventTopics.nativePayment]],
  ])('of %s has the events that are followed, with the reference as their only topic', (name, topics) => {
    const versions = publishedEvents(name)
    expect(versions.size).toBeGreaterThan(0)
    for (const events of versions.values()) {
      const payments = events.filter((event) => event.name.startsWith('TransferWith'))
      expect(payments.map(topicOf).toSorted()).toEqual(topics.toSorted())
      expect(payments.map(({ inputs }) => inputs.filter(({ indexed }) => indexed).map(({ type }) => type))).toEqual(
        payments.map(() => ['bytes']),
      )
    }
  })

  it('of the factory has the two events that name its proxies', () => {
    for (const events of publishedEvents('SingleRequestProxyFactory').values()) {
      expect(events.map(topicOf)).toEqual(
        expect.arrayContaining([eventTopics.tokenRequestProxy, eventTopics.nativeRequestProxy]),
      )
    }
  })
})

describe('a node', () => {
  const asked = (method: string) => node.calls.filter((call) => call.method === method).length

  /** A payment whose payer is not in the receipt. */
  async function payThroughContract(): Promise<PaymentRequest> {
    const wanted = await request(coinTerms)
    await run(chain.wallets[0], [native(wanted, COIN)])
    return wanted
  }

  it('without traces is asked once by each method, and never for what the receipt tells', async () => {
    const direct = await request(coinTerms)
    const before = [asked('debug_traceTransaction'), asked('trace_transaction'), asked('eth_getTransactionByHash')]
    await chain.send(chain.wallets[0], native(direct, COIN))
    await scan()
    const through = await payThroughContract()
    await scan()
    const after = [asked('debug_traceTransaction'), asked('trace_transaction'), asked('eth_getTransactionByHash')]
    // The tests before have asked for traces already.
    expect(after).toEqual([before[0], before[1], (before[2] ?? 0) + 1])
    expect([before[0], before[1]]).toEqual([1, 1])
    expect(await payers(through)).toMatchObject({ untraced: [null] })
  })

  let nowMs = Date.UTC(2026, 10, 22)
  const clock = () => new Date(nowMs)
  const unavailable = { rpcError: { code: -32000, message: 'required historical state unavailable' } }
  /** An answer without a result. */
  const broken = { result: undefined }
  const noTracer = { rpcError: { code: -32602, message: 'this node supports no tracer' } }

  /** A trace reader that knows nothing about its nodes yet, and a transaction to read. */
  async function openReader(urls: readonly string[] = [node.url]) {
    await payThroughContract()
    const client = createRpcClient({ urls, chainId: chain.chainId, clock })
    const block = await client.call('eth_getBlockByNumber', ['latest', false])
    const { transactions } = block as { transactions: Hex[] }
    const [receipt] = await createChainReader(client, []).receipts(transactions)
    const reader = createTraceReader({ client, network: 'BASE', logger: silentLogger, clock, pauseMs: 1 })
    const read = async () => {
      const { known } = await reader.read([receipt as TransactionReceipt], UNHURRIED)
      return known.get(transactions[0] as Hex)?.kind
    }
    return { read }
  }

  it.each<[string, (nth: number) => object | undefined, string, number]>([
    ['that answers', (): undefined => undefined, 'TRACE', 1],
    ['that fails once', (nth) => (nth === 0 ? broken : undefined), 'TRACE', 2],
    ['that does not know the transaction yet', (nth) => (nth === 0 ? { result: null } : undefined), 'TRACE', 2],
    ['that never knows the transaction', () => ({ result: null }), 'OWN_CALL', 2],
    ['that answers an empty list at first', (nth) => (nth === 0 ? { result: [] } : undefined), 'TRACE', 2],
    ['that always fails', () => broken, 'OWN_CALL', 2],
    ['that no longer has the state', () => unavailable, 'OWN_CALL', 1],
    ['that has only trace_transaction', () => noTracer, 'TRACE', 1],
    ['that answers steps instead of calls', () => ({ result: { structLogs: [], gas: 21_000 } }), 'TRACE', 1],
  ])('%s is asked as often as makes sense', async (_, answer, kind, times) => {
    const { read } = await openReader()
    let asked = 0
    node.meddle(({ method }) => {
      const reported = method === 'debug_traceTransaction' ? answer(asked++) : undefined
      if (reported === undefined) return undefined
      return Promise.resolve('result' in reported ? reported.result : reported)
    })
    expect(await read()).toBe(kind)
    expect(asked).toBe(times)
  })

  it('that fails at traces is not asked for them for a minute, and is asked for everything else', async () => {
    const { read } = await openReader()
    node.meddle(({ method }) => (method === 'debug_traceTransaction' ? Promise.resolve(undefined) : undefined))
    expect(await read()).toBe('OWN_CALL')
    node.meddle()
    expect(await read()).toBe('OWN_CALL')
    nowMs += 60_000
    expect(await read()).toBe('TRACE')
  })

  it('that has traces is asked where the first has none', async () => {
    const { read } = await openReader([node.url, chain.rpcUrl])
    expect(await read()).toBe('TRACE')
  })
})
