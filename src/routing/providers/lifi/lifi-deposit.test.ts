import type { ContractCallsQuoteRequestToAmount } from '@lifi/types'
import fc from 'fast-check'
import { encodeFunctionData, parseAbi } from 'viem'
import { describe, expect, it } from 'vitest'
import { quoteOf } from '../../../../test/support/lifi-server.ts'
import {
  type AcrossDeposit,
  decodeAcrossDeposit,
  decodeReceiverMessage,
  decodeTakenFees,
  type EvmAddress,
  encodeAcrossDeposit,
  encodeForwardedFee,
  encodeReceiverMessage,
} from '../../../contracts/lifi-calldata.ts'
import type { Token } from '../../../domain/currency.ts'
import type { Hex } from '../../../domain/hex.ts'
import { checkDeposit } from './lifi-deposit.ts'
import { RejectedQuoteError } from './lifi-question.ts'

const address = (byte: string) => `0x${byte.repeat(20)}` as EvmAddress
const [WALLET, PROXY, DIAMOND] = [address('61'), address('b2'), address('c3')]
const [FORWARDER, RECEIVER, USDT, USDC] = [address('d4'), address('e5'), address('a6'), address('f7')]
const ZERO = address('00')
/** As long as a payment's call: selector, six words, and the reference. */
const CALL_DATA: Hex = `0xc219a14d${'7a'.repeat(32 * 8)}`

const token = (symbol: string, chain: string, at?: EvmAddress): Token => ({
  id: `${symbol}-${chain}`,
  symbol,
  chain,
  decimals: at === undefined ? 18 : 6,
  ...(at === undefined ? {} : { address: at }),
  bridged: false,
  approveReset: false,
})

interface Form {
  readonly name: string
  readonly source: Token
  readonly protocolFee: bigint
}

const forms: readonly Form[] = [
  { name: 'a token', source: token('USDT', 'ETHEREUM', USDT), protocolFee: 0n },
  { name: 'a token with a fee before the bridge', source: token('USDT', 'ETHEREUM', USDT), protocolFee: 2_500n },
  { name: 'a coin', source: token('ETH', 'ETHEREUM'), protocolFee: 0n },
  { name: 'a coin with a fee before the bridge', source: token('ETH', 'ETHEREUM'), protocolFee: 2_500n },
]

function honest({ source, protocolFee }: Form) {
  const call = {
    fromAmount: '100000000',
    fromTokenAddress: USDC,
    toContractAddress: PROXY,
    toContractCallData: CALL_DATA,
    toContractGasLimit: '100000',
    toApprovalAddress: PROXY,
  }
  const request: ContractCallsQuoteRequestToAmount = {
    fromChain: 1,
    fromToken: source.address ?? ZERO,
    fromAddress: WALLET,
    toChain: 8453,
    toToken: USDC,
    toAmount: '100000000',
    contractCalls: [call],
  }
  const answer = quoteOf(
    request,
    { bridgeFee: 1_000n, protocolFee, surplus: 12_345n },
    {
      tokens: [
        { chainId: 1, address: USDT, symbol: 'USDT', decimals: 6, usd: 10n ** 8n },
        { chainId: 1, address: ZERO, symbol: 'ETH', decimals: 18, usd: 3_000n * 10n ** 8n },
        { chainId: 8453, address: USDC, symbol: 'USDC', decimals: 6, usd: 10n ** 8n },
      ],
      diamonds: { 1: DIAMOND },
      feeForwarders: { 1: FORWARDER },
      receivers: { 8453: RECEIVER },
    },
  )
  const pins = { diamond: DIAMOND, feeContracts: [FORWARDER], receiver: RECEIVER }
  const question = { request, call, source, destination: token('USDC', 'BASE', USDC), pins }
  const terms = {
    question,
    fromAmount: BigInt(answer.estimate.fromAmount),
    nowSec: Math.floor(Date.now() / 1_000),
  }
  return { data: answer.transactionRequest.data as Hex, terms }
}

/** Puts the honest values into the free fields that `checkDeposit` lists; whatever still differs is not free. */
function withoutFreedom(given: AcrossDeposit, wanted: AcrossDeposit): AcrossDeposit {
  const { transactionId, bridge, integrator, referrer } = wanted.bridge
  const { quoteTimestamp, fillDeadline, exclusivityParameter, exclusiveRelayer } = wanted.across
  const { outputAmount, outputAmountMultiplier, sendingAssetId } = wanted.across
  const [message, wantedMessage] = [given, wanted].map(({ across }) => decodeReceiverMessage(across.message))
  if (message === undefined || wantedMessage === undefined) throw new TypeError('a message of an unknown form')
  const calls = message.swaps.map((each, i) => ({
    ...each,
    requiresDeposit: wantedMessage.swaps[i]?.requiresDeposit ?? false,
    fromAmount: wantedMessage.swaps[i]?.fromAmount ?? 0n,
  }))
  const isCoin = wanted.bridge.sendingAssetId === ZERO
  return {
    bridge: { ...given.bridge, transactionId, bridge, integrator, referrer },
    ...(given.swaps && { swaps: given.swaps.map((each) => ({ ...each, callData: paidTo(WALLET, each.callData) })) }),
    across: {
      ...given.across,
      quoteTimestamp,
      fillDeadline,
      exclusivityParameter,
      exclusiveRelayer,
      ...(given.swaps === undefined ? { outputAmountMultiplier } : { outputAmount }),
      ...(isCoin ? { sendingAssetId } : {}),
      message: encodeReceiverMessage({ ...message, transactionId: wantedMessage.transactionId, swaps: calls }),
    },
  }
}

/** A fee's calldata without its receiver. */
function paidTo(recipient: EvmAddress, data: Hex): Hex {
  const fees = decodeTakenFees(data)
  if (fees === undefined) throw new TypeError('no fee')
  return encodeForwardedFee(fees, recipient)
}

const WORD_DIGITS = 64
const SELECTOR_DIGITS = 10
const wordsOf = (data: Hex) => (data.length - SELECTOR_DIGITS) / WORD_DIGITS

function withWord(data: Hex, index: number, change: (word: bigint) => bigint): Hex {
  const at = SELECTOR_DIGITS + index * WORD_DIGITS
  const word = BigInt(`0x${data.slice(at, at + WORD_DIGITS)}`)
  const changed = BigInt.asUintN(256, change(word)).toString(16).padStart(WORD_DIGITS, '0')
  return `${data.slice(0, at)}${changed}${data.slice(at + WORD_DIGITS)}` as Hex
}

/** Expects that a changed deposit is rejected, or differs in free fields alone and guarantees as much as was asked for. */
function judge(changed: Hex, data: Hex, terms: Parameters<typeof checkDeposit>[1]): 'REFUSED' | 'FREE' {
  let guaranteed: bigint
  try {
    guaranteed = checkDeposit(changed, terms)
  } catch (error) {
    expect(error).toBeInstanceOf(RejectedQuoteError)
    return 'REFUSED'
  }
  const [given, wanted] = [decodeAcrossDeposit(changed), decodeAcrossDeposit(data)]
  if (given === undefined || wanted === undefined) throw new TypeError('a deposit of an unknown form was taken')
  expect(guaranteed).toBeGreaterThanOrEqual(BigInt(terms.question.request.toAmount))
  const settled = withoutFreedom(given, wanted)
  // Fees and what is bridged or arrives may change within what is pulled and what is asked for.
  const amounts = {
    bridge: {
      ...settled.bridge,
      minAmount: wanted.swaps === undefined ? settled.bridge.minAmount : wanted.bridge.minAmount,
    },
    across: { ...settled.across, outputAmount: wanted.across.outputAmount },
  }
  const multiplier = { ...amounts.across, outputAmountMultiplier: wanted.across.outputAmountMultiplier }
  const swaps = settled.swaps?.map((each, i) => ({ ...each, callData: wanted.swaps?.[i]?.callData ?? '0x' }))
  expect(encodeAcrossDeposit({ ...settled, ...amounts, across: multiplier, ...(swaps && { swaps }) })).toBe(
    encodeAcrossDeposit(wanted),
  )
  return 'FREE'
}

describe('a deposit', () => {
  // From config/whitelist.json of LI.FI's contracts, and transactions of its diamond.
  it('has the selectors of the functions that LI.FI publishes', () => {
    const selectorOf = (data: Hex) => data.slice(0, SELECTOR_DIGITS)
    const [plain, withFee] = forms.map((form) => honest(form).data)
    expect([plain, withFee].map((data) => selectorOf(data ?? '0x'))).toEqual(['0xa1f1ce43', '0x1794958f'])
    const fees = [USDT, ZERO].map((of) => selectorOf(encodeForwardedFee({ token: of, amount: 1n }, WALLET)))
    expect(fees).toEqual(['0x332d746b', '0x0e8ae67f'])
  })

  it('has the fees of the older collector of fees, in a token and in coins', () => {
    const abi = parseAbi([
      'function collectTokenFees(address token, uint256 integratorFee, uint256 lifiFee, address integrator)',
      'function collectNativeFees(uint256 integratorFee, uint256 lifiFee, address integrator) payable',
    ])
    const ofToken = encodeFunctionData({ abi, functionName: 'collectTokenFees', args: [USDT, 5n, 7n, WALLET] })
    const ofCoins = encodeFunctionData({ abi, functionName: 'collectNativeFees', args: [5n, 7n, WALLET] })
    expect([ofToken, ofCoins].map((data) => decodeTakenFees(data))).toEqual([
      { token: USDT, amount: 12n },
      { token: ZERO, amount: 12n },
    ])
  })

  it.each(forms)('is accepted as LI.FI encodes it: $name', (form) => {
    const { data, terms } = honest(form)
    expect(checkDeposit(data, terms)).toBeGreaterThanOrEqual(100_012_345n)
  })

  const changes: readonly ((word: bigint) => bigint)[] = [
    (word) => word + 1n,
    (word) => word ^ 1n,
    (word) => word ^ (1n << 255n),
    (word) => word ^ (1n << 160n),
    (word) => word + 32n,
    () => 0n,
    () => BigInt(address('99')),
    (word) => ~word,
  ]

  const [, ofToken] = forms as [Form, Form]
  it('is rejected with any one word changed, except free fields', () => {
    const { data, terms } = honest(ofToken)
    const verdicts = Array.from({ length: wordsOf(data) }, (_, index) =>
      changes.map((change) => {
        const changed = withWord(data, index, change)
        return changed === data ? 'SAME' : judge(changed, data, terms)
      }),
    ).flat()
    expect(verdicts.length).toBeGreaterThan(300)
    expect(verdicts.filter((verdict) => verdict === 'REFUSED').length).toBeGreaterThan(verdicts.length / 2)
  })

  it.each(forms)('is rejected with any bytes changed, except free fields: $name', (form) => {
    const { data, terms } = honest(form)
    const word = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
    const place = fc.integer({ min: 0, max: wordsOf(data) - 1 })
    const edits = fc.array(fc.tuple(place, word), { minLength: 1, maxLength: 3 })
    const ends = fc.string({ unit: fc.constantFrom('0', '1', '8', 'f'), maxLength: 80 })
    fc.assert(
      fc.property(edits, ends, (made, end) => {
        const changed = made.reduce((text, [index, value]) => withWord(text, index, () => value), data)
        const whole = `${changed}${end.length % 2 === 0 ? end : end.slice(1)}` as Hex
        if (whole !== data) judge(whole, data, terms)
      }),
      { numRuns: 60 },
    )
  })

  it.each<[string, Hex]>([
    ['nothing', '0x'],
    ['a selector alone', '0xa1f1ce43'],
    ['a selector and garbage', `0xa1f1ce43${'ff'.repeat(2_000)}`],
    ['offsets that point at themselves', `0x1794958f${'00'.repeat(31)}20${'00'.repeat(31)}20${'00'.repeat(31)}20`],
  ])('is rejected when it is %s', (_, data) => {
    const { terms } = honest(ofToken)
    expect(() => checkDeposit(data, terms)).toThrow(expect.objectContaining({ check: 'UNVERIFIABLE' }))
  })
})
