import { decodeEventLog, getAddress, type Hex, keccak256, parseAbi } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeErc20Payment, encodeNativePayment } from '../../demo/network/demo-contracts.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'

const ERC20_EVENT = parseAbi([
  'event TransferWithReferenceAndFee(address token, address to, uint256 amount, bytes indexed paymentReference, uint256 feeAmount, address feeAddress)',
])
const NATIVE_EVENT = parseAbi([
  'event TransferWithReferenceAndFee(address to, uint256 amount, bytes indexed paymentReference, uint256 feeAmount, address feeAddress)',
])
const CONVERSION_EVENT = parseAbi([
  'event TransferWithConversionAndReference(uint256 amount, address currency, bytes indexed paymentReference, uint256 feeAmount, uint256 maxRateTimespan)',
])
const REFERENCE = '0x0123456789abcdef'
const COIN = 10n ** 18n
const USD = 10n ** 8n

describe('payments on a real chain', () => {
  let chain: TestChain
  beforeAll(async () => {
    chain = await startTestChain()
  })
  afterAll(() => chain.stop())

  it.each(['USDC', 'USDT', 'DAI'] as const)('pays %s through the fee proxy, fee on top', async (symbol) => {
    const [payer] = chain.wallets
    const payee = freshAddress(`${symbol} payee`)
    const feeAddress = freshAddress(`${symbol} fee`)
    const token = chain.tokens[symbol]
    await chain.fund(token, payer, 1_000n)
    const paid = await chain.pay(payer, {
      kind: 'ERC20',
      token: token.address,
      to: payee,
      amount: 100n,
      paymentReference: REFERENCE,
      feeAmount: 5n,
      feeAddress,
    })
    expect(await chain.balanceOf(token, payee)).toBe(100n)
    expect(await chain.balanceOf(token, feeAddress)).toBe(5n)
    expect(await chain.balanceOf(token, payer)).toBe(895n)
    const log = paid.logs?.find((entry) => entry.address === chain.contracts.erc20FeeProxy.toLowerCase())
    const event = decodeEventLog({ abi: ERC20_EVENT, data: log?.data, topics: log?.topics as [Hex, ...Hex[]] })
    expect(event.args).toMatchObject({ to: payee, amount: 100n, feeAmount: 5n, paymentReference: keccak256(REFERENCE) })
  })

  it.each([true, false])('pays the native coin, fee on top (exact: %s)', async (exact) => {
    const payee = freshAddress(`native ${exact}`)
    const feeAddress = freshAddress(`native fee ${exact}`)
    const paid = await chain.pay(chain.wallets[1], {
      kind: 'NATIVE',
      to: payee,
      amount: COIN,
      paymentReference: REFERENCE,
      feeAmount: 7n,
      feeAddress,
      exact,
    })
    expect(await chain.nativeBalance(payee)).toBe(COIN)
    expect(await chain.nativeBalance(feeAddress)).toBe(7n)
    const log = paid.logs?.[0]
    const event = decodeEventLog({ abi: NATIVE_EVENT, data: log?.data, topics: log?.topics as [Hex, ...Hex[]] })
    expect(event.args).toMatchObject({ to: payee, amount: COIN, feeAmount: 7n })
  })

  it('converts a fiat amount into a token, and the conversion proxy emits both events', async () => {
    const [payer] = chain.wallets
    const payee = freshAddress('conversion payee')
    const { DAI } = chain.tokens
    await chain.setFeed(DAI.feed, { answer: 2n * USD })
    await chain.fund(DAI, payer, 100n * COIN)
    const paid = await chain.pay(payer, {
      kind: 'ERC20_CONVERSION',
      token: DAI.address,
      to: payee,
      amount: 10n * USD,
      paymentReference: REFERENCE,
    })
    await chain.setFeed(DAI.feed, { answer: USD })
    expect(await chain.balanceOf(DAI, payee)).toBe(5n * COIN)
    const emitted = paid.logs?.filter((log) => log.address === chain.contracts.erc20ConversionProxy.toLowerCase())
    expect(emitted?.length).toBe(2)
    const [, second] = emitted ?? []
    const event = decodeEventLog({
      abi: CONVERSION_EVENT,
      data: second?.data,
      topics: second?.topics as [Hex, ...Hex[]],
    })
    expect(event.args.amount).toBe(10n * USD)
  })

  it('converts a fiat amount into the native coin and returns the surplus', async () => {
    const payer = chain.wallets[2]
    const payee = freshAddress('native conversion payee')
    await chain.setFeed(chain.native.feed, { answer: 2_500n * USD })
    const before = await chain.nativeBalance(payer)
    const paid = await chain.pay(payer, {
      kind: 'NATIVE_CONVERSION',
      to: payee,
      amount: 250n * USD,
      paymentReference: REFERENCE,
      maxToSpend: COIN,
    })
    expect(await chain.nativeBalance(payee)).toBe(COIN / 10n)
    const gas = (paid.gasUsed as bigint) * (paid.effectiveGasPrice as bigint)
    expect(await chain.nativeBalance(payer)).toBe(before - COIN / 10n - gas)
  })

  it('refuses a conversion at a rate that is older than allowed', async () => {
    const { USDC } = chain.tokens
    const { timestampSec } = await chain.client.head()
    await chain.fund(USDC, chain.wallets[0], 10_000000n)
    await chain.setFeed(USDC.feed, { answer: USD, updatedAtSec: timestampSec - 100_000 })
    const payment = { kind: 'ERC20_CONVERSION', token: USDC.address, to: chain.wallets[1], amount: USD } as const
    await expect(chain.pay(chain.wallets[0], { ...payment, paymentReference: REFERENCE })).rejects.toThrow(/reverted/)
    await chain.setFeed(USDC.feed, { answer: USD })
    const paid = await chain.pay(chain.wallets[0], { ...payment, paymentReference: REFERENCE })
    expect(paid.succeeded).toBe(true)
  })

  it('lets a Tether-like allowance change only after a reset to zero', async () => {
    const { USDT } = chain.tokens
    const owner = chain.wallets[3]
    await chain.approve(owner, USDT, chain.wallets[4], 5n)
    await expect(chain.approve(owner, USDT, chain.wallets[4], 6n)).rejects.toThrow(/reverted/)
    await chain.fund(USDT, owner, 100n)
    const payment = { kind: 'ERC20', token: USDT.address, to: chain.wallets[4], paymentReference: REFERENCE } as const
    await chain.approve(owner, USDT, chain.contracts.erc20FeeProxy, 5n)
    await chain.pay(owner, { ...payment, amount: 10n })
    expect(await chain.balanceOf(USDT, chain.wallets[4])).toBe(10n)
  })

  it('delivers less than the event says when the token takes a fee', async () => {
    const { TAX } = chain.tokens
    const payee = freshAddress('tax payee')
    await chain.fund(TAX, chain.wallets[0], 1_000n)
    const payment = { kind: 'ERC20', token: TAX.address, to: payee, paymentReference: REFERENCE } as const
    await chain.pay(chain.wallets[0], { ...payment, amount: 100n })
    expect(await chain.balanceOf(TAX, payee)).toBe(99n)
  })

  it('makes several payments in one transaction', async () => {
    const payee = freshAddress('batch payee')
    const { USDC, USDT } = chain.tokens
    const paid = await chain.payInOneTransaction(chain.wallets[5], [
      { kind: 'ERC20', token: USDC.address, to: payee, amount: 1n, paymentReference: REFERENCE },
      { kind: 'ERC20', token: USDT.address, to: payee, amount: 2n, paymentReference: REFERENCE },
      { kind: 'NATIVE', to: payee, amount: 3n, paymentReference: REFERENCE },
    ])
    expect(paid.succeeded).toBe(true)
    expect(await chain.balanceOf(USDC, payee)).toBe(1n)
    expect(await chain.balanceOf(USDT, payee)).toBe(2n)
    expect(await chain.nativeBalance(payee)).toBe(3n)
  })

  it('has a look-alike proxy whose event moves nothing', async () => {
    const proxy = await chain.deployLookAlikeProxy()
    const payee = freshAddress('look-alike payee')
    const { USDC } = chain.tokens
    const call = encodeErc20Payment(proxy, USDC.address, { to: payee, amount: 9n, paymentReference: REFERENCE })
    const sent = await chain.send(chain.wallets[0], call)
    expect(sent.logs?.length).toBe(1)
    expect(await chain.balanceOf(USDC, payee)).toBe(0n)
  })

  it('answers Multicall3 at its canonical address', async () => {
    const blockNumber = await chain.client.read({ to: chain.contracts.multicall3, data: '0x42cbb15c' })
    expect(BigInt(blockNumber)).toBe((await chain.client.head()).number)
  })

  it('sends a transaction from any address', async () => {
    const stranger = freshAddress('stranger')
    await chain.setNativeBalance(stranger, COIN)
    const terms = { to: chain.wallets[0], amount: 1n, paymentReference: REFERENCE } as const
    const sent = await chain.sendAs(stranger, encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true))
    expect(sent.from).toBe(stranger.toLowerCase())
  })
})

describe('a chain that is mined by hand', () => {
  let chain: TestChain
  beforeAll(async () => {
    chain = await startTestChain({ automine: false, chainId: 31_338, addressSeed: 3 })
  })
  afterAll(() => chain.stop())

  const payment = (amount: bigint) =>
    ({ kind: 'NATIVE', to: freshAddress('reorg payee'), amount, paymentReference: REFERENCE }) as const

  it('mines a waiting payment only with the next block, which has the base fee that was set', async () => {
    const { transactionHash } = await chain.pay(chain.wallets[0], payment(1n))
    expect(await chain.receipt(transactionHash)).toBeUndefined()
    await chain.mine({ baseFeePerGas: 8_000_000_000n })
    expect((await chain.receipt(transactionHash))?.succeeded).toBe(true)
    expect((await chain.client.head()).baseFeePerGas).toBe(8_000_000_000n)
  })

  it('drops one payment in a reorg and mines another one again with the same hash', async () => {
    const dropped = await chain.pay(chain.wallets[1], payment(2n))
    await chain.mine()
    const kept = await chain.pay(chain.wallets[2], payment(3n))
    const head = await chain.mine()
    const before = await chain.receipt(kept.transactionHash)
    await chain.reorg(2, [{ hash: kept.transactionHash, offset: 1 }])
    const after = await chain.receipt(kept.transactionHash)
    expect(after?.blockNumber).toBe(head)
    expect(after?.blockHash).not.toBe(before?.blockHash)
    expect(await chain.mine()).toBe(head + 1n)
    const gone = await chain.receipt(dropped.transactionHash).catch(() => undefined)
    expect(gone).toBeUndefined()
  })

  it('has tokens at other addresses than a chain of another seed', async () => {
    const other = await startTestChain({ chainId: 31_339 })
    expect(other.tokens.USDC.address).not.toBe(chain.tokens.USDC.address)
    expect(other.contracts).toEqual(chain.contracts)
    await other.stop()
  })
})

function freshAddress(seed: string): `0x${string}` {
  return getAddress(`0x${keccak256(new TextEncoder().encode(seed)).slice(-40)}`)
}
