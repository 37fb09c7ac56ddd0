/** The ways to pay without a wallet: what the routes of a wallet that holds enough would cost. */
import { decodeFunctionData, encodeFunctionData, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { configOf, createTestRouting, freshAddress, type TestRouting } from '../support/routing.ts'

let ethereum: TestChain
let base: TestChain
let routing: TestRouting
beforeAll(async () => {
  ;[ethereum, base] = await Promise.all([
    startTestChain({ baseFeePerGas: 8_000_000_000n }),
    startTestChain({ chainId: 31_338, addressSeed: 1 }),
  ])
  routing = createTestRouting([configOf(ethereum, 'ETHEREUM'), configOf(base, 'BASE', { blockTimeSeconds: 2 })])
})
afterAll(() => Promise.all([ethereum.stop(), base.stop()]))

const PAYEE = freshAddress('payee of options')
const inToken = (amount: string, id = 'USDC-ETHEREUM') => ({
  payee: PAYEE,
  amount,
  invoiceCurrency: id,
  paymentCurrency: id,
  network: 'ETHEREUM',
})

it('are the routes of a wallet that holds enough, and costs as its routes have them', async () => {
  const paymentReference = routing.addRequest(inToken('150'))
  const wallet = freshAddress('wallet that holds enough')
  await ethereum.setNativeBalance(wallet, 10n ** 19n)
  await ethereum.fund(ethereum.tokens.USDC, wallet, 1_000_000_000n)
  const [{ options, amount, currency, warnings, degraded, paymentUri }, answer] = await Promise.all([
    routing.findOptions(paymentReference).then(({ routes, ...rest }) => ({ ...rest, options: routes })),
    routing.find({ paymentReference, wallet }),
  ])
  expect({ amount, currency, warnings, degraded, paymentUri }).toEqual({
    amount: '150',
    currency: 'USDC-ETHEREUM',
    warnings: [],
    degraded: false,
    paymentUri: undefined,
  })
  const without = ({ readiness, ...route }: (typeof options)[number]) => ({
    ...route,
    expiresAt: undefined,
    steps: readiness.steps,
  })
  expect(options.map(without)).toEqual(answer.routes.map(without))
  expect(options.map(({ readiness }) => readiness.hasEnoughGas)).toEqual([undefined])
})

it('list nothing of candidates that no provider serves, and none for a request that takes no payment', async () => {
  const open = await routing.findOptions(routing.addRequest(inToken('1')))
  expect(open.unavailable.filter(({ reason }) => /NO_(?:SWAP|CROSSCHAIN)_PROVIDER/.test(reason))).toEqual([])
  const paid = await routing.findOptions(routing.addRequest(inToken('1'), { final: '1' }))
  expect([paid.routes, paid.warnings.map(({ reason }) => reason)]).toEqual([[], ['REQUEST_ALREADY_PAID']])
  const unknown = routing.findOptions('0x00000000000000ff')
  await expect(unknown).rejects.toMatchObject({ reason: 'REQUEST_NOT_FOUND' })
  await expect(routing.findOptions('nothing')).rejects.toMatchObject({ reason: 'INVALID_PAYMENT_REFERENCE' })
})

const ABI = parseAbi([
  'function transferExactEthWithReferenceAndFee(address, uint256, bytes, uint256, address) payable',
])

it('say a payment in the coin of the chain as a link, which is the transaction that the route prepares', async () => {
  const paymentReference = routing.addRequest(inToken('0.25', 'ETH-ETHEREUM'))
  const { paymentUri = '' } = await routing.findOptions(paymentReference)
  const [, to, chainId, name, query] = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\/(\w+)\?(.*)$/.exec(paymentUri) ?? []
  const parameters = [...new URLSearchParams(query)]
  const args = parameters.filter(([type]) => type !== 'value').map(([, value]) => value)
  expect(parameters.map(([type]) => type)).toEqual(['address', 'uint256', 'bytes', 'uint256', 'address', 'value'])
  const data = encodeFunctionData({
    abi: ABI,
    functionName: name as 'transferExactEthWithReferenceAndFee',
    args: [args[0], BigInt(args[1] ?? 0), args[2], BigInt(args[3] ?? 0), args[4]] as never,
  })
  const wallet = freshAddress('payer by a link')
  await ethereum.setNativeBalance(wallet, 10n ** 19n)
  const { transactions } = await routing.prepare({ paymentReference, wallet })
  const value = BigInt(new URLSearchParams(query).get('value') ?? 0)
  expect(transactions).toMatchObject([
    { to, data, value: `0x${value.toString(16)}`, chainId: `0x${Number(chainId).toString(16)}` },
  ])
  expect(decodeFunctionData({ abi: ABI, data }).args[2]).toBe(paymentReference)
})

it('go on without a chain that does not answer, and say so', async () => {
  const dead = createTestRouting([
    configOf(ethereum, 'ETHEREUM'),
    { ...configOf(base, 'BASE', { blockTimeSeconds: 2 }), rpcUrls: ['http://127.0.0.1:1'] },
  ])
  const { routes, degraded, unavailable } = await dead.findOptions(dead.addRequest(inToken('1')))
  expect(routes.map(({ chain }) => chain)).toEqual(['ETHEREUM'])
  expect([degraded, unavailable.map(({ chain, reason }) => [chain, reason])]).toEqual([
    true,
    [['BASE', 'CHAIN_UNREACHABLE']],
  ])
})
