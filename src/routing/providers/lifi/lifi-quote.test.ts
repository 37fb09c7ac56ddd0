import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import { describe, expect, it } from 'vitest'
import { type LifiAnswer, quoteOf } from '../../../../test/support/lifi-server.ts'
import type { EvmAddress } from '../../../contracts/lifi-calldata.ts'
import type { Token } from '../../../domain/currency.ts'
import { RejectedQuoteError } from './lifi-question.ts'
import { readLifiQuote } from './lifi-quote.ts'

const address = (digit: string) => `0x${digit.repeat(40)}` as EvmAddress
const [WALLET, PROXY] = [address('6'), address('2')]
const [DIAMOND, FORWARDER, RECEIVER] = [address('3'), address('4'), address('5')]
const ZERO = address('0')
const CALL_DATA = `0xc219a14d${'0a'.repeat(64)}`

const token = (symbol: string, chain: string, decimals: number, at?: EvmAddress): Token => ({
  id: `${symbol}-${chain}`,
  symbol,
  chain,
  decimals,
  ...(at === undefined ? {} : { address: at }),
  bridged: false,
  approveReset: false,
})
const source = token('USDT', 'ETHEREUM', 6, address('a'))
const coin = token('ETH', 'ETHEREUM', 18)
const destination = token('USDC', 'BASE', 6, address('b'))

const call = {
  fromAmount: '100000000',
  fromTokenAddress: address('b'),
  toContractAddress: PROXY,
  toContractCallData: CALL_DATA,
  toContractGasLimit: '100000',
}
const requestFrom = (from: Token): ContractCallsQuoteRequestToAmount => ({
  fromChain: 1,
  fromToken: from.address ?? ZERO,
  fromAddress: WALLET,
  toChain: 8453,
  toToken: address('b'),
  toAmount: '100000000',
  contractCalls: [call],
})
const pins = { diamond: DIAMOND, feeContracts: [FORWARDER], receiver: RECEIVER }
const questionFrom = (from: Token) => ({ request: requestFrom(from), call, source: from, destination, pins })

const server = {
  tokens: [
    { chainId: 1, address: address('a'), symbol: 'USDT', decimals: 6, usd: 10n ** 8n },
    { chainId: 1, address: ZERO, symbol: 'ETH', decimals: 18, usd: 3000n * 10n ** 8n },
    { chainId: 8453, address: address('b'), symbol: 'USDC', decimals: 6, usd: 10n ** 8n },
  ],
  diamonds: { 1: DIAMOND },
  feeForwarders: { 1: FORWARDER },
  receivers: { 8453: RECEIVER },
}
const TERMS = { bridgeFee: 1_000n, protocolFee: 2_500n, surplus: 7n }
const answerFrom = (from: Token) => quoteOf(requestFrom(from), TERMS, server)
const readFrom = (from: Token, answer: unknown) =>
  readLifiQuote(answer, questionFrom(from), Math.floor(Date.now() / 1_000))

type Change = (answer: LifiAnswer) => unknown

const inAction =
  (more: object): Change =>
  (answer) => ({ ...answer, action: { ...answer.action, ...more } })
const inEstimate =
  (more: object): Change =>
  (answer) => ({ ...answer, estimate: { ...answer.estimate, ...more } })
const inTransaction =
  (more: object): Change =>
  (answer) => ({ ...answer, transactionRequest: { ...answer.transactionRequest, ...more } })
const withoutPart =
  (name: keyof LifiAnswer): Change =>
  (answer) => ({ ...answer, [name]: undefined })
const withToken = (name: 'fromToken' | 'toToken', more: object): Change => {
  return (answer) => inAction({ [name]: { ...answer.action[name], ...more } })(answer)
}
const withFee = (more: object): Change => {
  return (answer) => inEstimate({ feeCosts: [{ ...answer.estimate.feeCosts?.[0], ...more }] })(answer)
}
describe('an answer of LI.FI', () => {
  it('is read when it is complete', () => {
    expect(readFrom(source, answerFrom(source))).toMatchObject({
      fromAmount: 100_000_007n + 100_000n + 250_000n,
      toAmount: 100_000_007n,
      guaranteed: 100_000_007n,
      approvalAddress: DIAMOND,
      durationSeconds: 43,
      tool: 'across',
      transaction: { to: DIAMOND, value: 0n, gasLimit: 300_000n },
    })
    const native = readFrom(coin, answerFrom(coin))
    expect(native.approvalAddress).toBeUndefined()
    expect(native.transaction.value).toBe(native.fromAmount)
  })

  it('is judged by its transaction, not by the steps that it lists', () => {
    const sent = inTransaction({ data: answerFrom(source).transactionRequest.data?.toUpperCase().replace('X', 'x') })
    const answer = sent(answerFrom(source)) as object
    expect(() => readFrom(source, { ...answer, includedSteps: [] })).not.toThrow()
  })

  it.each<[string, Change, RegExp]>([
    ['nothing', () => null, /not an object/],
    ['a text', () => 'quote', /not an object/],
    ['a list', () => [], /not an object/],
    ['an error with status 200', () => ({ message: 'no', code: 1002 }), /action is not an object/],
    ['no action', withoutPart('action'), /action/],
    ['no estimate', withoutPart('estimate'), /estimate/],
    ['no transaction', withoutPart('transactionRequest'), /transactionRequest/],
    ['another source chain', inAction({ fromChainId: 10 }), /source chain/],
    ['a chain as text', inAction({ fromChainId: '1' }), /source chain/],
    ['another destination chain', inAction({ toChainId: 10 }), /destination chain/],
    ['another source token', withToken('fromToken', { address: address('c') }), /USDT-ETHEREUM/],
    ['the native coin for a token', withToken('fromToken', { address: ZERO }), /USDT-ETHEREUM/],
    ['another destination token', withToken('toToken', { address: address('c') }), /USDC-BASE/],
    ['a token of another chain', withToken('toToken', { chainId: 1 }), /USDC-BASE/],
    ['other decimals', withToken('toToken', { decimals: 18 }), /USDC-BASE/],
    ['another wallet', inAction({ fromAddress: address('9') }), /another wallet/],
    ['two amounts', inAction({ fromAmount: '1' }), /two different amounts/],
    ['no amount', inEstimate({ fromAmount: undefined }), /fromAmount/],
    ['an amount that is a number', inEstimate({ fromAmount: 100 }), /fromAmount/],
    ['an amount with a point', inEstimate({ fromAmount: '100.5' }), /fromAmount/],
    ['an amount below 0', inEstimate({ toAmount: '-1' }), /toAmount/],
    [
      'less than the payment needs',
      inEstimate({ toAmountMin: '99999999' }),
      /toAmountMin is 99999999, below 100000000/,
    ],
    ['less expected than guaranteed', inEstimate({ toAmount: '1' }), /below its toAmountMin/],
    ['no approval address', inEstimate({ approvalAddress: undefined }), /approvalAddress/],
    ['approval of the zero address', inEstimate({ approvalAddress: ZERO }), /zero address/],
    ['no duration', inEstimate({ executionDuration: undefined }), /duration/],
    ['a duration below 0', inEstimate({ executionDuration: -1 }), /duration/],
    ['a duration of months', inEstimate({ executionDuration: 1e7 }), /duration/],
    ['fees that are no list', inEstimate({ feeCosts: {} }), /feeCosts/],
    ['a fee of no amount', withFee({ amount: 'much' }), /feeCosts.amount/],
    ['a fee that is neither in nor on top', withFee({ included: undefined }), /included/],
    ['a fee without a token', withFee({ token: undefined }), /feeCosts.token/],
    ['a transaction on another chain', inTransaction({ chainId: 10 }), /another chain/],
    ['a transaction of another wallet', inTransaction({ from: address('9') }), /another wallet/],
    ['a transaction to nobody', inTransaction({ to: undefined }), /to is not an address/],
    ['a transaction to the zero address', inTransaction({ to: ZERO }), /zero address/],
    ['a plain transfer of the token', inTransaction({ to: address('a') }), /goes to 0xa/],
    ['a transaction to the wallet', inTransaction({ to: WALLET }), /goes to 0x6/],
    ['no data', inTransaction({ data: '0x' }), /no data/],
    ['data that is none', inTransaction({ data: '0x123456789' }), /no data/],
    ['data that is longer than any deposit', inTransaction({ data: `0xa1f1ce43${'00'.repeat(6_141)}` }), /6145 bytes/],
    ['a value that is none', inTransaction({ value: '-5' }), /value/],
    ['no gas limit at all', inTransaction({ gasLimit: undefined }), /gasLimit/],
    ['a gas limit of nothing', inTransaction({ gasLimit: '0x1' }), /gas limit of 1/],
    ['a gas limit beyond a block', inTransaction({ gasLimit: '0xffffffffff' }), /gas limit/],
  ])('is refused: %s', (_, change, fault) => {
    const read = () => readFrom(source, change(answerFrom(source)))
    expect(read).toThrow(RejectedQuoteError)
    expect(read).toThrow(fault)
  })

  it.each([
    ['a coin', coin, '0x0', /sends 0 wei, not/],
    ['a coin and a wei more', coin, undefined, /sends \d+ wei, not/],
    ['a token', source, '0x1', /sends 1 wei, not 0/],
  ])('is refused when its transaction does not send exactly what it takes: %s', (_, from, value, fault) => {
    const answer = answerFrom(from)
    const more = `0x${(BigInt(answer.transactionRequest.value ?? 0) + 1n).toString(16)}`
    const read = () => readFrom(from, inTransaction({ value: value ?? more })(answer))
    expect(read).toThrow(fault)
    expect(read).toThrow(expect.objectContaining({ check: 'WRONG_VALUE' }))
  })
})
