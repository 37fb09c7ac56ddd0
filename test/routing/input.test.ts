import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configuredAddresses } from '../../src/chains/configured-addresses.ts'
import { type Address, formatAddress } from '../../src/domain/address.ts'
import { formatAmount } from '../../src/domain/decimal.ts'
import { WaybillError } from '../../src/errors/waybill-error.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { configOf, createTestRouting, type EvmAddress, freshAddress, type TestRouting } from '../support/routing.ts'

const TRON_WALLET = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'
const PAYEE = freshAddress('payee')
const WALLET = freshAddress('wallet')

let ethereum: TestChain
let routing: TestRouting
beforeAll(async () => {
  ethereum = await startTestChain()
  await ethereum.fund(ethereum.tokens.USDC, WALLET, 1_000_000_000n)
  routing = createTestRouting([configOf(ethereum, 'ETHEREUM')])
})
afterAll(() => ethereum.stop())

const inUsdc = (amount: string) => ({
  payee: PAYEE,
  amount,
  invoiceCurrency: 'USDC-ETHEREUM',
  paymentCurrency: 'USDC-ETHEREUM',
  network: 'ETHEREUM',
})
const reasonsOf = (entries: readonly { reason: string }[]) => entries.map((entry) => entry.reason)

describe('the amount', () => {
  const find = (amount: string, counted = {}, more = {}) => {
    const paymentReference = routing.addRequest(inUsdc(amount), counted)
    return routing.find({ paymentReference, wallet: WALLET, ...more })
  }

  it('defaults to the outstanding balance, after pending payments', async () => {
    const answer = await find('150', { final: '40', pending: '9.5' })
    expect([answer.amount, answer.routes[0]?.sourceAmount]).toEqual(['100.5', '100.5'])
  })

  it.each([
    ['100.50', '100.5'],
    ['0.000001', '0.000001'],
    ['150', '150'],
  ])('is the amount that the caller asked for: %s', async (asked, amount) => {
    const answer = await find('150', {}, { amount: asked })
    expect([answer.amount, answer.routes[0]?.sourceAmount, answer.warnings]).toEqual([amount, amount, []])
  })

  it('may be above the outstanding balance, with a warning', async () => {
    const answer = await find('150', { final: '50' }, { amount: '100.000001' })
    expect(answer.routes[0]?.sourceAmount).toBe('100.000001')
    expect(answer.warnings).toEqual([
      {
        reason: 'AMOUNT_ABOVE_OUTSTANDING',
        message:
          'the amount 100.000001 is above the outstanding balance of 100 USDC-ETHEREUM; pay the outstanding balance',
      },
    ])
  })

  it.each([
    ['final payments cover it', { final: '150' }, {}, 'REQUEST_ALREADY_PAID'],
    ['final payments exceed it', { final: '151', pending: '5' }, {}, 'REQUEST_ALREADY_PAID'],
    ['pending payments cover it', { final: '50', pending: '100' }, {}, 'PAYMENT_PENDING'],
    ['payments were returned', { final: '150', returned: '150' }, {}, 'REQUEST_ALREADY_PAID'],
    ['an amount is asked for all the same', { final: '150' }, { amount: '7' }, 'REQUEST_ALREADY_PAID'],
    ['an amount is asked for while they are pending', { pending: '150' }, { amount: '7' }, 'PAYMENT_PENDING'],
    ['the wallet is of another family', { final: '150' }, { wallet: TRON_WALLET }, 'REQUEST_ALREADY_PAID'],
  ])('is zero when %s', async (_, counted, more, reason) => {
    const answer = await find('150', counted, more)
    expect({ ...answer, warnings: reasonsOf(answer.warnings) }).toEqual({
      routes: [],
      amount: '0',
      currency: 'USDC-ETHEREUM',
      warnings: [reason],
      unavailable: [],
      degraded: false,
    })
  })
})

describe('the payee’s own wallet', () => {
  const TRON_REQUEST = { ...inUsdc('10'), network: 'TRON', payee: TRON_WALLET as EvmAddress }
  it.each([
    ['in lower case', PAYEE.toLowerCase(), {}],
    ['with its checksum', formatAddress(PAYEE.toLowerCase() as Address), {}],
    ['in upper case', `0X${PAYEE.slice(2).toUpperCase()}`, {}],
    ['with another amount', PAYEE, { amount: '3' }],
    ['as receiver of the fee, too', PAYEE, { feePercentage: '1', feeAddress: PAYEE }],
  ])('has no routes, and cannot pay: %s', async (_, wallet, more) => {
    await ethereum.fund(ethereum.tokens.USDC, PAYEE, 100_000_000n)
    for (const change of [{}, { invoiceCurrency: 'USD' }]) {
      const paymentReference = routing.addRequest({ ...inUsdc('10'), ...change })
      const question = { paymentReference, wallet, ...more }
      const { routes, unavailable, warnings, degraded } = await routing.find(question)
      expect([routes, unavailable, reasonsOf(warnings), degraded]).toEqual([[], [], ['WALLET_IS_PAYEE'], false])
      expect(warnings[0]?.message).toContain(formatAddress(PAYEE.toLowerCase() as Address))
      for (const route of [undefined, 'REQUEST_NETWORK_PAYMENT', 'ETHEREUM_ETHEREUM_DAI_USDC']) {
        await expect(routing.prepare({ ...question, ...(route && { route }) })).rejects.toMatchObject({
          reason: 'WALLET_IS_PAYEE',
          violations: [{ field: 'wallet' }],
        })
      }
    }
  })

  it('is known on Tron as well', async () => {
    const answer = await routing.find({ paymentReference: routing.addRequest(TRON_REQUEST), wallet: TRON_WALLET })
    expect([answer.routes, reasonsOf(answer.warnings)]).toEqual([[], ['WALLET_IS_PAYEE']])
  })

  it('does not hide that the request is paid, and stands beside other warnings', async () => {
    const ask = async (counted: object, more = {}) => {
      const paymentReference = routing.addRequest(inUsdc('10'), counted)
      return reasonsOf((await routing.find({ paymentReference, wallet: PAYEE, ...more })).warnings)
    }
    expect(await ask({ final: '10' })).toEqual(['REQUEST_ALREADY_PAID'])
    expect(await ask({}, { amount: '11' })).toEqual(['AMOUNT_ABOVE_OUTSTANDING', 'WALLET_IS_PAYEE'])
    expect(await ask({}, { chains: ['POLYGON'] })).toEqual(['WALLET_IS_PAYEE', 'FILTER_MATCHES_NOTHING'])
  })

  it.each([
    ['the receiver of the fee', { feePercentage: '1', feeAddress: WALLET }, {}],
    ['the refund address', {}, { refundAddress: WALLET }],
  ])('is not %s', async (_, more, terms) => {
    const paymentReference = routing.addRequest({ ...inUsdc('10'), ...terms })
    const { routes } = await routing.find({ paymentReference, wallet: WALLET, ...more })
    expect(routes[0]?.id).toBe('REQUEST_NETWORK_PAYMENT')
  })
})

describe('a wallet that is not among the allowed payers', () => {
  const lowered = WALLET.toLowerCase() as EvmAddress
  const request = { ...inUsdc('10'), allowedPayers: [lowered] as unknown as Address[] }

  it.each([
    ['of its family', freshAddress('not allowed'), ['PAYER_NOT_ALLOWED']],
    ['of another family', TRON_WALLET, ['PAYER_NOT_ALLOWED']],
    ['the payee', PAYEE, ['WALLET_IS_PAYEE']],
  ])('has no routes, and cannot pay: %s', async (_, wallet, reasons) => {
    await ethereum.fund(ethereum.tokens.USDC, freshAddress('not allowed'), 100_000_000n)
    const question = { paymentReference: routing.addRequest(request), wallet }
    const { routes, unavailable, warnings, degraded } = await routing.find(question)
    expect([routes, unavailable, reasonsOf(warnings), degraded]).toEqual([[], [], reasons, false])
    // The list is the merchant's alone.
    expect(JSON.stringify(warnings).toLowerCase()).not.toContain(lowered)
    await expect(routing.prepare(question)).rejects.toMatchObject({
      reason: reasons[0],
      violations: [{ field: 'wallet' }],
    })
  })

  it('does not hinder those that are, nor the ways before a wallet is known', async () => {
    const paymentReference = routing.addRequest(request)
    expect((await routing.find({ paymentReference, wallet: WALLET })).routes[0]?.id).toBe('REQUEST_NETWORK_PAYMENT')
    const options = await routing.findOptions(paymentReference)
    expect([options.routes[0]?.id, options.warnings]).toEqual(['REQUEST_NETWORK_PAYMENT', []])
  })
})

describe('invalid input', () => {
  const good = { paymentReference: '', wallet: WALLET }
  const fee = (feePercentage?: string, feeAddress?: string) => ({
    ...(feePercentage === undefined ? {} : { feePercentage }),
    ...(feeAddress === undefined ? {} : { feeAddress }),
  })
  const amounts = [
    '',
    '1e3',
    '0x10',
    ' 1',
    '1 ',
    '-0',
    '-1',
    '0',
    '0.000',
    '+1',
    '.5',
    '5.',
    '01',
    '1,5',
    'NaN',
    'Infinity',
  ]
  const cases: [string, object, string][] = [
    ...[...amounts, '1'.repeat(200), '1.1234567', '0.0000000000000000001', '१'].map(
      (amount): [string, object, string] => [`amount ${JSON.stringify(amount)}`, { amount }, 'INVALID_AMOUNT amount'],
    ),
    ['a wallet of nothing', { wallet: '' }, 'MISSING_FIELD wallet'],
    ['a wallet that is a name', { wallet: 'vitalik.eth' }, 'INVALID_ADDRESS wallet'],
    ['a wallet of 39 digits', { wallet: `0x${'1'.repeat(39)}` }, 'INVALID_ADDRESS wallet'],
    ['a wrong checksum', { wallet: '0x70997970c51812dc3A010C7d01b50e0d17dc79C8' }, 'INVALID_ADDRESS wallet'],
    ['a mistyped Tron wallet', { wallet: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv9' }, 'INVALID_ADDRESS wallet'],
    ['no reference', { paymentReference: '' }, 'MISSING_FIELD paymentReference'],
    ['15 digits', { paymentReference: '0x112233445566778' }, 'INVALID_PAYMENT_REFERENCE paymentReference'],
    ['17 digits', { paymentReference: '0x11223344556677889' }, 'INVALID_PAYMENT_REFERENCE paymentReference'],
    ['no digits', { paymentReference: '0xzz22334455667788' }, 'INVALID_PAYMENT_REFERENCE paymentReference'],
    ['a percentage alone', fee('1'), 'INCOMPLETE_FEE feePercentage'],
    ['a fee address alone', fee(undefined, PAYEE), 'INCOMPLETE_FEE feeAddress'],
    ['the zero fee address', fee('1', `0x${'0'.repeat(40)}`), 'INVALID_ADDRESS feeAddress'],
    ['a bad fee address', fee('1', '0x12'), 'INVALID_ADDRESS feeAddress'],
    ['an empty fee address', fee('1', ''), 'MISSING_FIELD feeAddress'],
    ['a fee address of another family', fee('1', TRON_WALLET), 'INVALID_ADDRESS feeAddress'],
    ...['', '-1', '-0', '100.000000000000000001', '101', '1e1', '5%', ' 1', '0x1', '1.1234567890123456789'].map(
      (text): [string, object, string] => [
        `${JSON.stringify(text)} %`,
        fee(text, PAYEE),
        'INVALID_PERCENTAGE feePercentage',
      ],
    ),
  ]
  it.each(cases)('is refused: %s', async (_, change, expected) => {
    const question = { ...good, paymentReference: routing.addRequest(inUsdc('10')), ...change }
    const error: unknown = await routing.find(question).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(WaybillError)
    const { reason, violations } = error as WaybillError
    expect(`${reason} ${violations.map((violation) => violation.field).join()}`).toBe(expected)
  })

  it('includes a fee address of the chain’s configuration, as for a payee', async () => {
    const paymentReference = routing.addRequest(inUsdc('10'))
    const config = configOf(ethereum, 'ETHEREUM')
    const known = configuredAddresses(config)
    expect(known.size).toBeGreaterThan(10)
    for (const [address, what] of known) {
      const question = { ...good, paymentReference, feePercentage: '0', feeAddress: formatAddress(address) }
      const refusal = {
        reason: 'RECEIVER_IS_CONTRACT',
        metadata: { field: 'feeAddress', value: formatAddress(address), what, network: 'ETHEREUM' },
      }
      await expect(routing.find(question)).rejects.toMatchObject(refusal)
      await expect(routing.prepare(question)).rejects.toMatchObject(refusal)
      await expect(routing.stream(question).next()).rejects.toMatchObject(refusal)
    }
  })

  it.each([
    ['the payee', PAYEE],
    ['the wallet itself', WALLET],
  ])('does not include %s as fee address', async (_, feeAddress) => {
    const paymentReference = routing.addRequest(inUsdc('10'))
    const { routes } = await routing.find({ ...good, paymentReference, feePercentage: '1', feeAddress })
    expect(routes[0]?.feeBreakdown[1]).toMatchObject({ type: 'PLATFORM', amount: '0.1' })
  })

  it('is refused for a covered request as well', async () => {
    const paymentReference = routing.addRequest(inUsdc('10'), { final: '10' })
    await expect(routing.find({ ...good, paymentReference, amount: '1.1234567' })).rejects.toMatchObject({
      reason: 'INVALID_AMOUNT',
    })
  })

  it.each(['0xffffffffffffffff', 'FFFFFFFFFFFFFFFF'])(
    'includes a reference that no request has: %s',
    async (paymentReference) => {
      await expect(routing.find({ ...good, paymentReference })).rejects.toMatchObject({
        reason: 'REQUEST_NOT_FOUND',
        metadata: { value: '0xffffffffffffffff' },
      })
    },
  )

  it('does not include a reference in upper case and without 0x', async () => {
    const paymentReference = routing.addRequest(inUsdc('10')).slice(2).toUpperCase()
    const answer = await routing.find({
      ...good,
      paymentReference,
      wallet: good.wallet.toUpperCase().replace('X', 'x'),
    })
    expect(answer.amount).toBe('10')
  })

  it.each(['0', '0.0', '100', '0.000000000000000001'])('does not include a percentage of %s', async (feePercentage) => {
    const paymentReference = routing.addRequest(inUsdc('10'))
    const answer = await routing.find({ ...good, paymentReference, feePercentage, feeAddress: PAYEE })
    expect(answer.routes[0]?.feeBreakdown.map((line) => line.type)).toEqual(['GAS', 'PLATFORM'])
  })

  it('is an amount with more decimals than a fiat currency', async () => {
    const paymentReference = routing.addRequest({ ...inUsdc('10'), invoiceCurrency: 'USD' })
    await expect(routing.find({ ...good, paymentReference, amount: '1.123456789' })).rejects.toMatchObject({
      reason: 'INVALID_AMOUNT',
      message: expect.stringContaining('the 8 decimals of USD'),
    })
    expect((await routing.find({ ...good, paymentReference, amount: '1.12345678' })).amount).toBe('1.12345678')
  })
})

describe('an amount above 2^256 - 1 base units', () => {
  const nines = '9'.repeat(78)
  const inUsd = (amount: string) => ({ ...inUsdc(amount), invoiceCurrency: 'USD' })
  const inEther = (amount: string) => ({
    ...inUsdc(amount),
    invoiceCurrency: 'ETH-ETHEREUM',
    paymentCurrency: 'ETH-ETHEREUM',
  })
  const most = (decimals: number) => formatAmount(2n ** 256n - 1n, decimals)

  it.each([
    ['a token', inUsdc, 6],
    ['a coin', inEther, 18],
    ['a fiat currency', inUsd, 8],
  ] as const)('of %s is refused before any chain is looked at', async (_, terms, decimals) => {
    const question = { paymentReference: routing.addRequest(terms('10')), wallet: WALLET }
    const fee = { feePercentage: '0.5', feeAddress: PAYEE }
    const tooLarge = { reason: 'INVALID_AMOUNT', message: expect.stringContaining('2^256 - 1 base units') }
    for (const amount of [nines, formatAmount(2n ** 256n, decimals)]) {
      await expect(routing.find({ ...question, amount })).rejects.toMatchObject(tooLarge)
      await expect(routing.prepare({ ...question, amount, route: 'REQUEST_NETWORK_PAYMENT' })).rejects.toMatchObject(
        tooLarge,
      )
    }
    const answer = await routing.find({ ...question, amount: most(decimals) })
    expect([answer.routes, answer.degraded]).toEqual([[], false])
    await expect(routing.find({ ...question, ...fee, amount: most(decimals) })).rejects.toMatchObject({
      reason: 'INVALID_AMOUNT',
      message: expect.stringContaining('with the platform fee'),
    })
  })

  it('may be that of an old stored request, of which a part can be paid', async () => {
    for (const terms of [inUsdc, inUsd]) {
      const paymentReference = routing.addRequest(terms(nines))
      await expect(routing.find({ paymentReference, wallet: WALLET })).rejects.toMatchObject({
        reason: 'INVALID_AMOUNT',
      })
      const part = await routing.find({ paymentReference, wallet: WALLET, amount: '10' })
      expect(part.routes.map(({ id }) => id)).toEqual(['REQUEST_NETWORK_PAYMENT'])
    }
  })
})
